"""The store's contract, on SQLite and on PostgreSQL: a deletion goes on under other deletion policies (ADR 0048)."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, locked, resource, shard_row, stack_row

from homeostat.model.snapshot import StackSnapshot
from homeostat.model.status import Action
from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_begin, deletion, revisions
from homeostat.store.stacks.contents import Content

SAID = Content("template", {"resources": {}}, files={"inner.yaml": "new"})


def deleting(database: Database, **shard: float) -> tuple[bool, str, float]:
    """Begin the deletion of a nested stack, and end it where it is empty; whether it has ended, its id, the time."""
    root = add_stack(database, "root")
    inner = add_stack(database, "inner", shard_count=2, parent_id=root, parent_shard=0, root_id=root, depth=1)
    now = NOW + 10
    with database.write() as tx:
        tx.execute(update(schema.shard).where(schema.shard.c.stack_id == root).values(wake_at=None))
        if shard:
            tx.execute(update(schema.shard).where(schema.shard.c.stack_id == inner).values(**shard))
        stack = locked(tx, inner)
        number = action_begin.revise(tx, stack, Action.DELETE, revisions.empty(database), now, TIMEOUT_S)
        return deletion.end_if_empty(tx, inner, number, now), inner, now


@pytest.mark.parametrize("lease_until", [0.0, NOW + 9], ids=["never owned", "owned once"])
def test_what_was_never_begun_is_deleted_at_once_and_supersedes_former_owners(
    database: Database, lease_until: float
) -> None:
    ended, inner, now = deleting(database, lease_until=lease_until, epoch=4)
    assert ended
    row, shard = stack_row(database, inner), shard_row(database, inner)
    assert (row.action, row.status, row.deleted_at) == (Action.DELETE, "COMPLETE", now)
    assert (shard.wake_at, shard.settled_revision) == (None, row.revision)
    assert shard.epoch > 4
    assert shard_row(database, "p-root").wake_at is None, "the parent asks, and needs no wake-up"
    with database.read() as tx:
        found = [(each.action, each.status) for each in events.page(tx, [inner])]
    assert found[-2:] == [(Action.DELETE, "IN_PROGRESS"), (Action.DELETE, "COMPLETE")]


def test_what_a_worker_owns_is_left_to_its_own_pass(database: Database) -> None:
    ended, inner, _ = deleting(database, lease_until=NOW + 11)
    assert not ended
    assert stack_row(database, inner).status == "IN_PROGRESS"
    assert shard_row(database, inner).wake_at == NOW


def test_what_has_rows_is_left_to_its_own_pass(database: Database) -> None:
    root = add_stack(database, "root")
    inner = add_stack(database, "inner", parent_id=root, parent_shard=0, root_id=root, depth=1)
    writes = Writes()
    writes.insert(resource("key", inner, "a"))
    with database.write() as tx:
        shard_state.record(tx, inner, writes, NOW)
        stack = locked(tx, inner)
        number = action_begin.revise(tx, stack, Action.DELETE, revisions.empty(database), NOW, TIMEOUT_S)
        assert not deletion.end_if_empty(tx, inner, number, NOW)
    assert stack_row(database, inner).deleted_at is None


def test_many_that_were_never_begun_end_at_once_and_no_other_does(database: Database) -> None:
    root = add_stack(database, "root")
    inside: dict[str, Any] = {"parent_id": root, "parent_shard": 0, "root_id": root, "depth": 1}
    names = ("fresh", "owned", "with-rows", "revised")
    ids = {name: add_stack(database, name, parent_key=name, **inside) for name in names}
    writes = Writes()
    writes.insert(resource("key", ids["with-rows"], "a"))
    now = NOW + 1
    with database.write() as tx:
        shard_state.record(tx, ids["with-rows"], writes, NOW)
        mine = schema.shard.c.stack_id == ids["owned"]
        tx.execute(update(schema.shard).where(mine).values(lease_until=now + 1))
        stack = locked(tx, ids["revised"])
        action_begin.revise(tx, stack, Action.UPDATE, revisions.encode(database, SAID), NOW, TIMEOUT_S)
        found = deletion.delete_many(tx, root, dict.fromkeys(names, TIMEOUT_S), now)
    assert {key for key, (_, ended) in found.items() if ended} == {"fresh", "revised"}
    assert {key: id for key, (id, _) in found.items()} == ids
    for name, number in (("fresh", 2), ("revised", 3)):
        row, shard = stack_row(database, ids[name]), shard_row(database, ids[name])
        assert (row.action, row.status, row.deleted_at) == (Action.DELETE, "COMPLETE", now)
        assert (row.revision, shard.settled_revision, shard.wake_at, shard.epoch) == (number, number, None, 1)
        with database.read() as tx:
            said = [(each.action, each.status) for each in events.page(tx, [ids[name]])]
        assert said[-2:] == [(Action.DELETE, "IN_PROGRESS"), (Action.DELETE, "COMPLETE")]
    assert all(stack_row(database, ids[name]).deleted_at is None for name in ("owned", "with-rows"))


def test_many_begin_as_each_would_by_itself(database: Database) -> None:
    root = add_stack(database, "root")
    inside: dict[str, Any] = {"parent_id": root, "parent_shard": 0, "root_id": root, "depth": 1}
    single, many = (add_stack(database, name, parent_key=name, **inside) for name in ("single", "many"))
    with database.write() as tx:
        for each in (single, many):
            writes = Writes()
            writes.insert(resource(f"key of {each}", each, "a"))
            shard_state.record(tx, each, writes, NOW)
            # As after three crashes, and a part of its work.
            mine = update(schema.shard).where(schema.shard.c.stack_id == each)
            tx.execute(mine.values(crashes=3, wake_at=None, planned=2, done=1))
            tx.execute(update(schema.stack).where(schema.stack.c.id == each).values(suspended=True, step_at=NOW))
    with database.write() as tx:
        stack, changes = locked(tx, single), action_begin.UNHELD
        number = action_begin.revise(
            tx, stack, Action.DELETE, revisions.empty(database), NOW + 1, TIMEOUT_S, dict(changes)
        )
        assert not deletion.end_if_empty(tx, single, number, NOW + 1)
        found = deletion.delete_many(tx, root, {"many": TIMEOUT_S}, NOW + 1)
    assert found == {"many": (many, False)}

    def seen(stack_id: str) -> list[Any]:
        own = {"id", "stack_id", "name", "parent_key", "seq", "handle", "epoch", "created_at"}
        stack, shard = stack_row(database, stack_id), shard_row(database, stack_id)
        with database.read() as tx:
            mine = schema.revision.c.stack_id == stack_id
            stored = tx.execute(select(schema.revision).where(mine).order_by("number")).all()
            listed = events.page(tx, [stack_id])
        return [
            {key: value for key, value in row._mapping.items() if key not in own}
            for row in (stack, shard, *stored, *listed)
        ]

    assert seen(many) == seen(single)


@pytest.mark.parametrize(
    "values", [{"lock": {"level": "all"}}, {"shards": 2}, {"spares": "all"}, {"snapshot": StackSnapshot("s")}]
)
def test_what_needs_more_than_a_new_revision_is_left_to_itself(database: Database, values: dict[str, Any]) -> None:
    root = add_stack(database, "root")
    inside: dict[str, Any] = {"parent_id": root, "parent_shard": 0, "root_id": root, "depth": 1}
    held = add_stack(database, "held", parent_key="held", **inside)
    around = add_stack(database, "around", parent_key="around", **inside)
    going = add_stack(database, "going", parent_id=around, parent_shard=0, root_id=root, depth=2)
    with database.write() as tx:
        writes = Writes()
        writes.insert(resource("key", around, "a"))
        shard_state.record(tx, around, writes, NOW)
        tx.execute(update(schema.stack).where(schema.stack.c.id == held).values(complete_revision=1, **values))
        action_begin.revise(tx, locked(tx, going), Action.DELETE, revisions.empty(database), NOW, TIMEOUT_S)
        assert deletion.delete_many(tx, root, {"held": 1.0, "around": 1.0}, NOW + 1) == {}
    assert [stack_row(database, each).action for each in (held, around)] == ["CREATE", "CREATE"]


def test_what_is_nested_is_woken_and_asks_for_the_newest_word(database: Database) -> None:
    root = add_stack(database, "root")
    going = add_stack(database, "going", parent_id=root, parent_shard=0, root_id=root, depth=1)
    below = add_stack(database, "below", parent_id=going, parent_shard=0, root_id=root, depth=2)
    still = add_stack(database, "still", parent_id=root, parent_shard=0, root_id=root, depth=1)
    with database.write() as tx:
        for each in (root, going, below):
            action_begin.revise(tx, locked(tx, each), Action.DELETE, revisions.empty(database), NOW, TIMEOUT_S)
        tx.execute(update(schema.shard).values(wake_at=None))
        assert deletion.newest_policies(tx, root, below) is None
        deletion.continue_deletion(
            tx,
            locked(tx, root),
            revisions.encode(database, SAID),
            {"a": "Retain"},
            NOW + 1,
            TIMEOUT_S,
        )
    assert [shard_row(database, each).wake_at for each in (root, going, below, still)] == [
        NOW + 1,
        NOW + 1,
        NOW + 1,
        None,
    ]
    assert (stack_row(database, root).action, stack_row(database, root).revision) == (Action.DELETE, 4)
    with database.write() as tx:
        assert [deletion.newest_policies(tx, root, each) for each in (going, below, still)] == [3, 3, 3]
        assert deletion.file_of(tx, root, 3, "inner.yaml") == "new"
        assert deletion.file_of(tx, root, 3, "other.yaml") is None
        deletion.continue_deletion(
            tx,
            locked(tx, going),
            revisions.encode(database, replace(SAID, files={})),
            {"a": "Delete"},
            NOW + 2,
            TIMEOUT_S,
        )
        assert [deletion.newest_policies(tx, root, each) for each in (going, below)] == [None, 3]
        action_begin.revise(
            tx,
            locked(tx, root),
            Action.UPDATE,
            revisions.encode(database, SAID),
            NOW + 3,
            TIMEOUT_S,
        )
        assert deletion.newest_policies(tx, root, below) is None
