"""Who has asked for what: events, revisions and broken locks name the user and the request."""

import time
from collections.abc import Iterator
from typing import Any

import bcrypt
import httpx
import pytest

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import until
from tests.wire.running import database, serving, working

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"one": {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}},
}


class Site:
    """A service with two users of one project, and a stack of the first."""

    def __init__(self, url: str) -> None:
        self.ada = httpx.Client(base_url=f"{url}/v1/shop", auth=("ada", "x"))
        self.bob = httpx.Client(base_url=f"{url}/v1/shop", auth=("bob", "x"))
        self.made = self.ada.post("stacks", json={"stack_name": "web", "template": TEMPLATE})
        assert self.made.status_code == 201, self.made.text
        self.path = f"stacks/web/{self.made.json()['stack']['id']}"
        self.come_to("CREATE_COMPLETE")

    def come_to(self, status: str) -> None:
        until(lambda: self.ada.get(self.path).json()["stack"]["stack_status"] == status, status)

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ada.get(f"{self.path}/events").json()["events"]
        return found

    def act(self, who: httpx.Client, action: str, given: Any = None) -> httpx.Response:
        return who.post(f"{self.path}/actions", json={action: given})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    secret = bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode()
    passwords = directory / "htpasswd"
    passwords.write_text(f"ada:{secret}:shop:member\nbob:{secret}:shop:admin\n")
    with (
        database(directory) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, SimulatedCloud(time.time), url=url),
    ):
        yield Site(url)


def test_the_request_that_made_a_stack_is_named(site: Site) -> None:
    (begun,) = [each for each in site.events() if each["resource_status_reason"] == "Stack CREATE started"]
    assert begun["requested_by"] == "ada"
    assert begun["request_id"] == site.made.headers["x-openstack-request-id"]
    (ended,) = [each for each in site.events() if each["resource_status"] == "CREATE_COMPLETE"][-1:]
    assert (ended["requested_by"], ended["request_id"]) == (None, None)


def test_each_action_names_who_asked_for_it(site: Site) -> None:
    actions = {"suspend": "SUSPEND_COMPLETE", "resume": "RESUME_COMPLETE", "check": "CHECK_COMPLETE"}
    for action, state in actions.items():
        answer = site.act(site.bob, action)
        assert answer.status_code in (200, 202), answer.text
        site.come_to(state)
        of_request = answer.headers["x-openstack-request-id"]
        found = {each["requested_by"] for each in site.events() if each["request_id"] == of_request}
        assert found == {"bob"}, action


def test_a_mark_names_who_made_it(site: Site) -> None:
    answer = site.ada.patch(
        f"{site.path}/resources/one", json={"mark_unhealthy": True, "resource_status_reason": "ill"}
    )
    assert answer.status_code == 200, answer.text
    named = {each["requested_by"] for each in site.events() if each["resource_status_reason"].endswith("ill")}
    assert "ada" in named
    until(lambda: site.ada.get(f"{site.path}").json()["stack"]["stack_status"].endswith("COMPLETE"), "it is mended")


def test_an_administrator_who_breaks_a_lock_is_named(site: Site) -> None:
    assert site.act(site.ada, "lock", {"level": "stacks", "reason": "release"}).status_code == 200
    site.come_to("LOCK_COMPLETE")
    answer = site.act(site.bob, "unlock")
    assert answer.status_code == 200
    of_request = answer.headers["x-openstack-request-id"]
    (broken,) = [each for each in site.events() if "breaks the lock" in each["resource_status_reason"]]
    assert (broken["requested_by"], broken["request_id"]) == ("bob", of_request)
    assert broken["resource_status_reason"] == "bob breaks the lock: the stack was locked by ada (release)"
    until(lambda: site.ada.get(site.path).json()["stack"]["stack_status"] != "UNLOCK_IN_PROGRESS", "it is unlocked")
    listed = site.ada.get(f"{site.path}/revisions").json()["revisions"]
    unlocked = next(each for each in listed if each["action"] == "UNLOCK")
    assert (unlocked["requested_by"], unlocked["request_id"]) == ("bob", of_request)


def test_who_takes_their_own_lock_away_breaks_none(site: Site) -> None:
    before = len([each for each in site.events() if "breaks the lock" in each["resource_status_reason"]])
    assert site.act(site.ada, "lock", {"level": "stacks"}).status_code == 200
    site.come_to("LOCK_COMPLETE")
    assert site.act(site.ada, "unlock").status_code == 200
    until(lambda: site.ada.get(site.path).json()["stack"]["stack_status"] != "UNLOCK_IN_PROGRESS", "it is unlocked")
    assert len([each for each in site.events() if "breaks the lock" in each["resource_status_reason"]]) == before
