"""Locks over HTTP (LK1, LK7), and the genuine clients that suspend and resume."""

import itertools
from typing import Any

import httpx
import pytest

from tests.waiting import until
from tests.wire.running import Running, settled

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"srv": SERVER}}
_NUMBERS = itertools.count()


class Stack:
    """One stack with one server that is well."""

    def __init__(self, service: Running, http: httpx.Client, url: str) -> None:
        self.service, self.http, self.url = service, http, url

    def shown(self) -> dict[str, Any]:
        return dict(self.http.get(self.url).json()["stack"])

    def act(self, action: str, given: Any = None) -> httpx.Response:
        return self.http.post(f"{self.url}/actions", json={action: given})

    def come_to(self, status: str) -> None:
        settled(self.http, self.shown()["id"], status=status)

    def server(self) -> dict[str, Any]:
        handle = self.http.get(f"{self.url}/resources/srv").json()["resource"]["physical_resource_id"]
        return self.service.cloud.things("server").get(handle, {})


@pytest.fixture
def stack(service: Running, http: httpx.Client) -> Stack:
    created = http.post("stacks", json={"stack_name": f"locked{next(_NUMBERS)}", "template": TEMPLATE})
    assert created.status_code == 201, created.text
    settled(http, created.json()["stack"]["id"], status="CREATE_COMPLETE")
    return Stack(service, http, created.headers["location"])


@pytest.mark.shows("LK1", "LK6")
def test_a_stack_is_locked_with_its_servers_and_unlocked(stack: Stack) -> None:
    assert stack.shown()["lock"] is None
    answer = stack.act("lock", {"level": "all", "reason": "disks", "expires_in": 3600})
    assert (answer.status_code, answer.json()) == (200, None)
    stack.come_to("LOCK_COMPLETE")
    lock = stack.shown()["lock"]
    assert (lock["level"], lock["owner"], lock["reason"]) == ("all", None, "disks")
    assert lock["locked_at"] < lock["expires_at"]
    assert stack.server()["locked"] is True
    assert stack.act("unlock").status_code == 200
    stack.come_to("UNLOCK_COMPLETE")
    assert stack.shown()["lock"] is None
    assert stack.server()["locked"] is False


@pytest.mark.shows("LK7")
def test_a_lock_says_who_may_not_do_what_and_why(stack: Stack) -> None:
    stack.act("lock", {"level": "stacks", "reason": "disks"})
    stack.come_to("LOCK_COMPLETE")
    assert not stack.server().get("locked")
    tries = [
        stack.http.put(stack.url, json={"template": TEMPLATE}),
        stack.http.patch(stack.url, json={}),
        stack.http.delete(stack.url),
        stack.act("suspend"),
        stack.act("check"),
        stack.act("converge"),
        stack.http.post(f"{stack.url}/resources/srv/actions", json={"converge": None}),
        stack.http.patch(f"{stack.url}/convergence", json={"convergence": {"enabled": False}}),
    ]
    for answer in tries:
        fault = answer.json()
        assert (answer.status_code, fault["error"]["type"]) == (409, "StackLocked"), answer.text
        assert "is locked (disks): unlock it first" in fault["error"]["message"]
    assert stack.act("observe").status_code == 200
    assert stack.act("unlock").status_code == 200


@pytest.mark.shows("LK7")
def test_why_nothing_is_healed_is_explained(stack: Stack) -> None:
    stack.act("lock", {"reason": "disks"})
    stack.come_to("LOCK_COMPLETE")
    stack.service.cloud.vanish(stack.server()["id"])
    stack.act("observe")

    def explanation() -> Any:
        found = stack.http.get(f"{stack.url}/explain").json()["explanation"]["resources"]
        return found[0] if found else None

    why = until(explanation, "the explanation")
    assert (why["resource_name"], why["why"]) == ("srv", "locked")
    assert why["reason"] == "there is no such server; the stack is locked: disks"
    assert why["released_by"] == "the stack being unlocked"
    stack.act("unlock")
    stack.come_to("UNLOCK_COMPLETE")
    until(lambda: stack.server().get("status") == "active", "the server to be back")


def test_a_lock_ends_by_itself(stack: Stack) -> None:
    assert stack.act("lock", {"expires_in": 0.5}).status_code == 200
    until(lambda: stack.shown()["stack_status"] == "UNLOCK_COMPLETE", "the lock to be over")
    assert stack.server()["locked"] is False
