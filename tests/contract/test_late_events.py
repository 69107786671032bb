"""Events of a transaction are stored at its end (ADR 0113); readers of events in it find them before that."""

from sqlalchemy import select
from tests.contract.store_cases import NOW, add_stack

from homeostat.model.status import Action, Status
from homeostat.store import events, schema
from homeostat.store.builtin import event_sinks
from homeostat.store.database import Database, Transaction
from homeostat.store.stacks import stack_state

SINK = {"type": "webhook", "url": "https://hooks.example.com/"}


def append(tx: Transaction, stack_id: str, status: Status) -> None:
    events.append(tx, stack_id, [stack_state.stack_event(stack_id, "web", Action.UPDATE, status)], NOW)


def test_a_new_sink_begins_after_the_events_of_its_transaction(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        append(tx, stack_id, Status.FAILED)
        event_sinks.set_sinks(tx, stack_id, [SINK])
        append(tx, stack_id, Status.IN_PROGRESS)
    with database.read() as tx:
        statuses = [event.status for event in events.page(tx, [stack_id], newest_first=False)]
        (cursor,) = tx.execute(select(schema.event_sink.c.cursor)).scalars()
        later = events.page(tx, [stack_id], after=cursor, newest_first=False)
    assert statuses == [Status.IN_PROGRESS, Status.FAILED, Status.IN_PROGRESS]
    assert [event.status for event in later] == [Status.IN_PROGRESS]


def test_the_newest_event_is_that_of_the_transaction(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        before = events.newest(tx, [stack_id])
        append(tx, stack_id, Status.FAILED)
        assert events.newest(tx, [stack_id]) > before
