"""Journeys through the dashboard in a real browser: by mouse, by keyboard, on a phone, and for those who hear it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from tests.chromium import Browser
from tests.waiting import until
from tests.wire.dashboard import check_accessibility, shows, text, watched
from tests.wire.running import Running, database, serving, settled

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("no_troubles")]
FIRST_PAGE_ONLY = """
const ask = window.fetch;
window.fetch = (url, ...more) =>
  ask(String(url).includes("finding=") ? url : String(url).replace(/health\\?limit=1000/, "health?limit=1"), ...more);
"""
"""Has the page find more members than one answer holds."""
TAB, ENTER = "\ue004", "\ue007"
SERVERS = {
    "heat_template_version": "wallaby",
    "resources": {
        "web": {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}},
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 2, "resource_def": {"type": "OS::Heat::RandomString"}},
        },
    },
    "outputs": {"address": {"value": {"get_attr": ["web", "first_address"]}, "description": "where it answers"}},
}


def create(http: httpx.Client, service: Running, name: str = "mine") -> str:
    answer = http.post("/stacks", json={"stack_name": name, "template": SERVERS, "tags": "blue"})
    assert answer.status_code == 201, answer.text
    settled(http, name)
    return str(answer.json()["stack"]["id"])


def test_a_newcomer_finds_a_stack_and_sees_it_heal(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    browser.visit(address)
    shows(browser, "There is no stack yet")
    create(http, service)
    shows(browser, "mine")
    shows(browser, "create complete")
    browser.click("table a")
    shows(browser, "where it answers")
    shows(browser, "OS::Nova::Server")
    browser.click("nav.tabs a[href$='/events']")
    handle = next(iter(service.cloud.things("server")))
    seen = "return performance.now()"
    before = browser.run(seen)
    service.cloud.change(handle, status="error")
    shows(browser, "delete in progress")
    assert browser.run("return document.title").startswith("mine")
    until(lambda: text(browser).count("create complete") > 4, "it to be healed")
    assert browser.run(seen) - before < 60_000


def test_stacks_are_searched_by_the_keyboard_alone(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    create(http, service, "first")
    create(http, service, "second")
    browser.visit("about:blank")
    browser.visit(address)
    shows(browser, "2 of 2 stacks")
    browser.press(TAB)
    assert browser.run("return document.activeElement.textContent") == "To the content"
    browser.press(ENTER)
    assert browser.run("return document.activeElement.id") == "main"
    browser.press(TAB, *"secon")
    shows(browser, "1 of 2 stacks")
    browser.press(TAB, ENTER)
    shows(browser, "All stacks")
    assert "/stacks/second/" in browser.address


@pytest.mark.parametrize("wrong", ["%", "p/constructor", "p/__proto__/x", "%E0%A4%A/stacks"])
def test_an_address_that_leads_nowhere_shows_the_stacks(wrong: str, browser: Browser, service: Running) -> None:
    browser.visit("about:blank")
    browser.visit(f"{service.url}/dashboard/#/{wrong}")
    shows(browser, "There is no stack yet")


def test_what_waits_says_why(browser: Browser, service: Running, http: httpx.Client, address: str) -> None:
    template = {
        "heat_template_version": "wallaby",
        "resources": {
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "wait": {
                "type": "OS::Heat::WaitCondition",
                "properties": {"handle": {"get_resource": "handle"}, "timeout": 900},
            },
        },
    }
    made = http.post("/stacks", json={"stack_name": "waits", "template": template}).json()["stack"]["id"]
    browser.visit("about:blank")
    browser.visit(f"{address}/waits/{made}")
    shows(browser, "released by: ")
    shows(browser, "1 of 2")
    assert http.delete(f"/stacks/waits/{made}").status_code == 204


def test_what_a_health_policy_finds_is_shown(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    before = set(service.cloud.things("server"))
    stack = watched(http, {"mode": "propose", "actions": [{"name": "RECREATE"}]})
    browser.visit("about:blank")
    browser.visit(f"{address}/{stack}")
    shows(browser, "2 of 2 members are healthy")
    service.cloud.change(min(set(service.cloud.things("server")) - before), status="stopped")
    shows(browser, "1 of 2 members are healthy")
    shows(browser, "its status is stopped")
    shows(browser, "homeostat health approve")
    browser.run(FIRST_PAGE_ONLY)
    shows(browser, "1 of more than 1000 members are not healthy")
    shows(browser, "its status is stopped")


def test_a_rollout_shows_its_step(browser: Browser, service: Running, http: httpx.Client, address: str) -> None:
    def template(release: str) -> dict[str, Any]:
        member = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
        group = {"count": 3, "metadata_update_pattern": "rolling", "resource_def": member}
        fleet = {"type": "OS::Heat::ResourceGroup", "properties": group, "metadata": {"release": release}}
        fleet["update_policy"] = {"rollout": {"approval": True}}
        wait = {"type": "OS::Heat::WaitCondition", "properties": {"handle": {"get_resource": "h"}, "timeout": 900}}
        wait["depends_on"] = "fleet"
        resources = {"fleet": fleet, "h": {"type": "OS::Heat::WaitConditionHandle"}, "wait": wait}
        return {"heat_template_version": "wallaby", "resources": resources}

    made = http.post("/stacks", json={"stack_name": "rolls", "template": template("1")}).json()["stack"]["id"]

    def waits() -> bool:
        found = http.get(f"/stacks/rolls/{made}/resources/wait").json()["resource"]
        return bool(found["resource_status"] == "CREATE_IN_PROGRESS")

    until(waits, "the group to be made")
    assert http.put(f"/stacks/rolls/{made}", json={"template": template("2")}).status_code == 202
    browser.visit("about:blank")
    browser.visit(f"{address}/rolls/{made}")
    shows(browser, "of 3 members have what is new")
    shows(browser, "Released by: ")
    assert http.delete(f"/stacks/rolls/{made}").status_code == 204


@pytest.mark.parametrize("width", [360, 1280])
def test_it_can_be_used_on_any_screen_and_by_those_who_do_not_see_it(
    width: int, browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    made = create(http, service)
    browser.resize(width, 800)
    for page in (address, f"{address}/mine/{made}"):
        browser.visit("about:blank")
        browser.visit(page)
        shows(browser, "create complete")
        check_accessibility(browser)


class Tokens(NoAccess):
    """As with Keystone: without a good token nothing is shown."""

    def known(self, headers: Mapping[str, str]) -> Caller:
        return self.caller(headers)

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        if headers.get("x-auth-token") != "good":
            raise Rejected("HTTPUnauthorized", "The token is not valid.")
        return super().caller(headers, method, path)


def test_a_token_is_asked_for_and_kept_out_of_addresses(browser: Browser, tmp_path: Path) -> None:
    with database(tmp_path) as db, serving(db, Tokens(), cloud=SimulatedCloud(time.time)) as url:
        browser.visit(f"{url}/dashboard/#/p/stacks")
        shows(browser, "Sign in")
        browser.click("input[type=password]")
        browser.press(*"bad", ENTER)
        shows(browser, "The token is not valid.")
        browser.run("document.querySelector('input[type=password]').select()")
        browser.press(*"good", ENTER)
        shows(browser, "There is no stack yet")
        names: Any = browser.run("return performance.getEntriesByType('resource').map((each) => each.name)")
        assert not any("good" in each for each in (*names, browser.address))
        browser.run("sessionStorage.clear()")
        # The refusals of before are no troubles of the page.
        assert all("401" in each for each in browser.troubles())
