"""Deletions under way: what they take along in a tree of stacks, and how they go on with other policies (ADR 0048)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select, update

from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.world import Enclosing
from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.sql import lock_order, typed
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import action_begin, action_end, revisions, stack_state, stacks

ENDED = "Stack DELETE completed successfully"
POLICIES = "policies"
"""The intent of a revision that only defines the policies with which its stack is deleted."""


def continue_deletion(
    db: Database,
    tx: Connection,
    stack: StackRow,
    desired: revisions.Desired,
    policies: Mapping[str, str],
    now: float,
    timeout_s: float,
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Continue the deletion of a stack, or retry it, with other deletion policies; return the new revision.

    Nested stacks look their policies up themselves (see `newest_policies`), and are only woken.

    Args:
        stack: The stack's row, locked.
        desired: The desired state that the APIs show of the stack, with the new policies.
        policies: Name of a resource -> its new policy.
        timeout_s: The service's default for the time that an action may take.
        changes: Other columns of the stack to change.
    """
    # Two revisions: one that is shown and defines the policies, and an empty one, which is what the shards converge to.
    number = int(stack.revision) + 1
    revisions.store_revision(db, tx, stack.id, number, Action.DELETE, replace(desired, intent=POLICIES), now)
    tx.execute(update(schema.stack).where(schema.stack.c.id == stack.id).values(revision=number))
    shown = stacks.for_update(db, tx, stack.id)
    assert shown is not None
    # Nested stacks first: their shards are deeper, so they are locked before this stack's own (ADR 0057).
    _wake_nested(tx, stack, now)
    number = action_begin.revise(db, tx, shown, Action.DELETE, revisions.EMPTY, now, timeout_s, changes)
    table = schema.resource
    for policy in sorted(set(policies.values())):
        names = [name for name, each in policies.items() if each == policy]
        for start in range(0, len(names), stacks.STACKS_PER_QUERY):
            named = table.c.name.in_(names[start : start + stacks.STACKS_PER_QUERY])
            # What is not managed here stays, whatever its name is wanted to be.
            conditions = (table.c.stack_id == stack.id, named, table.c.external_id.is_(None))
            # The new version supersedes a pass that has read the old policy; no due time, so that it is tried at once.
            changed = {"deletion_policy": policy, "due_at": None, "version": table.c.version + 1}
            tx.execute(update(table).where(*conditions).values(**changed))
    return number


def _wake_nested(tx: Connection, stack: StackRow, now: float) -> None:
    """Wake the stacks nested in a stack that are being deleted."""
    tree = (schema.stack.c.id.in_(stacks.tree_of(stack.id)), schema.stack.c.id != stack.id)
    _wake_deepest_first(tx, stack, [*tree, *_under_way()], now)


def wake_under_way(tx: Connection, stack: StackRow, now: float) -> None:
    """Wake what is nested in a stack and is being deleted already, as the deletion of the stack begins.

    Otherwise servers in it that are being drained would be drained to the end, although no one is left to take over
    (ADR 0069). The rest of the stack is not read: its own deletion begins later, and comes by here.

    Args:
        stack: The stack's row, locked.
    """
    table = schema.stack
    found = (
        select(table.c.id)
        .where(table.c.parent_id == stack.id, *_under_way())
        .cte("under_way", recursive=True, nesting=True)
    )
    found = found.union_all(select(table.c.id).where(table.c.parent_id == found.c.id, *_under_way()))
    _wake_deepest_first(tx, stack, [table.c.id.in_(select(found.c.id))], now)


def _under_way() -> tuple[ColumnElement[bool], ...]:
    table = schema.stack
    return table.c.action == Action.DELETE, table.c.status == Status.IN_PROGRESS, table.c.deleted_at.is_(None)


def _wake_deepest_first(tx: Connection, stack: StackRow, nested: Sequence[ColumnElement[bool]], now: float) -> None:
    """Wake stacks that are nested in a stack, in the order of locks."""
    table = schema.stack
    deepest = tx.execute(select(func.max(table.c.depth)).where(*nested)).scalar_one()
    for depth in range(deepest or 0, int(stack.depth), -1):
        shards.wake_all(tx, select(table.c.id).where(*nested, table.c.depth == depth), now, shards.USER)


def end_if_empty(db: Database, tx: Connection, stack_id: str, number: int, now: float) -> bool:
    """End the deletion of a nested stack that has begun in this transaction, if nothing of the stack was ever begun.

    A thing without a row cannot have been made (invariant 3), so there is nothing to look for. The parent is not woken:
    it is the one that asks.

    Args:
        tx: The transaction; it has locked the stack and its shards.
        stack_id: The nested stack.
        number: The revision of the deletion.

    Returns:
        Whether it has ended. It has not where there are rows, or where a worker owns a shard and may be about to store
        the first.
    """
    if not shards.settle_unbegun(tx, stack_id, number, now):
        return False
    return action_end.settle(db, tx, stack_id, number, now, wakes_parent=False) is not None


