"""Journeys of operators through the dashboard in a real browser: rollouts, health, clusters, and the service itself."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess, with_implied
from homeostat.model.caller import Caller
from tests.chromium import Browser
from tests.waiting import until
from tests.wire.clustering.lives import SERVER as NODE
from tests.wire.dashboard import check_accessibility, shows, take_picture, text, watched
from tests.wire.running import Running, database, serving, settled
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
    check_accessibility(browser)
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
    take_picture(browser, "rollout")
    rolling.until(lambda found: found["step"] == 2, "the second step")
    shows(browser, "Step 1\ndone")
    fits_a_phone(browser)
    act(browser, "Roll back", "the rollout of grp")
    shows(browser, "None is in progress.")


def test_what_the_brake_holds_is_shown_and_approved(
    browser: Browser, service: Running, http: httpx.Client, dashboard: str
) -> None:
    before = set(service.cloud.things("server"))
    stack = watched(http, {"max_unhealthy": "40%", "max_per_hour": 1, "actions": [{"name": "RECREATE"}]})
    opened(browser, f"{dashboard}/stacks/{stack}/health")
    shows(browser, "2 of 2 members are healthy")
    shows(browser, "members of workers: mode automatic, recovers what is unhealthy")
    shows(browser, "recovers none with more than 40% unhealthy; begins at most 1 of them in an hour")
    first, second = set(service.cloud.things("server")) - before
    service.cloud.change(first, status="stopped")
    until(lambda: len({*service.cloud.things("server")} - before - {first}) == 2, "another one to be made")
    settled(http, "watched")
    service.cloud.change(second, status="stopped")
    shows(browser, "Held back by the brake: 1")
    shows(browser, "1 recoveries began in the last hour, as many as max_per_hour allows")
    browser.run("document.querySelector('td details').open = true")
    shows(browser, "NODE_STATUS_POLLING: its status is stopped")
    take_picture(browser, "health")
    fits_a_phone(browser)
    found = http.get(f"/stacks/{stack}/health", params={"finding": "unhealthy"}).json()
    assert found["policies"] == [
        {
            "path": ["workers"],
            "members": True,
            "mode": "automatic",
            "interval": 60,
            "detection": ["NODE_STATUS_POLLING"],
            "actions": ["RECREATE"],
            "fencing": [],
            "max_unhealthy": "40%",
            "max_per_hour": 1,
        }
    ]
    (ill,) = found["health"]
    says = act(browser, "Approve", f"the recovery of {'/'.join(ill['path'])}")
    assert "RECREATE, one by one until it is healthy" in says
    shows(browser, "2 of 2 members are healthy")


@pytest.fixture
def senlin(service: Running, project: str) -> Iterator[httpx.Client]:
    """Plain requests to the Clustering API."""
    with httpx.Client(base_url=f"{service.url}/clustering/v1", headers={"X-Project-Id": project}) as client:
        yield client


def farm(senlin: httpx.Client) -> str:
    """A cluster of two nodes, with a policy and a receiver; gives its id."""

    def make(what: str, **values: Any) -> str:
        answer = senlin.post(f"/{what}", json={what[:-1] if what != "policies" else "policy": values})
        assert answer.is_success, answer.text
        (found,) = answer.json().values()
        return str(found["id"])

    profile = make("profiles", name="web", spec=NODE)
    cluster = make("clusters", name="farm", profile_id=profile, desired_capacity=2, max_size=5)
    until(lambda: senlin.get(f"/clusters/{cluster}").json()["cluster"]["status"] == "ACTIVE", "the cluster to be made")
    spec = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {"criteria": "OLDEST_FIRST"}}
    attach = {"policy_id": make("policies", name="eldest", spec=spec), "enabled": True}
    assert senlin.post(f"/clusters/{cluster}/actions", json={"policy_attach": attach}).status_code == 202
    make("receivers", name="alarm", type="webhook", cluster_id=cluster, action="CLUSTER_SCALE_OUT")
    return cluster


def test_a_cluster_is_looked_at_and_changed(browser: Browser, senlin: httpx.Client, dashboard: str) -> None:
    cluster = farm(senlin)
    opened(browser, f"{dashboard}/clusters")
    shows(browser, "1 of 1 clusters")
    shows(browser, "2 of 2")
    shows(browser, "alarm")
    fits_a_phone(browser)
    browser.click("table a")
    shows(browser, "2 of 2 nodes are active; 0 at least, 5 at most.")
    says = act(browser, "Scale out", "the cluster farm")
    assert "It has 2 now, 0 at least and 5 at most." in says
    shows(browser, "3 of 3 nodes are active")
    take_picture(browser, "cluster")
    press(browser, "Undo")
    shows(browser, "2 of 2 nodes are active")
    node = senlin.get("/nodes", params={"cluster_id": cluster}).json()["nodes"][0]["name"]
    act(browser, "Check", f"the node {node}")
    shows(browser, "Check: begun.")
    fits_a_phone(browser)
    browser.click("nav.tabs a[href$='/policies']")
    act(browser, "Disable", "the policy eldest")
    shows(browser, "It is disabled.")
    press(browser, "Undo")
    shows(browser, "It is enabled.")
    fits_a_phone(browser)
    browser.click("nav.tabs a[href$='/actions']")
    shows(browser, "cluster scale out")
    fits_a_phone(browser)
    browser.click("nav.tabs a[href$='/events']")
    shows(browser, "farm")
    browser.click("nav.tabs a[href$='/health']")
    shows(browser, "No health policy holds for anything here.")


def test_the_service_shows_its_workers_and_what_its_doctor_finds(browser: Browser, dashboard: str) -> None:
    opened(browser, f"{dashboard}/service")
    shows(browser, "0 are set aside for a bug")
    assert "up" in browser.run("return document.querySelector('td .COMPLETE').innerText")
    shows(browser, "no shard is set aside")
    shows(browser, "Nothing fails.")
    fits_a_phone(browser)
    press(browser, "Examine again")
    shows(browser, "Nothing fails.")


class Readers(NoAccess):
    """Every caller may only read."""

    def known(self, headers: Mapping[str, str]) -> Caller:
        return self.caller(headers)

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        return Caller("ray", "p", "ray", roles=with_implied("reader"))


def test_the_service_says_to_readers_what_they_may_not_see(browser: Browser, tmp_path: Path) -> None:
    with database(tmp_path) as db, serving(db, Readers()) as url:
        opened(browser, f"{url}/dashboard/#/p/service")
        shows(browser, "Homeostat 0.")
        shows(browser, "you lack the right service:show")
        shows(browser, "you lack the right service:examine")
        browser.visit("about:blank")
        # The refusals are no troubles of the page.
        assert all("403" in each for each in browser.troubles())
