"""Handlers in threads of their own: no call waits for them for long, and one that hangs loses its turn."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import PATIENCE_S, until

from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation, Presence
from homeostat.plugins import resource
from homeostat.plugins.cloud import HandlerPool, Patience, PluginCloud, PluginClouds
from homeostat.plugins.things import GONE, Things, Turn
from homeostat.plugins.types import kind_of_class
from homeostat.store import schema
from homeostat.store.database import Database, sqlite_url

TYPE = "Example::Slow"
KIND = kind_of_class(TYPE)


class Slow(resource.Resource):
    """Its handlers wait for the test."""

    begun: dict[str, threading.Event]
    may_go_on: dict[str, threading.Event]
    made: list[str]
    deleted: list[str | None]

    def handle_create(self) -> None:
        self._wait("create")
        self.made.append("slow-1")
        self.resource_id_set("slow-1")

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> None:
        self._wait("update")

    def handle_delete(self) -> None:
        self.deleted.append(self.resource_id)

    def _wait(self, name: str) -> None:
        self.begun[name].set()
        assert self.may_go_on[name].wait(PATIENCE_S)


class Clock:
    def __init__(self) -> None:
        self.skip_s = 0.0

    def now(self) -> float:
        return time.time() + self.skip_s

    def monotonic(self) -> float:
        return time.monotonic() + self.skip_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cloud(tmp_path: Any, clock: Clock) -> Iterator[PluginCloud]:
    Slow.begun = {name: threading.Event() for name in ("create", "update")}
    Slow.may_go_on = {name: threading.Event() for name in ("create", "update")}
    Slow.made, Slow.deleted = [], []
    db = Database(sqlite_url(tmp_path / "plugins.db"), clock.now)
    schema.metadata.create_all(db.engine)
    everything = PluginClouds(db, {TYPE: Slow}, monotonic=clock.monotonic, patience=Patience(0.25, 60.0), threads=2)
    yield everything.of("p")
    for event in Slow.may_go_on.values():
        event.set()
    everything.close()
    db.close()


SPEC = {"properties": {}, "physical_name": "web-slow-row"}


def intent(token: str = "row-1") -> Creation:
    return Creation(token, SPEC)


def create(cloud: PluginCloud) -> Observation:
    """Ask for the creation until a thread has taken it up, as workers do."""
    answers: list[Observation] = []

    def is_taken_up() -> bool:
        (answer,) = cloud.create(KIND, [intent()])
        assert isinstance(answer, Observation | Transient), answer
        answers.extend([answer] if isinstance(answer, Observation) else ())
        return bool(answers)

    until(is_taken_up)
    return answers[0]


def status(cloud: PluginCloud, handle: str) -> Any:
    (look,) = cloud.observe(KIND, [handle])
    return look.properties.get("status") if look.present else look.presence


def test_a_call_does_not_wait_and_a_later_look_has_its_result(cloud: PluginCloud) -> None:
    handle = create(cloud).handle
    assert status(cloud, handle) == "working"
    (refused,) = cloud.update(KIND, [Change(handle, {"properties": {}})])
    assert isinstance(refused, Transient), "one handler at a time"
    assert create(cloud).handle == handle, "asked twice, it is made once"
    Slow.may_go_on["create"].set()
    until(lambda: status(cloud, handle) == "complete")
    assert Slow.made == ["slow-1"]
    (found,) = cloud.find(KIND, ["row-1"])
    (by_first_handle,) = cloud.observe(KIND, [handle])
    assert found.handle == by_first_handle.handle == "slow-1", "it is known by both"


def test_who_knows_it_by_its_first_handle_gets_the_answer_of_its_handler(cloud: PluginCloud) -> None:
    """Once: who is told that another one is at work asks again, and the handler is called twice."""
    handle = create(cloud).handle
    for event in Slow.may_go_on.values():
        event.set()
    until(lambda: status(cloud, handle) == "complete")
    (answer,) = cloud.update(KIND, [Change(handle, {"properties": {}})])
    assert isinstance(answer, Observation)
    assert answer.handle == handle


def test_a_deletion_waits_for_a_handler_that_has_not_found_the_thing(cloud: PluginCloud) -> None:
    """It is its own handler that has to say that it is gone: the look may be wrong."""
    Slow.may_go_on["create"].set()
    handle = create(cloud).handle
    until(lambda: status(cloud, handle) == "complete")
    (made,) = cloud._things.by_handle(KIND, [handle])[0].values()
    looking = cloud._things.take(made.record_id, lambda *_: True, lambda made: made.set_status(GONE, "not found"))
    assert looking is not None
    (refused,) = cloud.delete(KIND, [handle])
    assert isinstance(refused, Transient)
    assert Slow.deleted == []
    looking.finish(lambda _made: None)
    cloud.delete(KIND, [handle])
    until(lambda: Slow.deleted == ["slow-1"])


def test_what_waits_for_a_free_thread_is_not_begun(cloud: PluginCloud) -> None:
    answers = cloud.create(KIND, [intent(f"row-{number}") for number in range(3)])
    assert [isinstance(each, Transient) for each in answers] == [False, False, True]
    Slow.may_go_on["create"].set()


def test_a_handler_that_hangs_is_logged_once_and_when_it_ends(
    cloud: PluginCloud, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    turns, turn = (
        HandlerPool(Patience(hang_s=60.0), clock.monotonic),
        Things(cloud._things.db, "p").begin(KIND, "row-1", SPEC),
    )
    assert turn is not None
    alive: list[int] = []

    def hangs(_: Turn) -> None:
        alive.append(len(turns.alive()))
        clock.skip_s = 100.0
        alive.extend(len(turns.alive()) for _ in range(3))

    turns.run(turn, hangs)
    turns.close()
    assert alive == [1, 0, 0, 0]
    assert [(each.levelname, "hang" in each.message or "hung" in each.message) for each in caplog.records] == [
        ("ERROR", True),
        ("WARNING", True),
    ]


def sweep(cloud: PluginCloud) -> None:
    """As observers do with what was given up."""
    (look,) = cloud.find(KIND, ["row-1"])
    if look.present:
        cloud.delete(KIND, [look.handle])


def buried(cloud: PluginCloud, clock: Clock) -> None:
    """A creation hangs, and its thing is deleted before it is made."""
    handle = create(cloud).handle
    assert Slow.begun["create"].wait(PATIENCE_S)
    clock.skip_s = 200.0
    until(lambda: status(cloud, handle) == "spoilt")
    cloud.delete(KIND, [handle])
    until(lambda: status(cloud, handle) is Presence.ABSENT)
    assert Slow.deleted == [None]


def test_what_a_hanging_creation_makes_after_its_deletion_is_deleted(cloud: PluginCloud, clock: Clock) -> None:
    buried(cloud, clock)
    Slow.may_go_on["create"].set()

    def deleted() -> bool:
        sweep(cloud)
        return "slow-1" in Slow.deleted

    until(deleted)


def test_what_is_made_when_it_is_not_looked_for_any_more_is_deleted_by_its_maker(
    cloud: PluginCloud, clock: Clock
) -> None:
    buried(cloud, clock)
    clock.skip_s = 5000.0
    sweep(cloud)
    Slow.may_go_on["create"].set()
    until(lambda: Slow.deleted == [None, "slow-1"])


def test_what_a_hanging_creation_makes_before_its_deletion_is_known(cloud: PluginCloud, clock: Clock) -> None:
    handle = create(cloud).handle
    assert Slow.begun["create"].wait(PATIENCE_S)
    clock.skip_s = 200.0
    until(lambda: status(cloud, handle) == "spoilt")
    Slow.may_go_on["create"].set()
    until(lambda: cloud.observe(KIND, [handle])[0].properties["id"] == "slow-1")
    assert status(cloud, handle) == "spoilt", "a handler that lost its turn has no say"
    cloud.delete(KIND, [handle])
    until(lambda: status(cloud, handle) is Presence.ABSENT)
    assert Slow.deleted == ["slow-1"]
