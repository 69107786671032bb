"""Journeys through every panel of heat-dashboard, in a genuine Horizon; docs/howto/use-horizon.md lists the rest."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.chromium import Browser
from tests.clients import horizon_server
from tests.clients.conftest import installed
from tests.clients.panels import Panels
from tests.identity.conftest import Person
from tests.keystone_server import KeystoneServer
from tests.waiting import until

pytestmark = pytest.mark.browser
COIN = """
heat_template_version: wallaby
description: A coin to toss
parameters:
  length: {type: number, default: 8, description: How long it is, constraints: [{range: {min: 1, max: 30}}]}
  side: {type: string, default: heads, constraints: [{allowed_values: [heads, tails]}]}
  pin: {type: string, hidden: true, default: "a hidden pin"}
  fair: {type: boolean, default: true}
  names: {type: comma_delimited_list, default: "one,two"}
  more: {type: json, default: {weight: 3}}
resources:
  coin: {type: "OS::Heat::RandomString", properties: {length: {get_param: length}}}
  up: {type: "OS::Heat::Value", depends_on: coin, properties: {value: {get_param: side}}}
outputs:
  coin: {description: What there is, value: {get_attr: [coin, value]}}
  side: {description: What is up, value: {get_attr: [up, value]}}
"""
LARGER = COIN.replace("outputs:", '  third: {type: "OS::Heat::None"}\noutputs:')
SMALL = "heat_template_version: wallaby\nresources: {one: {type: OS::Heat::RandomString}}\n"
FAILING = """
heat_template_version: wallaby
resources: {one: {type: "OS::Heat::TestResource", properties: {fail: true}}}
"""
BAD = "heat_template_version: wallaby\nresources: {one: {type: OS::Heat::Nonsense}}\n"
NODES = """
const drawn = document.querySelectorAll("#heat_resource_topology .node");
return [...drawn].map((each) => each.getAttribute("node_name"));
"""
CONSTRAINED = """
heat_template_version: wallaby
parameters: {flavor: {type: string, constraints: [{custom_constraint: nova.flavor}]}}
"""
STATUS_OF_PAGE = "return (await fetch(arguments[0])).status"


@pytest.fixture(scope="module")
def horizon(keystone: KeystoneServer, service_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Horizon of the module's own."""
    log = tmp_path_factory.mktemp("horizon") / "log"
    with horizon_server.running(installed("horizon", "bin/django-admin"), keystone.url, log) as address:
        yield address
    assert "Traceback" not in log.read_text()


@pytest.fixture
def panels(browser: Browser, horizon: str, person: Person) -> Panels:
    """Of a user who has a project of the test's own, and has logged in."""
    browser.resize(1400, 1200)
    there = Panels(browser, horizon)
    there.log_in(person.name, person.name)
    return there


@pytest.fixture
def heat(service_url: str, person: Person) -> Iterator[httpx.Client]:
    """Plain requests below the project of the person."""
    headers = {"x-auth-token": person.token()}
    with httpx.Client(base_url=f"{service_url}/v1/{person.project_id}", headers=headers) as client:
        yield client


def create(heat: httpx.Client, *names: str, template: str = SMALL) -> None:
    for name in names:
        assert heat.post("/stacks", json={"stack_name": name, "template": template}).status_code == 201


def test_a_stack_from_its_launch_to_its_deletion(panels: Panels, person: Person, tmp_path: Path) -> None:
    panels.shows("No items to display.")
    panels.click("#stacks__action_launch")
    panels.choose("template_source", "raw")
    panels.write("template_data", BAD)
    panels.submit("select_template")
    panels.shows("OS::Heat::Nonsense")
    panels.write("template_data", COIN)
    panels.choose("environment_source", "raw")
    panels.write("environment_data", "parameters: {length: 11}")
    panels.submit("select_template")
    panels.shows("Creation Timeout")
    panels.write("stack_name", "coin")
    panels.write("password", person.name)
    panels.give("__param_side", "tails")
    panels.submit("launch_stack")
    panels.shows("Stack creation started.")
    panels.shows("Create Complete")

    panels.open_stack("coin", "overview")
    for words in ("A coin to toss", "Create_Complete", "What is up", "tails", "60 Minutes", "******"):
        panels.shows(words)
    assert "a hidden pin" not in panels.text

    for action, status in (("check", "Check"), ("suspend", "Suspend"), ("resume", "Resume")):
        panels.act_on(action, "coin")
        panels.shows(f"{status} Complete")

    panels.choose_action("coin", "edit")
    (tmp_path / "larger.yaml").write_text(LARGER)
    panels.give("template_upload", str(tmp_path / "larger.yaml"))
    panels.submit("change_template")
    panels.shows("Updating Timeout")
    panels.write("password", person.name)
    panels.write("__param_length", "30")
    panels.submit("update_stack")
    panels.shows("Stack update started.")
    panels.shows("Update Complete")
    panels.open_stack("coin", "resources")
    panels.shows("Displaying 3 items")

    panels.act_on("delete", "coin")
    panels.shows("No items to display.")


