"""Journeys of operators through the dashboard in a real browser: rollouts, health, clusters, and the service itself."""

import httpx
import pytest

from tests.chromium import Browser
from tests.waiting import until
from tests.wire.dashboard import is_accessible, shows, text
from tests.wire.running import Running, settled
from tests.wire.test_steered_rollouts import Rolling

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("no_troubles")]
ENTER = "\ue007"
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
FOCUS = """
const [label, within] = arguments;
const named = (each) => each.checkVisibility() && (each.getAttribute("aria-label") ?? each.innerText) === label;
const found = [...(document.querySelector(within)?.querySelectorAll("button") ?? [])].filter(named);
if (found.length > 1) throw new Error(`${found.length} buttons say ${label}`);
found[0]?.focus();
return found.length === 1;
"""


@pytest.fixture
def dashboard(service: Running, project: str) -> str:
    return f"{service.url}/dashboard/#/{project}"


def opened(browser: Browser, address: str) -> None:
    browser.visit("about:blank")
    browser.visit(address)


def press(browser: Browser, label: str, within: str = "body") -> None:
    """With a key: the button of this name, once it is there."""
    until(lambda: browser.run(FOCUS, label, within), f"a button {label!r}; the page shows {text(browser)!r:.800}")
    browser.press(ENTER)


def act(browser: Browser, label: str, about: str = "") -> str:
    """Press a button, and agree to what it says will happen; gives what that was."""
    press(browser, f"{label} {about}" if about else label)
    says = str(browser.run("return document.querySelector('dialog[open]').innerText"))
    press(browser, label, "dialog[open]")
    until(lambda: not browser.run("return document.querySelector('dialog[open]') !== null"), f"{label} to be done")
    return says


def fits_a_phone(browser: Browser) -> None:
    browser.resize(360, 800)
    is_accessible(browser)
    browser.resize(1280, 800)


def test_a_rollout_is_steered_step_by_step(browser: Browser, http: httpx.Client, dashboard: str) -> None:
    rolling = Rolling(http, approval=True, steps=["1", "2", "100%"], max_failures=1, bake_time=0)
    rolling.begin()
    name = rolling.url.split("/")[-2]
    opened(browser, f"{dashboard}/stacks/{name}/{rolling.id}/rollouts")
    shows(browser, "Step 1\n1 of 3")
    shows(browser, "Step 3\n3 of 3")
    shows(browser, "0 of 1 member report success, 100 % are needed")
    shows(browser, "step 1 is not approved yet")
    assert "Resume" not in text(browser)
    says = act(browser, "Pause", "the rollout of grp")
    assert "1 member of 3 keep what is new" in says
    shows(browser, "paused")
    press(browser, "Undo")
    rolling.until(lambda found: found["state"] == "running", "it to go on")
    shows(browser, "Undone.")
    act(browser, "Approve", "the rollout of grp")
    rolling.until(lambda found: found["approved_step"] == 1, "the step to be approved")
    rolling.report(0, "FAILURE", "no disk left")
    shows(browser, "no disk left")
    shows(browser, "1 of 1 that may fail in all")
    rolling.until(lambda found: found["step"] == 2, "the second step")
    shows(browser, "Step 1\ndone")
    fits_a_phone(browser)
    act(browser, "Roll back", "the rollout of grp")
    shows(browser, "None is in progress.")


def test_what_a_policy_proposes_is_approved(
    browser: Browser, service: Running, http: httpx.Client, dashboard: str
) -> None:
    polled = {"interval": 60, "node_update_timeout": 0, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]}
    recovery = {"mode": "propose", "max_unhealthy": "40%", "actions": [{"name": "RECREATE"}]}
    health = {"target": {"get_resource": "workers"}, "detection": polled, "recovery": recovery}
    resources = {
        "workers": {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": SERVER}},
        "health": {"type": "Homeostat::HealthPolicy", "properties": health},
    }
    template = {"heat_template_version": "wallaby", "resources": resources}
    before = set(service.cloud.things("server"))
    made = http.post("/stacks", json={"stack_name": "watched", "template": template}).json()["stack"]["id"]
    settled(http, "watched")
    opened(browser, f"{dashboard}/stacks/watched/{made}/health")
    shows(browser, "2 of 2 members are healthy")
    shows(browser, "members of workers: mode propose, proposes recoveries")
    shows(browser, "none is recovered with more than 40% unhealthy")
    service.cloud.change(min(set(service.cloud.things("server")) - before), status="stopped")
    shows(browser, "Proposed, and waiting for approval: 1")
    browser.run("document.querySelector('td details').open = true")
    shows(browser, "NODE_STATUS_POLLING: its status is stopped")
    fits_a_phone(browser)
    found = http.get(f"/stacks/watched/{made}/health", params={"finding": "unhealthy"}).json()
    assert found["policies"] == [
        {
            "path": ["workers"],
            "members": True,
            "mode": "propose",
            "interval": 60,
            "detection": ["NODE_STATUS_POLLING"],
            "actions": ["RECREATE"],
            "fencing": [],
            "max_unhealthy": "40%",
            "max_per_hour": None,
        }
    ]
    (ill,) = found["health"]
    says = act(browser, "Approve", f"the recovery of {'/'.join(ill['path'])}")
    assert "RECREATE, one by one until it is healthy" in says
    shows(browser, "2 of 2 members are healthy")
