"""Deletions in progress: their effects in a tree of stacks, and how they continue with other policies (ADR 0048)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, update

from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.world import Enclosing
from homeostat.store import events, schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.sql import lock_order, typed
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import action_begin, action_end, revisions, stack_state, stacks
from homeostat.store.stacks.contents import EMPTY
from homeostat.store.stacks.revisions import NewRevision

ENDED = "Stack DELETE completed successfully"
POLICIES = "policies"
"""The intent of a revision that only defines the policies for the deletion of its stack."""


def continue_deletion(
    tx: Transaction,
    stack: StackRow,
    revision: NewRevision,
    policies: Mapping[str, str],
    now: float,
    timeout_s: float,
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Continue the deletion of a stack, or retry it, with other deletion policies; return the new revision.

    Nested stacks look their policies up themselves (see `newest_policies`), and are only woken.

    Args:
        stack: The stack's row, locked.
        revision: The desired state of the stack as shown by the APIs, with the new policies.
        policies: Name of a resource -> its new policy.
    """
    # Two revisions: the first is visible and defines the policies, the second is empty, and the shards converge to it.
    number = int(stack.revision) + 1
    revisions.store_revision(tx, stack.id, number, Action.DELETE, replace(revision, intent=POLICIES), now)
    tx.execute(update(schema.stack).where(schema.stack.c.id == stack.id).values(revision=number))
    row = stacks.for_update(tx, stack.id)
    assert row is not None
    # Nested stacks first: their shards are deeper, so they are locked before this stack's own (ADR 0057).
    _wake_nested(tx, stack, now)
    number = action_begin.revise(tx, row, Action.DELETE, revisions.empty(tx.database), now, timeout_s, changes)
    table = schema.resource
    for policy in sorted(set(policies.values())):
        names = [name for name, name_policy in policies.items() if name_policy == policy]
        for start in range(0, len(names), stacks.STACKS_PER_QUERY):
            named = table.c.name.in_(names[start : start + stacks.STACKS_PER_QUERY])
            # External resources stay untouched, even under a name with a new policy.
            conditions = (table.c.stack_id == stack.id, named, table.c.external_id.is_(None))
            # The new version supersedes a pass with the old policy; no due time, to retry the deletion at once.
            changed = {"deletion_policy": policy, "due_at": None, "version": table.c.version + 1}
            tx.execute(update(table).where(*conditions).values(**changed))
    return number


def _wake_nested(tx: Transaction, stack: StackRow, now: float) -> None:
    """Wake the stacks nested in a stack that are being deleted."""
    tree = (schema.stack.c.id.in_(stacks.tree_of(stack.id)), schema.stack.c.id != stack.id)
    _wake_deepest_first(tx, stack, [*tree, *_under_way()], now)


def wake_nested_deletions(tx: Transaction, stack: StackRow, now: float) -> None:
    """Wake the nested stacks that are being deleted already, as the deletion of their parent begins.

    Otherwise servers that are being drained in them would be drained to the end, although no replacement is left
    (ADR 0069). The rest of the tree is not read: its own deletion begins later, and calls this function again.

    Args:
        stack: The stack's row, locked.
    """
    table = schema.stack
    tree = (
        select(table.c.id)
        .where(table.c.parent_id == stack.id, *_under_way())
        .cte("under_way", recursive=True, nesting=True)
    )
    tree = tree.union_all(select(table.c.id).where(table.c.parent_id == tree.c.id, *_under_way()))
    _wake_deepest_first(tx, stack, [table.c.id.in_(select(tree.c.id))], now)


def _under_way() -> tuple[ColumnElement[bool], ...]:
    table = schema.stack
    return table.c.action == Action.DELETE, table.c.status == Status.IN_PROGRESS, table.c.deleted_at.is_(None)


def _wake_deepest_first(tx: Transaction, stack: StackRow, nested: Sequence[ColumnElement[bool]], now: float) -> None:
    """Wake nested stacks, in the order of locks."""
    table = schema.stack
    deepest = tx.execute(select(func.max(table.c.depth)).where(*nested)).scalar_one()
    for depth in range(deepest or 0, int(stack.depth), -1):
        shards.wake_all(tx, select(table.c.id).where(*nested, table.c.depth == depth), now, shards.USER)


