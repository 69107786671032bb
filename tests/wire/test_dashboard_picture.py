"""The picture of a stack on its page: how it is folded, what it shows, and that it moves with the stack."""

from typing import Any

import httpx
import pytest

from homeostat.api.orchestration import graphs
from tests.chromium import Browser
from tests.waiting import until
from tests.wire.dashboard import check_accessibility, shows, take_picture, text
from tests.wire.running import Running, settled

pytestmark = pytest.mark.browser
TAB, ENTER = "\ue004", "\ue007"
CARELESS = {"type": "OS::Heat::RandomString"}
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}, "depends_on": "net"}
GROUP = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 5, "resource_def": CARELESS}}
SMALL = {"net": {"type": "OS::Neutron::Net"}, "web": SERVER, "group": GROUP}
MANY = "Array.from({{length: {}}}"
FOLD = "const {fold, counted, worst} = await import('/dashboard/pages/stack/fold.js');"
NODES = "return [...document.querySelectorAll('.node > title')].map((each) => each.textContent).sort()"


def create(http: httpx.Client, name: str, resources: dict[str, Any]) -> str:
    template = {"heat_template_version": "wallaby", "resources": resources}
    answer = http.post("/stacks", json={"stack_name": name, "template": template})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["id"])


@pytest.fixture
def address(service: Running, project: str) -> str:
    return f"{service.url}/dashboard/#/{project}/stacks"


