"""What Nova last said of the servers of a project: what is listed anew, and when all of it is."""

import calendar
import time
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.changed_servers import KEPT_S, OwnChangedServers
from homeostat.clouds.openstack.collection import FEW
from homeostat.clouds.openstack.server_looks import FULL_S, MARGIN_S, SETTLED_S, ServerLooks
from homeostat.clouds.openstack.service import Wire

BEGIN = 1_700_000_000.0


class Nova:
    """Servers, with the time at which each was changed last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = BEGIN
        self.changed: dict[str, tuple[float, Wire]] = {}
        self.asked: list[dict[str, Any]] = []
        self.looks = ServerLooks(self.list)
        self.noted = OwnChangedServers(lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr("homeostat.clouds.openstack.server_looks.passed", lambda: self.now)

    def set(self, id: str, status: str = "ACTIVE") -> None:
        self.changed[id] = (self.now, {"id": id, "status": status})

    def change_quietly(self, id: str, status: str = "OTHER") -> None:
        """Change a server so that it is not listed as changed."""
        self.changed[id] = (self.changed[id][0], {"id": id, "status": status})

    def known(self) -> dict[str, str]:
        """Servers that a look at many need not ask for by themselves."""
        return {id: thing["status"] for id, thing in self.looks.things(lambda: self.noted.ages("p")).items()}

    def list(self, **filters: str) -> Iterator[Wire]:
        self.asked.append(filters)
        if "changes-since" not in filters:
            return (thing for _, thing in self.changed.values() if thing["status"] != "DELETED")
        since = calendar.timegm(time.strptime(filters["changes-since"], "%Y-%m-%dT%H:%M:%SZ"))
        return (thing for at, thing in self.changed.values() if at >= since)

    def seen(self) -> dict[str, str]:
        return {id: thing["status"] for id, thing in self.looks.things().items()}


@pytest.fixture
def nova(monkeypatch: pytest.MonkeyPatch) -> Nova:
    made = Nova(monkeypatch)
    for id in ("one", "two"):
        made.set(id)
    assert made.seen() == {"one": "ACTIVE", "two": "ACTIVE"}
    assert made.asked == [{}]
    return made


def test_after_the_first_look_only_what_has_changed_is_listed(nova: Nova) -> None:
    nova.now += 2 * MARGIN_S / 3
    nova.set("two", "SHUTOFF")
    nova.set("three")
    assert nova.seen() == {"one": "ACTIVE", "two": "SHUTOFF", "three": "ACTIVE"}
    assert [*nova.asked[1]] == ["changes-since"]


def test_a_server_that_nova_has_deleted_is_gone(nova: Nova) -> None:
    nova.now += 1
    nova.set("one", "DELETED")
    assert nova.seen() == {"two": "ACTIVE"}
    assert nova.seen() == {"two": "ACTIVE"}


def test_a_change_is_seen_although_the_clock_of_nova_is_behind(nova: Nova) -> None:
    nova.now += MARGIN_S / 2
    nova.seen()
    nova.now -= MARGIN_S / 2
    nova.set("one", "ERROR")
    nova.now += MARGIN_S / 2 + 1
    assert nova.seen()["one"] == "ERROR"


def test_all_are_listed_anew_now_and_then(nova: Nova) -> None:
    del nova.changed["one"]  # without a word about it
    nova.now += FULL_S - 1
    assert "one" in nova.seen()
    nova.now += 1
    assert nova.seen() == {"two": "ACTIVE"}
    assert nova.asked[-1] == {}


def test_all_are_listed_anew_when_the_own_clock_was_set_back(nova: Nova) -> None:
    nova.now -= 10 * MARGIN_S
    nova.set("one", "ERROR")
    assert nova.seen()["one"] == "ERROR"
    assert nova.asked[-1] == {}


def test_a_look_that_failed_counts_for_nothing(nova: Nova, monkeypatch: pytest.MonkeyPatch) -> None:
    nova.now += 1
    nova.set("one", "ERROR")

    def away(**_: str) -> Iterator[Wire]:
        raise TimeoutError

    monkeypatch.setattr(nova.looks, "_list", away)
    with pytest.raises(TimeoutError):
        nova.looks.things()
    monkeypatch.setattr(nova.looks, "_list", nova.list)
    nova.now += MARGIN_S + 1
    assert nova.seen()["one"] == "ERROR"


def test_what_a_single_look_has_shown_is_known(nova: Nova) -> None:
    nova.looks.learn({"id": "three", "status": "BUILD"}, nova.now)
    assert nova.seen()["three"] == "BUILD"
    nova.looks.learn({"id": "three", "status": "EARLIER"}, nova.now - 1)
    assert nova.seen()["three"] == "BUILD"


def test_what_is_noted_is_asked_for_by_itself_until_it_was_seen_after_its_change(nova: Nova) -> None:
    nova.now += FULL_S
    nova.seen()
    nova.noted.note("p", "one")
    nova.change_quietly("one")
    assert nova.known() == {"two": "ACTIVE"}
    nova.looks.learn({"id": "one", "status": "OTHER"}, nova.now)
    nova.now += SETTLED_S - 1
    assert nova.known() == {"two": "ACTIVE"}, "it may have been seen before its change had an effect"
    nova.now += 1
    nova.looks.learn({"id": "one", "status": "OTHER"}, nova.now)
    assert nova.known() == {"one": "OTHER", "two": "ACTIVE"}
    assert "changes-since" in nova.asked[-1]


def test_what_is_noted_during_a_look_is_not_known_by_it(nova: Nova) -> None:
    nova.now += MARGIN_S + 1
    nova.seen()
    asked = iter([{}, {"one": 0.0}])
    assert [*nova.looks.things(lambda: next(asked))] == ["two"]


def test_what_nova_lists_as_changed_counts_although_it_is_noted(nova: Nova) -> None:
    nova.now += 1
    nova.noted.note("p", "one")
    nova.set("one", "ERROR")
    assert nova.known() == {"one": "ERROR", "two": "ACTIVE"}


def test_many_that_are_noted_are_one_list(nova: Nova) -> None:
    many = [f"s{number}" for number in range(FEW + 1)]
    for id in many:
        nova.set(id)
    nova.seen()
    nova.now += MARGIN_S + 1
    for id in many:
        nova.noted.note("p", id)
        nova.change_quietly(id)
    assert nova.known() == {"one": "ACTIVE", "two": "ACTIVE", **dict.fromkeys(many, "OTHER")}
    assert nova.asked[-1] == {}


def test_a_note_is_needed_for_no_longer_than_it_is_kept(nova: Nova) -> None:
    """Whenever a process looks, and whether or not it does meanwhile: what is older is known from a list of all."""
    assert KEPT_S >= FULL_S + SETTLED_S
    nova.now += MARGIN_S + 1
    nova.noted.note("p", "one")
    nova.change_quietly("one")
    begun = nova.now
    while nova.now < begun + KEPT_S + FULL_S:
        assert nova.known().get("one", "OTHER") == "OTHER"
        nova.now += 37
    assert nova.known()["one"] == "OTHER"


def test_notes_are_of_one_project_and_of_the_last_minutes() -> None:
    now = 0.0
    noted = OwnChangedServers(lambda: now)
    noted.note("p", "one")
    noted.note("q", "two")
    now = 60.0
    assert noted.ages("p") == {"one": 60.0}
    noted.note("p", "one")
    assert noted.ages("p") == {"one": 0.0}
    now += KEPT_S
    assert noted.ages("p") == noted.ages("q") == {}
