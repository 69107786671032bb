"""Marking resources unhealthy, on SQLite and on PostgreSQL: one transaction beside those of passes."""

from functools import partial

import pytest
from tests.contract.store_cases import NOW, add_stack, at_once, claim, resource, shard_row

from homeostat.model.errors import Rejected, Superseded
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner.policies.unhealthy import mark_of
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store.database import Database
from homeostat.store.shards import leases, shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import views

WRITERS = 8


def made(database: Database, count: int = 1) -> str:
    """A stack with so many servers that are complete: `r0`, `r1`, …; the handle of each is its name with an h."""
    stack_id = add_stack(database)
    rows = Writes()
    for number in range(count):
        rows.insert(
            resource(
                f"k{number}", stack_id, f"r{number}", action=Action.CREATE, status=Status.COMPLETE, handle=f"hr{number}"
            )
        )
    with database.write() as tx:
        shard_state.record(tx, stack_id, rows, NOW)
    return stack_id


def mark(database: Database, stack_id: str, request: MarkRequest, *targets: str) -> list[str]:
    found = Marks(database).mark(stack_id, request, {f"[{place}]": each for place, each in enumerate(targets)})
    return [each.state for each in found]


def loaded(database: Database, stack_id: str, name: str = "r0") -> Resource:
    with database.read() as tx:
        (row,) = views.resources(tx, stack_id, [name])[0].values()
    return row


def test_a_mark_is_kept_counted_and_wakes(database: Database) -> None:
    stack_id = made(database)
    before = shard_row(database, stack_id)
    assert mark(database, stack_id, MarkRequest(True, "it smells", "ann", "nose", 60.0), "hr0") == ["CHECK_FAILED"]
    row, shard = loaded(database, stack_id), shard_row(database, stack_id)
    stored = mark_of(row)
    assert stored is not None
    assert (stored.reason, stored.by, stored.reporter) == ("it smells", "ann", "nose")
    assert stored.expires_at == pytest.approx(stored.since + 60.0)
    assert (row.version, shard.failures, shard.wakes) == (1, before.failures + 1, before.wakes + 1)
    assert mark(database, stack_id, MarkRequest(False), "r0") == ["CHECK_COMPLETE"]
    assert (loaded(database, stack_id).marks, shard_row(database, stack_id).failures) == (None, before.failures)


def test_marks_at_once_are_all_kept_and_counted_right(database: Database) -> None:
    """Each says something of all, in an order of its own: nobody waits for ever for another."""
    stack_id = made(database, WRITERS)
    names = [f"r{number}" for number in range(WRITERS)]
    turned = [names[number:] + names[:number] for number in range(WRITERS)]
    at_once([partial(mark, database, stack_id, MarkRequest(True, f"by {mine[0]}"), *mine) for mine in turned])
    reasons = {loaded(database, stack_id, name).reason for name in names}
    assert len(reasons) == 1
    assert {loaded(database, stack_id, name).version for name in names} == {WRITERS}
    assert shard_row(database, stack_id).failures == WRITERS


def test_a_pass_that_has_the_row_in_hand_stores_nothing(database: Database) -> None:
    stack_id = made(database)
    lease = claim(database, stack_id)
    mine = loaded(database, stack_id)
    mark(database, stack_id, MarkRequest(True), "r0")
    mine.status = Status.IN_PROGRESS
    intents = Writes()
    intents.intend(mine)
    with database.write() as tx:
        assert leases.renew(tx, lease, NOW, 5.0) > lease.wakes
        with pytest.raises(Superseded):
            shard_state.record(tx, stack_id, intents, NOW)
    assert loaded(database, stack_id).status == Status.FAILED


def test_what_a_pass_has_begun_is_not_marked(database: Database) -> None:
    stack_id = made(database)
    mine = loaded(database, stack_id)
    mine.action, mine.status = Action.UPDATE, Status.IN_PROGRESS
    with database.write() as tx:
        intents = Writes()
        intents.intend(mine)
        shard_state.record(tx, stack_id, intents, NOW)
    with pytest.raises(Rejected, match="r0 is UPDATE_IN_PROGRESS") as caught:
        mark(database, stack_id, MarkRequest(True), "r0")
    assert caught.value.fault == "ActionInProgress"
    assert shard_row(database, stack_id).failures == 0
