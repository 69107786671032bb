"""Servers whose host does not answer: what is seen of it, by policy, and when it is looked at again."""

from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.answers import Forbidden
from homeostat.clouds.openstack.server_body import object_of
from homeostat.clouds.openstack.server_hosts import HOST, LOOK_S, REFUSED_S, ServerHosts
from homeostat.clouds.openstack.service import Wire
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import Transient

SINCE = "2026-01-01T00:00:00.000000"
SERVICES = [{"host": "a", "state": "down", "updated_at": SINCE}, {"host": "b", "state": "up", "updated_at": SINCE}]


class Nova:
    """The list of services, or the error that it answers."""

    def __init__(self, answer: list[Wire] | Exception) -> None:
        self.answer = answer
        self.asked = 0
        self.now = 0.0
        self.hosts = ServerHosts(self.listed, lambda: self.now)

    def listed(self) -> Iterator[Wire]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return iter(self.answer)


def test_a_host_that_does_not_answer_is_named_with_the_time() -> None:
    nova = Nova(SERVICES)
    assert nova.hosts.silence_of({HOST: "a"}) == f"its host a does not answer since {SINCE}"
    assert nova.hosts.silence_of({HOST: "b", "host_status": "UNKNOWN"}) == "", "the list is newer"
    assert nova.asked == 1
    nova.now, nova.answer = LOOK_S, Transient("away")
    assert nova.hosts.silence_of({HOST: "a"}), "no answer is no news"
    nova.now, nova.answer = 2 * LOOK_S, []
    assert not nova.hosts.silence_of({HOST: "a"})


@pytest.mark.parametrize(
    ("status", "words"), [("UNKNOWN", True), ("DOWN", True), ("UP", False), ("MAINTENANCE", False), ("", False)]
)
def test_where_policy_shows_the_status_alone(status: str, words: bool) -> None:
    nova = Nova(Forbidden("no"))
    assert nova.hosts.silence_of({"host_status": status}) == ("its host does not answer" if words else "")
    assert nova.asked == 0
    assert bool(nova.hosts.silence_of({HOST: "a", "host_status": status})) is words
    nova.now = REFUSED_S - 1
    nova.hosts.silence_of({HOST: "a"})
    assert nova.asked == 1


@pytest.mark.parametrize(
    ("server", "status"),
    [
        ({"status": "ACTIVE"}, "unreachable"),
        ({"status": "ACTIVE", "OS-EXT-STS:task_state": "deleting"}, "deleting"),
        ({"status": "SHUTOFF"}, "stopped"),
        ({"status": "ERROR"}, "error"),
    ],
)
def test_what_such_a_server_is(server: dict[str, Any], status: str) -> None:
    seen = object_of({**server, "_silence": "its host a does not answer since then"})
    assert seen["status"] == status
    assert "its host a" in seen["fault"]
    assert "unreachable" in KINDS["server"].statuses.busy


def test_the_security_groups_of_a_server_are_named_once_however_many_ports_have_them() -> None:
    groups = [{"name": "web"}, {"name": "default"}, {"name": "web"}]
    assert object_of({"status": "ACTIVE", "security_groups": groups})["security_groups"] == ["default", "web"]
    assert "security_groups" not in object_of({"status": "BUILD"}), "Nova does not say yet"