def end_if_empty(tx: Transaction, stack_id: str, number: int, now: float) -> bool:
    """End the deletion of a nested stack that began in this transaction, if nothing of the stack was ever begun.

    Without a row, nothing can exist in the cloud (invariant 3), so there is nothing to look for. The parent is not
    woken, since the caller runs for it.

    Args:
        tx: The transaction; it has locked the stack and its shards.

    Returns:
        Whether the deletion has ended: not if there are rows, nor if a worker owns a shard and may be about to store
        the first.
    """
    if not shards.settle_unbegun(tx, stack_id, number, now):
        return False
    return action_end.settle(tx, stack_id, number, now, wakes_parent=False) is not None


def delete_many(
    tx: Transaction, parent_id: str, times_s: Mapping[str, float], now: float
) -> dict[str, tuple[str, bool]]:
    """Delete many nested stacks at once: end the deletion of empty stacks (see `end_if_empty`), begin it for the rest.

    Args:
        times_s: Key of the row of each stack's parent -> seconds that its deletion may take.

    Returns:
        Key -> the id of the stack, and whether its deletion has ended. Left out are stacks that need more steps (held
        stacks, stacks with several shards or with nested stacks being deleted), and deleted ones.
    """
    table = schema.stack
    plain = (table.c.snapshot.is_(None), table.c.lock.is_(None), table.c.spares.is_(None), table.c.deleted_at.is_(None))
    conditions = (table.c.parent_id == parent_id, table.c.parent_key.in_(times_s), *plain)
    lock_order.take_stacks(tx, *conditions)
    # Read only under the lock: until then another transaction may still change the rows.
    chosen = select(table).where(*conditions).order_by(table.c.revision, table.c.id)
    rows = typed.rows(StackRow, tx.execute(chosen)).all()
    lock_order.take_shards(tx, schema.shard.c.stack_id.in_([row.id for row in rows]))
    begun = _begun(tx, rows, now)
    empty = [row for row in rows if row.id not in begun]
    for number, alike in groupby(empty, key=attrgetter("revision")):
        _delete_all(tx, list(alike), int(number) + 1, now)
    started = _startable(tx, [row for row in rows if row.id in begun])
    time_of = {row.id: times_s[row.parent_key] for row in rows if row.parent_key is not None}
    started.sort(key=lambda row: (row.revision, time_of[row.id]))
    for (number, time_s), same in groupby(started, key=lambda row: (row.revision, time_of[row.id])):
        _begin_all(tx, list(same), int(number) + 1, now, now + time_s)
    ended = {str(row.parent_key): (row.id, True) for row in empty}
    return ended | {str(row.parent_key): (row.id, False) for row in started}


def _begun(tx: Transaction, rows: Sequence[StackRow], now: float) -> set[str]:
    """Return the ids of the stacks with begun resources, or with a shard whose owner may be about to begin some."""
    row, shard = schema.resource, schema.shard
    ids = [stack.id for stack in rows]
    begun = {stack.id for stack in rows if stack.complete_revision is not None}
    begun |= set(tx.execute(select(row.c.stack_id).where(row.c.stack_id.in_(ids)).distinct()).scalars())
    owned = (shard.c.stack_id.in_(ids), shard.c.lease_until > now)
    return begun | set(tx.execute(select(shard.c.stack_id).where(*owned)).scalars())


def _startable(tx: Transaction, rows: Sequence[StackRow]) -> list[StackRow]:
    """Return the stacks whose deletion needs a new revision and no further step."""
    table = schema.stack
    inside = (table.c.parent_id.in_([row.id for row in rows]), *_under_way())
    wake = set(tx.execute(select(table.c.parent_id).where(*inside).distinct()).scalars())
    return [
        row
        for row in rows
        if row.shards == 1 and row.id not in wake and (row.action, row.status) != (Action.DELETE, Status.IN_PROGRESS)
    ]


