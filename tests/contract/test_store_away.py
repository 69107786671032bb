"""The store's contract, on SQLite and on PostgreSQL: which members of a group are away, and a batch that waits."""

from functools import partial
from typing import Any

from sqlalchemy import update
from tests.contract.store_cases import NOW, add_stack, at_once, locked, resource, shard_row, stack_row
from tests.contract.test_store_series import awake, group, rolling

from homeostat.convergence.facts.absences import absences
from homeostat.convergence.members import rolling_update
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition
from homeostat.model.marks import Marks, UnhealthyMark
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status
from homeostat.model.world import Resource, Seen
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import away, brakes, shard_state
from homeostat.store.shards.away import Unrest
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import revisions, stacks


def store(db: Database, stack_id: str, *rows: Resource, absent: str = "") -> None:
    """Rows of a stack; those of these names were not found."""
    writes = Writes()
    for row in rows:
        writes.insert(row)
        presence = Presence.ABSENT if row.name in absent.split() else Presence.PRESENT
        writes.seen[row.key] = (row, Seen(Observation(presence, row.handle, {}, NOW), 1))
    with db.write() as tx:
        shard_state.record(tx, stack_id, writes, NOW)


def shard(db: Database, stack_id: str, number: int = 0, **values: Any) -> None:
    table = schema.shard
    with db.write() as tx:
        tx.execute(update(table).where(table.c.stack_id == stack_id, table.c.number == number).values(**values))


def found(db: Database, stack_id: str) -> dict[str, Absence]:
    with db.read() as tx:
        return absences(tx, stacks.facts(stack_row(db, stack_id)), GroupDefinition({}, None, 0))


def test_who_is_away(database: Database) -> None:
    stack_id = add_stack(database)
    made: dict[str, Any] = {"handle": "h", "action": "CREATE"}
    marks = Marks(UnhealthyMark("it smells", NOW))
    store(
        database,
        stack_id,
        resource("k0", stack_id, "0", **made),
        resource("k1", stack_id, "1", **{**made, "action": "UPDATE"}, status=Status.FAILED),
        resource("k2", stack_id, "2", **{**made, "action": "CHECK"}, status=Status.FAILED, replaced_by="k3"),
        resource("k3", stack_id, "2", action="INIT", replaces="k2", marks=Marks(healing=True)),
        resource("k4", stack_id, "4", **made),
        resource("k5", stack_id, "5", **{**made, "action": "CHECK"}, status=Status.FAILED, marks=marks),
        resource("k6", stack_id, "6", **{**made, "action": "UPDATE"}, status=Status.IN_PROGRESS),
        resource("k7", stack_id, "7", action="CREATE", status=Status.IN_PROGRESS),
        resource("k8", stack_id, "8", **{**made, "action": "DELETE"}, status=Status.FAILED),
        resource("k9", stack_id, "9", action="INIT"),
        absent="4",
    )
    assert found(database, stack_id) == {
        "1": Absence.FAILED,
        "2": Absence.HEALED,
        "4": Absence.GONE,
        "5": Absence.MARKED,
        "6": Absence.CHANGED,
    }
    with database.read() as tx:
        assert away.possibly_away(tx, stack_id, but=0) == []


def test_a_group_at_rest_is_not_read_unless_what_is_lost_is_left_alone(database: Database) -> None:
    stack_id = add_stack(database)
    store(database, stack_id, resource("k0", stack_id, "0", handle="h", action="CREATE"), absent="0")
    shard(database, stack_id, wake_at=None)
    assert found(database, stack_id) == {}
    with database.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(converge=False))
    assert found(database, stack_id) == {"0": Absence.GONE}


def test_what_shows_that_a_group_is_not_at_rest(database: Database) -> None:
    stack_id = add_stack(database, shard_count=2)
    member = add_stack(database, "member", parent_id=stack_id, parent_name="3", parent_key="k3", parent_shard=0)
    for number in range(2):
        shard(database, stack_id, number, wake_at=None)
    with database.read() as tx:
        assert away.unrest_of(tx, stack_id) == Unrest(0, 0)
    shard(database, stack_id, 1, planned=5, done=3, failures=1, wake_at=NOW)
    shard(database, member, planned=2, done=1)
    with database.read() as tx:
        assert away.unrest_of(tx, stack_id) == Unrest(4, 1)
        assert away.restless_inside(tx, stack_id) == ["3"]
    assert found(database, stack_id) == {"3": Absence.HEALED}