def delete_many(
    db: Database, tx: Connection, parent_id: str, times_s: Mapping[str, float], now: float
) -> dict[str, tuple[str, bool]]:
    """Delete nested stacks, many at once: see `end_if_empty` for those that end at once; of others the deletion begins.

    Args:
        parent_id: The stack that they are nested in.
        times_s: Key of the row of each one's parent -> seconds that its deletion may take.

    Returns:
        Key -> the id of the stack, and whether it has ended. Those that need more are left as they are: that are held,
        deleted already, have several shards, or stacks nested in them that are being deleted.
    """
    table = schema.stack
    plain = (table.c.snapshot.is_(None), table.c.lock.is_(None), table.c.spares.is_(None), table.c.deleted_at.is_(None))
    conditions = (table.c.parent_id == parent_id, table.c.parent_key.in_(times_s), *plain)
    lock_order.take_stacks(tx, *conditions)
    chosen = select(table).where(*conditions).order_by(table.c.revision, table.c.id)
    rows = typed.rows(StackRow, tx.execute(chosen)).all()
    lock_order.take_shards(tx, schema.shard.c.stack_id.in_([each.id for each in rows]))
    begun = _begun_among(tx, rows, now)
    fresh = [each for each in rows if each.id not in begun]
    for number, alike in groupby(fresh, key=attrgetter("revision")):
        _delete_alike(db, tx, list(alike), int(number) + 1, now)
    others = _that_may_begin(tx, [each for each in rows if each.id in begun])
    time_of = {each.id: times_s[each.parent_key] for each in rows if each.parent_key is not None}
    others.sort(key=lambda each: (each.revision, time_of[each.id]))
    for (number, time_s), same in groupby(others, key=lambda each: (each.revision, time_of[each.id])):
        _begin_alike(db, tx, list(same), int(number) + 1, now, now + time_s)
    ended = {str(each.parent_key): (each.id, True) for each in fresh}
    return ended | {str(each.parent_key): (each.id, False) for each in others}


def _begun_among(tx: Connection, rows: Sequence[StackRow], now: float) -> set[str]:
    """Return the ids of the stacks of which something was begun, or may be begun by an owner of a shard."""
    row, shard = schema.resource, schema.shard
    ids = [each.id for each in rows]
    begun = {each.id for each in rows if each.complete_revision is not None}
    begun |= set(tx.execute(select(row.c.stack_id).where(row.c.stack_id.in_(ids)).distinct()).scalars())
    owned = (shard.c.stack_id.in_(ids), shard.c.lease_until > now)
    return begun | set(tx.execute(select(shard.c.stack_id).where(*owned)).scalars())


def _that_may_begin(tx: Connection, rows: Sequence[StackRow]) -> list[StackRow]:
    """Return the stacks whose deletion begins with a new revision, and nothing else."""
    table = schema.stack
    inside = (table.c.parent_id.in_([each.id for each in rows]), *_under_way())
    wake = set(tx.execute(select(table.c.parent_id).where(*inside).distinct()).scalars())
    return [
        each
        for each in rows
        if each.shards == 1
        and each.id not in wake
        and (each.action, each.status) != (Action.DELETE, Status.IN_PROGRESS)
    ]


def _begin_alike(
    db: Database, tx: Connection, rows: Sequence[StackRow], number: int, now: float, deadline: float
) -> None:
    """Begin the deletion of stacks by a revision of this number, as `action_begin.revise` does it for one."""
    ids = [each.id for each in rows]
    revisions.store_empty(db, tx, ids, number, Action.DELETE, now)
    no_step = dict.fromkeys(("rollback_to", "look_from", "step_at"))
    begun = {"revision": number, "action": Action.DELETE, "status": Status.IN_PROGRESS}
    times = {"deadline": deadline, "updated_at": now}
    said = {"reason": f"Stack {Action.DELETE} started", "size": 0}
    stack_state.change_all(tx, rows, {**begun, **times, **said, **no_step, **action_begin.UNHELD})
    shards.wake_anew(tx, ids, now, shards.USER, number)
    started = (
        (each.id, stack_state.stack_event(each.id, each.name, Action.DELETE, Status.IN_PROGRESS)) for each in rows
    )
    events.append_all(tx, started, now)