def _begin_all(tx: Transaction, rows: Sequence[StackRow], number: int, now: float, deadline: float) -> None:
    """Begin the deletion of stacks by a revision of this number, like `action_begin.revise` for a single stack."""
    ids = [row.id for row in rows]
    revisions.store_empty(tx, ids, number, Action.DELETE, now)
    no_step = dict.fromkeys(("rollback_to", "look_from", "step_at"))
    begun = {"revision": number, "action": Action.DELETE, "status": Status.IN_PROGRESS}
    times = {"deadline": deadline, "updated_at": now}
    labels = {"reason": f"Stack {Action.DELETE} started", "size": 0}
    stack_state.change_all(tx, rows, {**begun, **times, **labels, **no_step, **action_begin.UNHELD})
    shards.wake_anew(tx, ids, now, shards.USER, number)
    started = ((row.id, stack_state.stack_event(row.id, row.name, Action.DELETE, Status.IN_PROGRESS)) for row in rows)
    events.append_all(tx, started, now)


def _delete_all(tx: Transaction, rows: Sequence[StackRow], number: int, now: float) -> None:
    """Begin and end the deletion of stacks without rows, by a revision of this number."""
    ids = [row.id for row in rows]
    revisions.store_empty(tx, ids, number, Action.DELETE, now)
    states = ((Status.IN_PROGRESS, ""), (Status.COMPLETE, ENDED))
    stack_events = (
        (row.id, stack_state.stack_event(row.id, row.name, Action.DELETE, *state)) for row in rows for state in states
    )
    events.append_all(tx, stack_events, now)
    begun = {"revision": number, "action": Action.DELETE, "status": Status.IN_PROGRESS, "updated_at": now}
    stack_state.change_all(tx, rows, begun)
    begun_rows = typed.rows(StackRow, tx.execute(select(schema.stack).where(schema.stack.c.id.in_(ids)))).all()
    no_step = dict.fromkeys(("deadline", "step_at", "rollback_to", "look_from"))
    ended = {"status": Status.COMPLETE, "reason": ENDED, "complete_revision": number, "deleted_at": now}
    stack_state.change_all(tx, begun_rows, {**ended, **no_step})
    shards.settle_all(tx, ids, number)


def enclosing_stacks(tx: Transaction, parent_key: str | None) -> Iterator[Enclosing]:
    """Yield the ancestors of a nested stack from the inside out, as far as rows lead to them."""
    while parent_key is not None:
        enclosing = _around(tx, parent_key).first()
        if enclosing is None:
            return
        yield Enclosing(enclosing.action, enclosing.status, enclosing.spares, enclosing.deletion_policy)
        parent_key = enclosing.parent_key


@prepared
def _around(key: str) -> Select[Any]:
    row, stack = schema.resource, schema.stack
    columns = (stack.c.parent_key, stack.c.action, stack.c.status, stack.c.spares, row.c.deletion_policy)
    return select(*columns).select_from(row.join(stack, stack.c.id == row.c.stack_id)).where(row.c.key == key)


def newest_policies(tx: Transaction, root_id: str, stack_id: str) -> int | None:
    """Return the revision of a root stack that defines the deletion policies of a nested stack.

    Returns:
        The number; None if the newest revision with content defines no policies, or if policies were defined later for
        the nested stack itself.
    """
    table = schema.revision
    with_content = (table.c.kind != EMPTY.kind,)
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


def deletions_below(tx: Transaction, root_id: str, types: Collection[str], limit: int) -> list[tuple[str, str]]:
    """Return type and handle of the things of these types that nested stacks of a root stack are deleting.

    The planner of the nested stack has decided each deletion at the stack's newest revision, and the request is stored.
    Return nothing if deletion policies were changed since: nested stacks notice the change at their next decision.
    """
    with_content = (schema.revision.c.stack_id == root_id, schema.revision.c.kind != EMPTY.kind)
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


def file_of(tx: Transaction, stack_id: str, number: int, name: str) -> str | None:
    """Return the text of one file of a revision; None if the revision has no such file."""
    table = schema.revision
    files = tx.execute(select(table.c.files).where(table.c.stack_id == stack_id, table.c.number == number)).scalar_one()
    if name not in files:
        return None
    return str(tx.execute(select(schema.file.c.content).where(schema.file.c.hash == files[name])).scalar_one())