def test_how_a_group_stands(database: Database) -> None:
    stack_id = rolling(database)
    for number in range(3):
        shard(database, stack_id, number, wake_at=None, planned=0, done=0)
    shard(database, stack_id, 1, planned=7, done=4)
    with database.read() as tx:
        plain = revisions.standing_of(tx, add_stack_id(database), 1)
        seen = [revisions.standing_of(tx, stack_id, 2, number) for number in (0, 1)]
    assert plain is None
    assert [each and (each.intent, each.unrest, each.group.count) for each in seen] == [
        ("i", Unrest(3, 0), 2500),
        ("i", Unrest(0, 0), 2500),
    ]


def add_stack_id(db: Database) -> str:
    """A stack that is no group's; it was made before, as the parent of one."""
    return "p-parent"


def test_what_goes_on_beside_a_shard(database: Database) -> None:
    stack_id = rolling(database)
    shard(database, stack_id, 0, planned=9, done=2, healing=5)
    shard(database, stack_id, 1, settled_revision=1, planned=10, done=4, healing=2)
    shard(database, stack_id, 2, settled_revision=2, planned=10, done=4, healing=1)
    with database.read() as tx:
        assert brakes.sibling_counts(tx, stack_id, 0) == (3, 4, 2)
        assert brakes.sibling_counts(tx, add_stack_id(database), 0) == (0, 0, 1)


def limited(db: Database) -> str:
    """A group of 2,500 of which at most 100 may be away, in the middle of its update: all its shards are at rest."""
    stack_id = rolling(db)
    desired = group(2000)
    rollout = {**desired.template["rollout"], "max_unavailable": "100"}
    table = schema.revision
    with db.write() as tx:
        mine = (table.c.stack_id == stack_id, table.c.number == 2)
        tx.execute(update(table).where(*mine).values(template={**desired.template, "rollout": rollout}))
    for number in range(3):
        shard(db, stack_id, number, wake_at=None, settled_revision=2, planned=0, done=0)
    return stack_id


def settle(db: Database, stack_id: str, batch: rolling_update.Batch | None) -> float | None:
    with db.write() as tx:
        return rolling_update.settle(tx, locked(tx, stack_id), 2, NOW, batch)


def prepared(db: Database, stack_id: str, lost: int = 0, number: int = 0) -> rolling_update.Batch | None:
    mine = {str(each): Absence.GONE for each in range(2499, 2499 - lost, -1)}
    with db.read() as tx:
        return rolling_update.next_batch(tx, stacks.facts(stack_row(db, stack_id)), number, mine)


def test_a_batch_waits_and_says_so_once(database: Database) -> None:
    stack_id = limited(database)
    batch = prepared(database, stack_id, lost=100)
    assert batch is not None
    assert batch.revision is None
    assert [settle(database, stack_id, batch) for _ in range(2)] == [stack_row(database, stack_id).deadline] * 2
    after = stack_row(database, stack_id)
    assert (after.revision, after.status, after.step_at) == (2, Status.IN_PROGRESS, None)
    assert after.reason.startswith("100 of 2500 members are away: 2400, 2401, 2402, 2403, 2404 and 95 more are gone;")
    table = schema.event
    with database.read() as tx:
        events = list(tx.execute(table.select().where(table.c.stack_id == stack_id, table.c.reason == after.reason)))
    assert len(events) == 1
    assert awake(database, stack_id) == []
    smaller = prepared(database, stack_id, lost=99)
    assert smaller is not None
    assert settle(database, stack_id, smaller) is None
    after = stack_row(database, stack_id)
    assert (after.revision, after.reason) == (3, "Stack UPDATE started")
    with database.read() as tx:
        earlier = revisions.content_of(tx, stack_id, 3).template["earlier"]
    assert earlier == [{"resource_def": {"type": "T::Old"}, "numbers": [[0, 1999]]}]


def test_a_batch_is_prepared_anew_when_others_are_away_by_now(database: Database) -> None:
    stack_id = limited(database)
    batch = prepared(database, stack_id)
    shard(database, stack_id, 2, healing=1, planned=500, done=499)
    assert settle(database, stack_id, batch) == NOW
    assert stack_row(database, stack_id).revision == 2
    assert settle(database, stack_id, prepared(database, stack_id)) is None
    assert stack_row(database, stack_id).revision == 3
    assert shard_row(database, stack_id, 1).wake_at is not None


def test_passes_that_take_the_same_batch_make_it_once(database: Database) -> None:
    stack_id = limited(database)
    batches = [prepared(database, stack_id, number=number) for number in range(3)]
    at_once([partial(settle, database, stack_id, batch) for batch in batches])
    assert stack_row(database, stack_id).revision == 3