def _delete_alike(db: Database, tx: Connection, rows: Sequence[StackRow], number: int, now: float) -> None:
    """Begin and end the deletion of stacks without rows, by a revision of this number."""
    ids = [each.id for each in rows]
    revisions.store_empty(db, tx, ids, number, Action.DELETE, now)
    states = ((Status.IN_PROGRESS, ""), (Status.COMPLETE, ENDED))
    said = (
        (each.id, stack_state.stack_event(each.id, each.name, Action.DELETE, *state))
        for each in rows
        for state in states
    )
    events.append_all(tx, said, now)
    begun = {"revision": number, "action": Action.DELETE, "status": Status.IN_PROGRESS, "updated_at": now}
    stack_state.change_all(tx, rows, begun)
    begun_rows = typed.rows(StackRow, tx.execute(select(schema.stack).where(schema.stack.c.id.in_(ids)))).all()
    no_step = dict.fromkeys(("deadline", "step_at", "rollback_to", "look_from"))
    ended = {"status": Status.COMPLETE, "reason": ENDED, "complete_revision": number, "deleted_at": now}
    stack_state.change_all(tx, begun_rows, {**ended, **no_step})
    shards.settle_all(tx, ids, number)


def around(tx: Connection, parent_key: str | None) -> Iterator[Enclosing]:
    """Yield the stacks around a nested one from the inside out, as far as rows lead to them.

    Args:
        tx: A consistent read.
        parent_key: Key of the row of the nested stack in its parent.
    """
    while parent_key is not None:
        found = _around(tx, parent_key).first()
        if found is None:
            return
        yield Enclosing(found.action, found.status, found.spares, found.deletion_policy)
        parent_key = found.parent_key


@prepared
def _around(key: str) -> Select[Any]:
    row, stack = schema.resource, schema.stack
    columns = (stack.c.parent_key, stack.c.action, stack.c.status, stack.c.spares, row.c.deletion_policy)
    return select(*columns).select_from(row.join(stack, stack.c.id == row.c.stack_id)).where(row.c.key == key)


def newest_policies(tx: Connection, root_id: str, stack_id: str) -> int | None:
    """Return the revision of a root stack that defines the deletion policies of a stack nested in it.

    Returns:
        Its number; None if the newest revision with content defines no policies, or if policies were defined later for
        the nested stack itself.
    """
    table = schema.revision
    with_content = (table.c.kind != revisions.EMPTY.kind,)
    columns = select(table.c.number, table.c.intent, table.c.created_at)
    root = tx.execute(
        columns.where(table.c.stack_id == root_id, *with_content).order_by(table.c.number.desc()).limit(1)
    ).first()
    if root is None or root.intent != POLICIES:
        return None
    chosen = tx.execute(
        columns.where(table.c.stack_id == stack_id, *with_content).order_by(table.c.number.desc()).limit(1)
    ).first()
    own = chosen is not None and chosen.intent == POLICIES and chosen.created_at > root.created_at
    return None if own else int(root.number)


def going_inside(tx: Connection, root_id: str, types: Collection[str], limit: int) -> list[tuple[str, str]]:
    """Return the things of these types that stacks nested in a root stack are deleting, as type and handle.

    Their own planner has decided, at the newest revision of their stack, that each of them goes: its request is stored.
    There are none where deletion policies were changed since, which nested stacks only learn of when they decide.
    """
    with_content = (schema.revision.c.stack_id == root_id, schema.revision.c.kind != revisions.EMPTY.kind)
    newest = select(schema.revision.c.intent).where(*with_content).order_by(schema.revision.c.number.desc()).limit(1)
    if tx.execute(newest).scalar() == POLICIES:
        return []
    row, stack = schema.resource, schema.stack
    going = (row.c.action == Action.DELETE, row.c.status == Status.IN_PROGRESS, row.c.revision == stack.c.revision)
    conditions = (row.c.deletion_policy == DeletionPolicy.DELETE, row.c.external_id.is_(None), row.c.handle != "")
    nested = (stack.c.root_id == root_id, stack.c.parent_id.is_not(None), stack.c.deleted_at.is_(None))
    chosen = select(row.c.type, row.c.handle).join(stack, stack.c.id == row.c.stack_id)
    chosen = chosen.where(*nested, *going, *conditions, row.c.type.in_(types)).limit(limit)
    return [(type, handle) for type, handle in tx.execute(chosen)]


def file_of(tx: Connection, stack_id: str, number: int, name: str) -> str | None:
    """Return the text of one file of a revision; None if the revision has no such file."""
    table = schema.revision
    files = tx.execute(select(table.c.files).where(table.c.stack_id == stack_id, table.c.number == number)).scalar_one()
    if name not in files:
        return None
    return str(tx.execute(select(schema.file.c.content).where(schema.file.c.hash == files[name])).scalar_one())