def test_a_server_that_is_lost_is_seen_to_heal(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    made = create(http, "seen", SMALL)
    settled(http, "seen", status="CREATE_COMPLETE")
    before = set(service.cloud.things("server"))
    browser.visit(f"{address}/seen/{made}/picture")
    shows(browser, "5 of 5 in it at rest")
    assert browser.run(NODES) == [
        "group, OS::Heat::ResourceGroup, 6 complete",
        "net, OS::Neutron::Net, 1 complete",
        "web, OS::Nova::Server, 1 complete",
    ]
    for handle in before:
        service.cloud.change(handle, status="error")
    until(lambda: browser.run("return document.querySelectorAll('.node .news').length"), "the node to glow")
    take_picture(browser, "picture")
    until(lambda: not before & set(service.cloud.things("server")), "another server")
    until(lambda: "web, OS::Nova::Server, 1 complete" in browser.run(NODES), "the picture to show it whole again")
    assert http.delete(f"/stacks/seen/{made}").status_code == 204


def test_it_is_used_by_the_keyboard_and_says_what_waits(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    wait = {"type": "OS::Heat::WaitCondition", "properties": {"handle": {"get_resource": "handle"}, "timeout": 900}}
    made = create(http, "pictured", {"handle": handle, "wait": wait, "group": GROUP})
    browser.visit("about:blank")
    browser.visit(f"{address}/pictured/{made}/picture")
    shows(browser, "5 of 5 in it at rest")
    browser.run("document.querySelector('.picture').focus()")
    while "group" not in str(browser.run("return document.activeElement.querySelector(':scope > title')?.textContent")):
        browser.press(TAB)
    browser.press(ENTER)
    shows(browser, "create complete")
    until(
        lambda: any("waits: " in each for each in browser.run(NODES)),
        "the node to say what it waits for",
    )
    check_accessibility(browser)
    browser.press(TAB, ENTER)
    until(lambda: browser.address.endswith("/picture") and made not in browser.address, "the picture of the group")
    shows(browser, "create complete")
    assert http.delete(f"/stacks/pictured/{made}").status_code == 204


def test_resources_that_are_alike_are_one_node(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    tier = {f"s{number}": SERVER for number in range(40)}
    ports = {f"p{number}": {"type": "OS::Heat::RandomString", "depends_on": f"s{number}"} for number in range(30)}
    made = create(http, "alike", {"net": SMALL["net"], **tier, **ports})
    settled(http, "alike", status="CREATE_COMPLETE")
    browser.visit("about:blank")
    browser.visit(f"{address}/alike/{made}/picture")
    shows(browser, "71 resources; those that are alike are one node.")
    # Servers with something that requires them are not like those without.
    assert browser.run(NODES) == [
        "10 of OS::Nova::Server: 10 complete",
        "30 of OS::Heat::RandomString: 30 complete",
        "30 of OS::Nova::Server: 30 complete",
        "net, OS::Neutron::Net, 1 complete",
    ]
    browser.run(
        "[...document.querySelectorAll('.node')].find((each) => each.textContent.includes('10 of'))"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    shows(browser, "10 × OS::Nova::Server")
    assert text(browser).count("create complete") == 11
    assert http.delete(f"/stacks/alike/{made}").status_code == 204


def test_of_a_large_group_those_are_drawn_that_are_not_at_rest(
    browser: Browser, service: Running, http: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "GRAPH_MAX", 4)
    made = create(http, "many", {"group": GROUP})
    settled(http, "many", status="CREATE_COMPLETE")
    (group,) = http.get(f"/stacks/many/{made}/graph").json()["graph"]["resources"]
    nested = group["nested"]
    browser.visit("about:blank")
    browser.visit(f"{address}/{nested['stack_name']}/{nested['stack_id']}/picture")
    shows(browser, "5 of 5 in it at rest")
    assert browser.run(NODES) == ["all others, 5 resources, 6 complete"]
    browser.visit(f"{address}/{nested['stack_name']}/{nested['stack_id']}")
    shows(browser, "It has 5 resources; shown are those that wait.")
    browser.visit(f"{address}/{nested['stack_name']}/{nested['stack_id']}/drift")
    shows(browser, "It has 5 resources, too many to compare all of them here.")
    browser.visit(f"{address}/{nested['stack_name']}/{nested['stack_id']}/maintenance")
    shows(browser, "It has 5 resources, too many to list")
    assert http.delete(f"/stacks/many/{made}").status_code == 204


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("[]", [0, 0]),
        ("[{name: 'a', type: 'A', requires: ['gone']}]", [1, 0]),
        # A chain is split from its ends until there would be too many nodes.
        (
            "Array.from({length: 100}, (_, i) => ({name: `n${i}`, type: 'A', requires: i ? [`n${i - 1}`] : []}))",
            [59, 58],
        ),
        # Ten thousand of two types that require each other in rings stay two nodes.
        (
            f"{MANY.format(10_000)}, (_, i) => "
            "({name: `n${i}`, type: i % 2 ? 'A' : 'B', requires: [`n${(i + 1) % 10000}`]}))",
            [2, 2],
        ),
    ],
)
def test_there_are_never_too_many_nodes(shape: str, expected: list[int], browser: Browser, service: Running) -> None:
    browser.visit(f"{service.url}/dashboard/")
    found = browser.run(f"{FOLD} const {{classes, edges}} = fold({shape}); return [classes.length, edges.length]")
    assert found == expected


@pytest.mark.parametrize(("members", "expected"), [(500, False), (2000, True)])
def test_a_stack_is_large_by_what_is_nested_in_it(
    members: int, expected: bool, browser: Browser, service: Running
) -> None:
    browser.visit(f"{service.url}/dashboard/")
    graph = f"{{planned: 1, resources: [{{name: 'group', nested: {{planned: {members}}}}}]}}"
    script = f"const {{isLarge}} = await import('/dashboard/pages/stack/drift.js'); return isLarge({{graph: {graph}}})"
    assert browser.run(script) is expected


def test_a_class_is_as_its_worst_member(browser: Browser, service: Running) -> None:
    browser.visit(f"{service.url}/dashboard/")
    members = """[{status: 'CREATE_COMPLETE', nested: {planned: 10, done: 8, failed: 1}}, {status: 'INIT_COMPLETE'}]"""
    found = browser.run(f"{FOLD} const found = counted({members}); return [found, worst(found)]")
    assert found == [{"COMPLETE": 8, "IN_PROGRESS": 2, "FAILED": 1, "INIT": 1}, "FAILED"]
