"""Journeys through the pages of one stack, in a real browser."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.model.caller import Caller
from tests.chromium import Browser
from tests.waiting import until
from tests.wire.dashboard import check_accessibility, confirm, fill, push, shows, take_picture, text
from tests.wire.running import Running, serving, settled

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("no_troubles")]
TAB, ENTER, ESCAPE = "\ue004", "\ue007", "\ue00c"
FOCUSED = "return document.activeElement.name || document.activeElement.textContent.trim()"
TEMPLATE: dict[str, Any] = {
    "heat_template_version": "wallaby",
    "parameters": {
        "zone": {"type": "string", "default": "north"},
        "password": {"type": "string", "hidden": True, "default": "swordfish"},
    },
    "resources": {
        "web": {
            "type": "OS::Nova::Server",
            "properties": {"image": "i", "flavor": "f", "user_data": "#!/bin/sh\necho first\n", "metadata": {"k": "v"}},
        },
        "disk": {
            "type": "OS::Cinder::Volume",
            "properties": {"size": 1, "availability_zone": {"get_param": "zone"}},
            "deletion_policy": "Retain",
        },
    },
}


def created(http: httpx.Client, template: Mapping[str, Any] = TEMPLATE) -> str:
    """The path of a stack of this template, once it is there."""
    answer = http.post("/stacks", json={"stack_name": "mine", "template": template, "tags": "blue"})
    assert answer.status_code == 201, answer.text
    made = answer.json()["stack"]["id"]
    settled(http, made, status="CREATE_COMPLETE")
    return f"mine/{made}"


def visit(browser: Browser, page: str) -> None:
    browser.visit("about:blank")
    browser.visit(page)


def revisions(http: httpx.Client, stack: str) -> int:
    return int(http.get(f"/stacks/{stack}/revisions").json()["revisions"][0]["number"])


def parameter(http: httpx.Client, stack: str, name: str) -> str:
    return str(http.get(f"/stacks/{stack}").json()["stack"]["parameters"][name])


def test_two_revisions_are_compared_and_one_is_gone_back_to(browser: Browser, http: httpx.Client, address: str) -> None:
    stack = created(http)
    assert http.patch(f"/stacks/{stack}", json={"parameters": {"zone": "south"}}).status_code == 202
    settled(http, stack, status="UPDATE_COMPLETE")
    visit(browser, f"{address}/{stack}/template")
    shows(browser, "user_data: |")
    shows(browser, "echo first")
    compare = "const [, other] = document.querySelectorAll('select'); other.value = 1;"
    browser.run(f"{compare} other.dispatchEvent(new Event('change'))")
    shows(browser, "lines alike")
    parts = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent.trim())"
    assert browser.run(parts, ".diff ins") == ["parameters:", "zone: south"]
    push(browser, "Go back revision 1")
    shows(browser, "1 will be replaced")
    confirm(browser, "Go back")
    assert revisions(http, stack) == 3
    shows(browser, "update complete")
    assert parameter(http, stack, "zone") == "north"
    push(browser, "Undo")
    until(lambda: revisions(http, stack) == 4, "it to be undone")
    assert parameter(http, stack, "zone") == "south"
    shows(browser, "Undone.")


def test_what_an_update_would_do_is_shown_before_it_is_sent(browser: Browser, http: httpx.Client, address: str) -> None:
    stack = created(http)
    visit(browser, f"{address}/{stack}/change")
    fill(browser, "zone", "east")
    area = "const area = document.querySelector('textarea'); const at = area.value.indexOf('k: v');"
    browser.run(f"{area} area.focus(); area.setSelectionRange(at + 3, at + 4)")
    browser.press("w", TAB)
    push(browser, "Preview")
    shows(browser, "1 will be replaced, 1 will be updated")
    shows(browser, "metadata.k")
    take_picture(browser, "change")
    assert "swordfish" not in text(browser).replace("default: swordfish", "")
    assert revisions(http, stack) == 1
    push(browser, "Update")
    shows(browser, "1 will be replaced, 1 will be updated")
    confirm(browser, "Update")
    shows(browser, "update complete")
    assert (revisions(http, stack), parameter(http, stack, "zone")) == (2, "east")
    push(browser, "Undo")
    shows(browser, "Undone.")
    assert (revisions(http, stack), parameter(http, stack, "zone")) == (3, "north")
    settled(http, stack, status="UPDATE_COMPLETE")
    push(browser, "Suspend")
    confirm(browser, "Suspend")
    shows(browser, "suspend complete")
    push(browser, "Undo")
    shows(browser, "resume complete")


def test_what_a_colleague_has_changed_since_is_neither_sent_over_nor_undone(
    browser: Browser, http: httpx.Client, address: str
) -> None:
    stack = created(http)
    visit(browser, f"{address}/{stack}/change")
    fill(browser, "zone", "east")
    push(browser, "Preview")
    shows(browser, "1 will be replaced")
    assert http.patch(f"/stacks/{stack}", json={"parameters": {"zone": "south"}}).status_code == 202
    push(browser, "Update")
    browser.click("//dialog[@open]//button[normalize-space()='Update']")
    shows(browser, "has moved since revision 1: UPDATE made revision 2 at")
    assert (revisions(http, stack), parameter(http, stack, "zone")) == (2, "south")
    browser.click("//dialog[@open]//button[normalize-space()='Leave it']")
    settled(http, stack, status="UPDATE_COMPLETE")
    push(browser, "Preview")
    shows(browser, "1 will be replaced")
    push(browser, "Update")
    confirm(browser, "Update")
    until(lambda: revisions(http, stack) == 3, "the update to be sent")
    settled(http, stack, status="UPDATE_COMPLETE")
    assert http.patch(f"/stacks/{stack}", json={"parameters": {"zone": "west"}}).status_code == 202
    push(browser, "Undo")
    shows(browser, "has moved since revision 3: UPDATE made revision 4 at")
    assert (revisions(http, stack), parameter(http, stack, "zone")) == (4, "west")
    assert all("412" in each for each in browser.troubles())


def test_a_stack_is_deleted_and_what_it_retains_is_said(browser: Browser, http: httpx.Client, address: str) -> None:
    stack = created(http)
    visit(browser, f"{address}/{stack}/change")
    push(browser, "Delete")
    shows(browser, "will be deleted with 1 resource,")
    shows(browser, "Kept, as their deletion policy says: disk.")
    confirm(browser, "Delete")
    shows(browser, "delete complete")
    browser.click("nav.tabs a[href$='/maintenance']")
    shows(browser, "The stack is deleted.")


def test_drift_is_shown_beside_the_template_and_brought_back(
    browser: Browser, service: Running, http: httpx.Client, address: str
) -> None:
    before = set(service.cloud.things("server"))
    stack = created(http)
    visit(browser, f"{address}/{stack}/drift")
    push(browser, "Look now")
    shows(browser, "Nothing differs; looked at")
    http.patch(f"/stacks/{stack}/convergence", json={"convergence": {"enabled": False}})
    (handle,) = set(service.cloud.things("server")) - before
    service.cloud.change(handle, metadata={"k": "other"})
    push(browser, "Look now")
    shows(browser, "1 of 2 resources differ")
    take_picture(browser, "drift")
    row = "return [...document.querySelectorAll('.differs tbody tr *:not(time)')].map((each) => each.textContent)"
    assert browser.run(row)[:4] == ["metadata", '{"k":"v"}', '{"k":"v"}', '{"k":"other"}']
    shows(browser, "Convergence is switched off")
    push(browser, "Converge")
    shows(browser, "That is: web.")
    confirm(browser, "Converge")
    shows(browser, "Nothing differs; looked at")


def test_a_stack_is_locked_with_a_reason_and_unlocked_by_the_keyboard_alone(
    browser: Browser, http: httpx.Client, address: str
) -> None:
    def reach(name: str) -> None:
        for _ in range(50):
            if browser.run(FOCUSED) == name:
                return
            browser.press(TAB)
        raise AssertionError(f"{name} cannot be reached by the keyboard")

    stack = created(http)
    visit(browser, f"{address}/{stack}/maintenance")
    shows(browser, "It is not locked.")
    reach("Lock")
    browser.press(ENTER)
    assert browser.run(FOCUSED) == "reason", "the question has the focus"
    browser.press(ESCAPE)
    assert browser.run(FOCUSED) == "Lock", "the focus is back"
    browser.press(ENTER, *"disks", ENTER)
    shows(browser, "Locked with all that is in it")
    shows(browser, ": disks")
    shows(browser, "lock complete")
    reach("Undo")
    browser.press(ENTER)
    shows(browser, "It is not locked.")


def test_convergence_is_switched_off_and_a_resource_marked(browser: Browser, http: httpx.Client, address: str) -> None:
    stack = created(http)
    visit(browser, f"{address}/{stack}/maintenance")
    push(browser, "Switch off")
    confirm(browser, "Switch off")
    shows(browser, "Switched off: what drifts or dies is left alone")
    push(browser, "Mark unhealthy web")
    fill(browser, "Reason", "it is slow")
    confirm(browser, "Mark unhealthy")
    shows(browser, "it is slow, by dashboard")
    browser.click("nav.tabs a")
    shows(browser, "marked unhealthy: it is slow")
    browser.run("history.back()")
    push(browser, "Take back web")
    confirm(browser, "Take back")
    until(lambda: "it is slow" not in text(browser), "the mark to be gone")


def test_a_snapshot_is_taken_restored_and_deleted(browser: Browser, http: httpx.Client, address: str) -> None:
    stack = created(http)
    visit(browser, f"{address}/{stack}/maintenance")
    shows(browser, "There is no snapshot yet.")
    push(browser, "Take a snapshot")
    fill(browser, "Name", "before")
    confirm(browser, "Take a snapshot")
    shows(browser, "snapshot complete")
    more = {**TEMPLATE["resources"], "later": {"type": "OS::Heat::RandomString"}}
    assert http.patch(f"/stacks/{stack}", json={"template": {**TEMPLATE, "resources": more}}).status_code == 202
    shows(browser, "update complete")
    push(browser, "Restore before")
    shows(browser, "Deleted, since they came later: later.")
    confirm(browser, "Restore")
    shows(browser, "restore complete")
    push(browser, "Delete before")
    confirm(browser, "Delete")
    shows(browser, "There is no snapshot yet.")


class Readers(NoAccess):
    """Everybody may read in one project, and do nothing else."""

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def known(self, headers: Mapping[str, str]) -> Caller:
        return self.caller(headers)

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        return Caller("ann", self._project, roles=frozenset({"reader"}))


def test_who_may_only_read_sees_all_pages_and_sees_what_is_refused(
    browser: Browser, service: Running, http: httpx.Client, project: str
) -> None:
    stack = created(http)
    with serving(service.db, Readers(project), cloud=service.cloud) as url:
        for page, words in (
            ("template", "echo first"),
            ("drift", "Nothing differs"),
            ("maintenance", "There is no snapshot yet."),
            ("change", "Parameters"),
        ):
            visit(browser, f"{url}/dashboard/#/{project}/stacks/{stack}/{page}")
            shows(browser, words)
        assert browser.troubles() == []
        push(browser, "Suspend")
        browser.click("//dialog[@open]//button[normalize-space()='Suspend']")
        shows(browser, "You are not authorized to use suspend.")
        assert all("403" in each for each in browser.troubles())


def test_its_pages_can_be_used_on_a_phone_and_by_those_who_do_not_see_them(
    browser: Browser, http: httpx.Client, address: str
) -> None:
    stack = created(http)
    browser.resize(360, 800)
    for page, words in (
        ("template", "echo first"),
        ("change", "Parameters"),
        ("drift", "Nothing differs"),
        ("maintenance", "There is no snapshot yet."),
    ):
        browser.visit(f"{address}/{stack}/{page}")
        shows(browser, words)
        check_accessibility(browser)
    browser.resize(1280, 800)
