"""The store's contract, on SQLite and on PostgreSQL: stacks that go on from one revision to the next by themselves."""

from collections.abc import Collection
from functools import partial
from typing import Any

from sqlalchemy import select, update
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, at_once, locked, shard_row, stack_row

from homeostat.convergence.members import rolling_update
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import action_begin, revisions, stacks
from homeostat.store.stacks.contents import Content

OLD, NEW = {"type": "T::Old"}, {"type": "T::New"}


def group(old: int, *, pause: float = 0, count: int = 2500) -> Content:
    """A group in the middle of its rolling update: the lowest `old` members have the earlier definition."""
    rollout = {"target": count, "max_batch_size": 1000, "min_in_service": 0, "pause_time": pause}
    earlier = [{"resource_def": OLD, "numbers": [[0, old]]}] if old else []
    template = {"resource_def": NEW, "index_var": "%index%", "count": count, "skip": [], "rollout": rollout}
    return Content("group", {**template, "earlier": earlier}, files={"f": "text"})


def rolling(db: Database, **more: Any) -> str:
    """The stack of a group of 2,500 members, of which 500 have moved; all its shards are awake."""
    parent = add_stack(db, "parent")
    stack_id = add_stack(db, "group", shard_count=3, parent_id=parent, parent_shard=0)
    revision = revisions.encode(db, group(2000, **more), shards=3, intent="i")
    with db.write() as tx:
        action_begin.revise(tx, locked(tx, stack_id), Action.UPDATE, revision, NOW, TIMEOUT_S)
    return stack_id


def rest(db: Database, stack_id: str, numbers: Collection[int], at: float = NOW) -> float | None:
    """What the last passes do when these shards are as they should be."""
    revision = stack_row(db, stack_id).revision
    table, step_at = schema.shard, None
    for number in numbers:
        with db.write() as tx:
            row = locked(tx, stack_id)
            mine = (table.c.stack_id == stack_id, table.c.number == number)
            tx.execute(update(table).where(*mine).values(settled_revision=revision, wake_at=None))
            batch = rolling_update.next_batch(tx, stacks.facts(stack_row(db, stack_id)))
            step_at = rolling_update.settle(tx, row, revision, at, batch)
    return step_at


def awake(db: Database, stack_id: str) -> list[int]:
    return [number for number in range(3) if shard_row(db, stack_id, number).wake_at is not None]


def numbers(db: Database, stack_id: str) -> list[int]:
    table = schema.revision
    with db.read() as tx:
        return list(tx.execute(select(table.c.number).where(table.c.stack_id == stack_id).order_by("number")).scalars())


def test_the_last_shard_to_rest_makes_the_next_batch(database: Database) -> None:
    stack_id = rolling(database)
    deadline = stack_row(database, stack_id).deadline
    rest(database, stack_id, [0, 1])
    assert stack_row(database, stack_id).revision == 2
    rest(database, stack_id, [2], NOW + 5)
    after = stack_row(database, stack_id)
    assert (after.revision, after.action, after.status) == (3, Action.UPDATE, Status.IN_PROGRESS)
    assert after.deadline == deadline, "a batch gives no more time"
    assert awake(database, stack_id) == [1], "members 1000 to 1999 move"
    with database.read() as tx:
        content, intent = revisions.content_of(tx, stack_id, 3), revisions.intent_of(tx, stack_id, 3)
    assert content.template["earlier"] == [{"resource_def": OLD, "numbers": [[0, 1000]]}]
    assert (content.files, intent) == ({"f": "text"}, "i")
    assert [shard_row(database, stack_id, number).settled_revision for number in range(3)] == [3, 2, 3]


def test_at_the_end_of_the_series_the_stack_is_complete(database: Database) -> None:
    stack_id = rolling(database)
    for _ in range(3):
        rest(database, stack_id, [0, 1, 2])
    after = stack_row(database, stack_id)
    assert (after.revision, after.status, after.complete_revision) == (4, Status.COMPLETE, 4)
    assert numbers(database, stack_id) == [1, 4], "revisions in between are not kept"


def test_a_pause_is_kept_in_the_row(database: Database) -> None:
    stack_id = rolling(database, pause=60)
    assert rest(database, stack_id, [0, 1, 2]) == NOW + 60
    assert stack_row(database, stack_id).step_at == NOW + 60
    assert rest(database, stack_id, [0], NOW + 30) == NOW + 60, "asked again, it is not put off again"
    assert stack_row(database, stack_id).revision == 2
    rest(database, stack_id, [0], NOW + 60)
    after = stack_row(database, stack_id)
    assert (after.revision, after.step_at) == (3, None)


def test_a_newer_revision_ends_the_pause(database: Database) -> None:
    stack_id = rolling(database, pause=60)
    rest(database, stack_id, [0, 1, 2])
    with database.write() as tx:
        action_begin.revise(tx, locked(tx, stack_id), Action.DELETE, revisions.empty(database), NOW, TIMEOUT_S)
    assert stack_row(database, stack_id).step_at is None
    with database.write() as tx:
        assert rolling_update.settle(tx, locked(tx, stack_id), 2, NOW + 60, None) is None, (
            "the old revision decides nothing any more"
        )
    assert stack_row(database, stack_id).revision == 3


def test_shards_that_rest_in_the_same_instant_make_one_batch(database: Database) -> None:
    stack_id = rolling(database)
    at_once([partial(rest, database, stack_id, [number]) for number in range(3)])
    assert stack_row(database, stack_id).revision == 3


def test_a_check_does_not_go_on_with_the_series(database: Database) -> None:
    stack_id = rolling(database)
    with database.write() as tx:
        action_begin.check(tx, locked(tx, stack_id), NOW, TIMEOUT_S)
    rest(database, stack_id, [0, 1, 2])
    after = stack_row(database, stack_id)
    assert (after.revision, after.status) == (3, Status.FAILED)
    assert "the last update did not complete" in after.reason


def test_a_stack_that_no_group_owns_has_no_series(database: Database) -> None:
    stack_id = add_stack(database)
    rest(database, stack_id, [0])
    assert stack_row(database, stack_id).status == Status.COMPLETE