def test_every_tab_of_a_stack(panels: Panels, heat: httpx.Client) -> None:
    create(heat, "coin", template=COIN)
    panels.open("stacks")
    panels.shows("Create Complete")
    panels.open_stack("coin", "topology")
    until(lambda: sorted(panels.browser.run(NODES)) == ["coin", "up"], "the topology to be drawn")
    panels.open_stack("coin", "resources")
    panels.shows("OS::Heat::RandomString")
    panels.shows("Displaying 2 items")
    panels.click("#resources td a")
    panels.shows("Resource Metadata")
    panels.shows("Create Complete: state changed")
    panels.open_stack("coin", "events")
    panels.shows("Displaying 6 items")
    panels.shows("Stack CREATE completed successfully")
    panels.open_stack("coin", "stack_template")
    panels.shows("heat_template_version: wallaby")
    panels.shows("description: A coin to toss")


def test_launched_from_files(panels: Panels, person: Person, tmp_path: Path) -> None:
    (tmp_path / "coin.yaml").write_text(COIN)
    (tmp_path / "environment.yaml").write_text("parameters: {side: tails}")
    panels.click("#stacks__action_launch")
    panels.shows("Template Source")
    panels.give("template_upload", str(tmp_path / "coin.yaml"))
    panels.give("environment_upload", str(tmp_path / "environment.yaml"))
    panels.submit("select_template")
    panels.shows("Creation Timeout")
    panels.write("stack_name", "uploaded")
    panels.write("password", person.name)
    panels.submit("launch_stack")
    panels.shows("Create Complete")
    panels.open_stack("uploaded", "overview")
    panels.shows("A coin to toss")


class _Template(BaseHTTPRequestHandler):
    """A coin, at every address."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(COIN.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


@pytest.fixture
def template_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Template) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/coin.yaml"
        finally:
            server.shutdown()
            thread.join()


def test_previewed_by_an_address(panels: Panels, person: Person, template_url: str) -> None:
    """The address is read by Horizon, not by the service."""
    panels.click("#stacks__action_preview")
    panels.choose("template_source", "url")
    panels.write("template_url", template_url)
    panels.submit("preview_template")
    panels.shows("Creation Timeout")
    panels.write("stack_name", "seen")
    panels.submit("preview_stack")
    panels.shows("Stack Preview")
    panels.shows("OS::Heat::RandomString")
    panels.open("stacks")
    panels.shows("No items to display.")


def test_what_fails_says_why(panels: Panels, heat: httpx.Client) -> None:
    create(heat, "failing", template=FAILING)
    panels.open("stacks")
    panels.shows("Create Failed")
    panels.open_stack("failing", "overview")
    panels.shows("Create_Failed: Resource CREATE failed")


def test_pages_and_filters_of_stacks(panels: Panels, heat: httpx.Client) -> None:
    create(heat, *(f"stack-{number}" for number in range(5)))
    panels.browser.run("document.cookie = 'API_RESULT_PAGE_SIZE=2; path=/'")
    panels.open("stacks")
    panels.shows("Displaying 2 items")
    shown_are(panels, "stack-4", "stack-3")
    panels.click("#stacks a[href*='?stack_marker']")
    shown_are(panels, "stack-2", "stack-1")
    panels.click("#stacks a[href*='?prev_marker']")
    shown_are(panels, "stack-4", "stack-3")
    panels.browser.write("[name=stacks__filter__q]", "stack-1")
    panels.click("#stacks__action_filter")
    shown_are(panels, "stack-1")


def shown_are(panels: Panels, *stacks: str) -> None:
    """In any order: Horizon turns round what was created in the same second."""
    seen = "return [...document.querySelectorAll('#stacks tbody tr')].map((row) => row.dataset.display)"
    until(lambda: set(panels.browser.run(seen)) == set(stacks), f"the page with {stacks}")


def test_every_resource_type(panels: Panels, heat: httpx.Client) -> None:
    types = heat.get("/resource_types").json()["resource_types"]
    panels.open("resource_types")
    panels.shows(f"Displaying {len(types)} items")
    panels.click("#resource_types a[href*='RandomString']")
    panels.shows("character_classes")
    failing = [each for each in types if panels.browser.run(STATUS_OF_PAGE, f"/project/resource_types/{each}/") != 200]
    assert not failing


def test_template_versions_and_their_functions(panels: Panels, heat: httpx.Client) -> None:
    versions = [each["version"] for each in heat.get("/template_versions").json()["template_versions"]]
    panels.open("template_versions")
    panels.shows(f"Displaying {len(versions)} items")
    panels.click("#template_versions a[href*='2021-04-16']")
    panels.shows("str_replace_vstrict")
    for each in versions:
        assert panels.browser.run(STATUS_OF_PAGE, f"/project/template_versions/{each}/") == 200


def test_the_template_generator_opens(panels: Panels) -> None:
    panels.open("template_generator")
    panels.shows("OS::HEAT")
    panels.shows("Images: Invalid service catalog: image")
    versions = "return [...document.querySelectorAll('md-option')].map((each) => each.textContent.trim())"
    until(lambda: "heat_template_version.2021-04-16" in panels.browser.run(versions), "the versions to be offered")


def test_what_needs_services_that_are_not_there(panels: Panels) -> None:
    panels.browser.visit(f"{panels.address}/project/")
    panels.shows("You are not authorized to access this page")
    panels.open("stacks")
    panels.click("#stacks__action_launch")
    panels.choose("template_source", "raw")
    panels.write("template_data", CONSTRAINED)
    panels.submit("select_template")
    panels.shows("Creation Timeout")
    field = "const field = document.querySelector('#id___param_flavor'); return [field.tagName, field.options.length]"
    assert panels.browser.run(field) == ["SELECT", 0]
