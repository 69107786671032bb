"""Who is told of events, and how far, on SQLite and on PostgreSQL."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, locked, revise

from homeostat.model.plan import Event
from homeostat.model.status import Action
from homeostat.store import events, schema
from homeostat.store.builtin import event_sinks
from homeostat.store.builtin.event_sinks import TAKEN_S, EventHorizon, Sink
from homeostat.store.database import Database
from homeostat.store.operation import purge
from homeostat.store.operation.purge import Rules
from homeostat.store.stacks import action_begin, action_end, revisions
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import EMPTY, Content

ONE = {"type": "webhook", "url": "https://one.example.com/"}
TWO = {"type": "webhook", "url": "https://two.example.com/"}
FOR_EVER = 2**62


def desired(*wanted: dict[str, Any]) -> Content:
    return Content("template", {}, environment={"event_sinks": list(wanted)})


def add(db: Database, *wanted: dict[str, Any], name: str = "web") -> str:
    revision = revisions.encode(db, desired(*wanted))
    with db.write() as tx:
        action_begin.add(tx, NewStack(name, "p", name), revision, NOW, TIMEOUT_S)
    return name


def add_event(db: Database, stack_id: str, name: str, at: float = NOW) -> None:
    with db.write() as tx:
        events.append(tx, stack_id, [Event(name, "CREATE", "COMPLETE", "done", "OS::Heat::None")], at)


def take(db: Database, at: float = NOW, horizon: int = FOR_EVER, limit: int = 10) -> list[Sink]:
    with db.read() as tx:
        keys = event_sinks.due(tx, at, horizon, limit)
    with db.write() as tx:
        return event_sinks.take(tx, keys, at)


def untold(db: Database, sink: Sink) -> list[Any]:
    with db.read() as tx:
        return event_sinks.undelivered(tx, sink, FOR_EVER, 100)


def deliver(db: Database, sink: Sink) -> list[str]:
    """Tell it everything. Gives what was told."""
    rows = untold(db, sink)
    with db.write() as tx:
        assert event_sinks.release(tx, replace(sink, cursor=rows[-1].seq, due_at=0.0))
    return [row.name for row in rows]


def sink_rows(db: Database) -> list[Any]:
    with db.read() as tx:
        return list(tx.execute(select(schema.event_sink).order_by(schema.event_sink.c.stack_id)))


def test_a_sink_gets_a_new_stack_from_its_first_event_on(database: Database) -> None:
    add(database, ONE)
    add(database, name="other")
    add_event(database, "web", "a")
    (sink,) = take(database)
    assert (sink.stack_id, sink.settings, sink.project) == ("web", ONE, "p")
    assert deliver(database, sink) == ["web", "a"]
    assert take(database) == []
    add_event(database, "other", "b")
    assert take(database) == [], "others' events are nobody's business"
    add(database, TWO, name="third")
    assert [each.stack_id for each in take(database)] == ["third"], "nor are those of others who tell"


def test_who_takes_a_sink_has_it_until_its_time_is_over(database: Database) -> None:
    add(database, ONE)
    (first,) = take(database)
    assert take(database, NOW + TAKEN_S - 1) == []
    (second,) = take(database, NOW + TAKEN_S)
    assert [row.name for row in untold(database, second)] == ["web"], "what was not said to be told is told again"
    with database.write() as tx:
        assert not event_sinks.release(tx, replace(first, cursor=99, due_at=0.0)), "another user has it"
    assert [each.cursor for each in sink_rows(database)] == [0]
    assert deliver(database, second) == ["web"]


def test_who_comes_second_takes_what_is_left(database: Database) -> None:
    for name in ("a", "b"):
        add(database, ONE, name=name)
    with database.read() as tx:
        keys = event_sinks.due(tx, NOW, FOR_EVER, 10)
    assert [each.stack_id for each in take(database, limit=1)] == ["a"]
    with database.write() as tx:
        assert [each.stack_id for each in event_sinks.take(tx, keys, NOW)] == ["b"]


def test_what_another_one_is_taking_is_passed_over(database: Database) -> None:
    if database.is_sqlite:
        pytest.skip("only one writes at a time")
    add(database, ONE)
    with database.read() as tx:
        keys = event_sinks.due(tx, NOW, FOR_EVER, 10)
    with database.write() as tx:
        assert len(event_sinks.take(tx, keys, NOW)) == 1
        assert take(database) == [], "and not waited for"


def test_those_that_fail_come_last(database: Database) -> None:
    for name in ("a", "b"):
        add(database, ONE, name=name)
    (first,) = take(database, limit=1)
    with database.write() as tx:
        event_sinks.release(tx, replace(first, due_at=0.0, failures=1, failing_since=NOW, reason="no answer"))
    assert [each.stack_id for each in take(database, limit=1)] == ["b"]
    with database.read() as tx:
        (row,) = event_sinks.failing(tx)
    assert (row.stack, row.settings, row.failing_since, row.reason) == ("a", ONE, NOW, "no answer")


def test_an_update_adds_and_removes_sinks(database: Database) -> None:
    add(database, ONE)
    revise(database, "web", desired(ONE, TWO))
    found = {each.settings["url"]: each for each in take(database)}
    assert [row.reason for row in untold(database, found[ONE["url"]])] == [
        "Stack CREATE started",
        "Stack UPDATE started",
    ]
    assert [row.reason for row in untold(database, found[TWO["url"]])] == ["Stack UPDATE started"]
    revise(database, "web", desired(TWO))
    assert [each.settings for each in sink_rows(database)] == [TWO]


def test_nested_stacks_are_delivered_with_their_root(database: Database) -> None:
    add(database, ONE)
    with database.write() as tx:
        nested = NewStack("in", "p", "web-in", parent_id="web", root_id="web", depth=1)
        action_begin.add(tx, nested, revisions.encode(database, desired(ONE)), NOW, TIMEOUT_S)
    revise(database, "in", desired(TWO))
    add_event(database, "in", "a")
    add_event(database, "web", "b")
    assert [each.stack_id for each in sink_rows(database)] == ["web"]
    (sink,) = take(database)
    assert deliver(database, sink) == ["web", "web-in", "web-in", "a", "b"]


def test_a_sink_goes_when_its_stack_is_deleted_and_all_is_delivered(database: Database) -> None:
    add(database, ONE)
    revise(database, "web", EMPTY, Action.DELETE)
    (sink,) = take(database)
    assert deliver(database, sink) == ["web", "web"]
    assert len(sink_rows(database)) == 1, "there is more to come"
    with database.write() as tx:
        action_end.finish(tx, locked(tx, "web"), NOW)
    (sink,) = take(database)
    assert deliver(database, sink) == ["web"]
    assert sink_rows(database) == []


def test_a_purge_of_the_stack_takes_its_sinks(database: Database) -> None:
    add(database, ONE)
    with database.write() as tx:
        tx.execute(update(schema.stack).values(deleted_at=NOW - 1.0))
    assert purge.purge(database, Rules(deleted_before=NOW, events_max=1)).stacks
    assert sink_rows(database) == []


def test_what_is_too_old_is_counted(database: Database) -> None:
    add(database, ONE)
    add_event(database, "web", "a", NOW + 10)
    add_event(database, "web", "b", NOW + 20)
    (sink,) = take(database)
    rows = untold(database, sink)
    with database.read() as tx:
        assert event_sinks.undelivered_before(tx, sink, FOR_EVER, NOW + 15) == (2, rows[1].seq)
        assert event_sinks.undelivered_before(tx, sink, FOR_EVER, NOW) == (0, 0)


def test_without_sinks_nothing_is_due(database: Database) -> None:
    add_stack(database)
    with database.read() as tx:
        assert not event_sinks.any_due(tx, NOW)
    add(database, ONE, name="told")
    with database.read() as tx:
        assert event_sinks.any_due(tx, NOW)


def test_an_event_that_turns_up_late_is_waited_for(database: Database) -> None:
    """Its number is smaller than that of one which is there already."""
    horizon = EventHorizon()
    if database.is_sqlite:  # only one writes at a time
        add(database, ONE)
        with database.read() as tx:
            assert horizon.advance(tx) == 1
        return
    add(database, ONE)
    with database.write() as late:
        late.execute(update(schema.stack).where(schema.stack.c.id == "web").values(reason="late"))
        events.append(late, "web", [Event("late", "CREATE", "COMPLETE", "", "OS::Heat::None")], NOW)
        add(database, name="early")
        for _ in range(3):
            with database.read() as tx:
                sure = horizon.advance(tx)
    assert sure < 2, "the one who writes may have any number up to the newest"
    for _ in range(2):
        with database.read() as tx:
            sure = horizon.advance(tx)
    (sink,) = take(database, horizon=sure)
    assert [row.name for row in untold(database, sink)] == ["web", "late"]
