"""Shards as rows: created, woken for a pass, brought to rest (invariant 1, CONTRIBUTING.md)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    UpdateBase,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from homeostat.model.plan import Priority
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ShardRow
from homeostat.store.sql import lock_order, notices, typed
from homeostat.store.sql.prepared import prepared

USER, HEAL, ROLLOUT, DRIFT, GARBAGE = Priority


INSERTED_MAX = 500
"""Maximum number of shards created by one statement."""


CRASHES_MAX = 6
"""Number of weighted crashes of its owners in a row (see `leases.CRASH`) after which a shard is set aside.

Passes are retried at growing intervals, and at once for a new revision.
"""


def add(tx: Transaction, stack_id: str, project: str, count: int, at: float, *, nested: bool) -> None:
    """Create the shards 0 … count-1 of a new stack, with a pass requested at time `at`."""
    notices.mark_due(tx)
    one = {"stack_id": stack_id, "project": project, "priority": USER, "wake_at": at, "wakes": 1}
    # No health policy of its own applies to a stack without resources, but that of the group around it may.
    _insert(tx, _new(tx.insert), {**one, "of": stack_id}, count) if nested else _insert(tx, _unchecked(), one, count)


def ensure(tx: Transaction, stack_id: str, project: str, count: int) -> None:
    """Create the missing shards among 0 … count-1 of a stack."""
    _insert(tx, _new(tx.insert), {"stack_id": stack_id, "project": project, "priority": USER, "of": stack_id}, count)


def _insert(tx: Transaction, new: UpdateBase, one: Mapping[str, Any], count: int) -> None:
    for start in range(0, count, INSERTED_MAX):
        tx.execute(new, [{**one, "number": number} for number in range(start, min(start + INSERTED_MAX, count))])


@cache
def _unchecked() -> UpdateBase:
    return insert(schema.shard)


@cache
def _new(insert: Any) -> UpdateBase:
    """Build the statement with the dialect's insert."""
    new = insert(schema.shard).values(
        health_at=select(literal(0.0)).where(is_checked(bindparam("of"))).scalar_subquery()
    )
    statement: UpdateBase = new.on_conflict_do_nothing()
    return statement


def is_checked(stack_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that an enabled health policy applies to this stack."""
    stack, check = schema.stack.alias("checked"), schema.health_check
    inside = and_(check.c.members, check.c.stack_id == stack.c.parent_id, check.c.name == stack.c.parent_name)
    condition = and_(~check.c.members, check.c.stack_id == stack.c.id)
    return exists().where(stack.c.id == stack_id, check.c.enabled, or_(inside, condition))


def settle_empty(tx: Transaction, stack_id: str, revision: int, now: float) -> None:
    """Bring shards without rows to rest at an empty revision, without a pass over each shard.

    The first shard is left out, since its pass ends the stack's action. Shards with a valid lease are left out, too.
    The new epoch supersedes a worker that holds an expired lease and is about to create the first rows.
    """
    table, rows = schema.shard, schema.resource
    something = select(rows.c.key).where(rows.c.stack_id == table.c.stack_id, rows.c.shard == table.c.number)
    free = (table.c.stack_id == stack_id, table.c.number > 0, table.c.lease_until <= now)
    tx.execute(
        update(table)
        .where(*free, ~something.exists())
        .values(epoch=table.c.epoch + 1, settled_revision=revision, wake_at=None, owner=None, planned=0, done=0)
    )


def settle_unbegun(tx: Transaction, stack_id: str, revision: int, now: float) -> bool:
    """Bring all shards of a stack to rest at an empty revision, if no shard has rows or an owner; return whether done.

    The new epoch supersedes a worker that holds an expired lease and is about to create the first rows.
    """
    if _begun(tx, stack_id, now).scalar_one():
        return False
    settle_all(tx, [stack_id], revision)
    return True


def settle_all(tx: Transaction, stack_ids: Sequence[str], revision: int) -> None:
    """Bring all shards of stacks without rows to rest at a revision; present owners are superseded."""
    table = schema.shard
    values = {"epoch": table.c.epoch + 1, "settled_revision": revision, "owner": None, "planned": 0, "done": 0}
    tx.execute(update(table).where(table.c.stack_id.in_(stack_ids)).values(wake_at=None, **values))


@prepared
def _begun(stack_id: str, now: float) -> Select[Any]:
    """Select whether a stack has rows, or a shard with an owner."""
    rows = select(schema.resource.c.key).where(schema.resource.c.stack_id == stack_id).exists()
    owned = select(schema.shard.c.number).where(schema.shard.c.stack_id == stack_id, schema.shard.c.lease_until > now)
    return select(or_(rows, owned.exists()))


def wake(
    tx: Transaction,
    stack_id: str,
    at: float,
    priority: int,
    numbers: Sequence[int] | None = None,
    unsettled_at: int | None = None,
    restart_at: int | None = None,
) -> int:
    """Request a pass at time `at`, or earlier if requested already.

    A wake-up carries no data: the pass derives its work from the rows.

    Args:
        priority: The priority; a shard keeps a more urgent one.
        unsettled_at: Only shards that are not at rest at this revision.
        restart_at: A new revision: reset progress and crashes of the shards that are not at rest at this revision.

    Returns:
        The number of woken shards.
    """
    notices.mark_due(tx)
    some = {"some": numbers is not None, "unsettled": unsettled_at is not None, "restart": restart_at is not None}
    return _wake(tx, stack_id, at, priority, numbers or (), unsettled_at, restart_at, **some).rowcount


@prepared
def _wake(
    stack_id: str,
    at: float,
    priority: int,
    numbers: Sequence[int],
    unsettled_at: int | None,
    restart_at: int | None,
    *,
    some: bool,
    unsettled: bool,
    restart: bool,
) -> UpdateBase:
    table = schema.shard
    where = [table.c.stack_id == stack_id]
    if unsettled:
        where.append(table.c.settled_revision < unsettled_at)
    if some:
        where.append(table.c.number.in_(numbers))
    values = wake_values(at, priority) | (_restart_values(at, restart_at) if restart else {})
    return update(table).where(*where).values(**values)


def _restart_values(at: float, revision: Any) -> dict[str, Any]:
    """Return the further column values of a shard that a new revision wakes."""
    done = schema.shard.c.done
    # A new revision (a deletion, perhaps) may not crash workers any more, so the pass is tried at once.
    restarted = case((schema.shard.c.settled_revision < revision, 0), else_=done)
    return {"crashes": 0, "wake_at": sooner(at), "done": restarted}


def wake_anew(tx: Transaction, stack_ids: Sequence[str], at: float, priority: int, revision: int) -> None:
    """Request a pass over all shards of stacks with a new revision; the shards are locked (see `lock_order`)."""
    notices.mark_due(tx)
    values = wake_values(at, priority) | _restart_values(at, revision)
    tx.execute(update(schema.shard).where(schema.shard.c.stack_id.in_(stack_ids)).values(**values))


@dataclass(frozen=True, slots=True)
class ShardChange:
    """A change of a shard by a new revision: the number of its members, and of the changed ones among them."""

    members: int
    changed: int


def restart_progress(tx: Transaction, stack_id: str, touched: Mapping[int, ShardChange]) -> None:
    """Set the progress of shards that a new revision changes: unchanged members count as done."""
    table = schema.shard
    conditions = (table.c.stack_id == stack_id, table.c.number == bindparam("shard"))
    values: dict[str, Any] = {"planned": bindparam("members"), "done": bindparam("unchanged")}
    rows = [
        {"shard": number, "members": change.members, "unchanged": change.members - change.changed}
        for number, change in sorted(touched.items())
    ]
    if rows:
        tx.execute(update(table).where(*conditions).values(values), rows)


def wake_all(
    tx: Transaction, stacks: ColumnElement[Any] | Select[Any] | Sequence[str], at: float, priority: int
) -> None:
    """Request a pass over each shard of these stacks, as ids or as a subquery of ids."""
    notices.mark_due(tx)
    table = schema.shard
    # The UPDATE alone would lock the shards in any order, and could deadlock with a pass that wakes its parent.
    lock_order.take_shards(tx, table.c.stack_id.in_(stacks))
    tx.execute(update(table).where(table.c.stack_id.in_(stacks)).values(**wake_values(at, priority)))


def wake_unsettled(tx: Transaction, stack_id: str, at: float, priority: int, revision: int) -> None:
    """Wake the shards that are not at rest at a new revision.

    If all are at rest, wake the first: its pass notices, and ends the stack's action.
    """
    if not wake(tx, stack_id, at, priority, unsettled_at=revision, restart_at=revision):
        wake(tx, stack_id, at, priority, [0])


def wake_values(at: float, priority: int) -> dict[str, Any]:
    """Return the new column values of a shard for which a pass is requested."""
    table = schema.shard
    # A shard that was set aside for crashes keeps its time: otherwise each observation would crash another worker.
    waits = and_(table.c.crashes >= CRASHES_MAX, table.c.wake_at.is_not(None))
    wake_at = case((waits, table.c.wake_at), else_=sooner(at))
    urgent = case(
        (table.c.wake_at.is_(None), priority), (table.c.priority < priority, table.c.priority), else_=priority
    )
    return {"wake_at": wake_at, "wakes": table.c.wakes + 1, "priority": urgent}


def sooner(at: float) -> ColumnElement[float]:
    return case((schema.shard.c.wake_at < at, schema.shard.c.wake_at), else_=at)


def carry_over(tx: Transaction, stack_id: str, revision: int, touched: Collection[int]) -> None:
    """Mark shards as at rest at `revision` if they were at rest at the previous one and are not among `touched`.

    A shard with a FAILED resource, or with unfinished nodes, is not carried over: the new revision retries them.
    """
    table = schema.shard
    tx.execute(
        update(table)
        .where(
            table.c.stack_id == stack_id,
            table.c.settled_revision == revision - 1,
            table.c.failures == 0,
            table.c.done == table.c.planned,
            table.c.number.not_in(sorted(touched)),
        )
        .values(settled_revision=revision)
    )


def is_any_of(these: Sequence[tuple[str, int]]) -> ColumnElement[bool]:
    """Return the condition that a shard is one of these, as id of the stack and number."""
    return tuple_(schema.shard.c.stack_id, schema.shard.c.number).in_(these)


def count_failures(tx: Transaction, stack_id: str, number: int, more: int) -> None:
    """Add to the number of FAILED resources of a shard.

    A difference, not a total: API requests that mark resources count as well, between two passes.
    """
    _count_failures(tx, stack_id, number, more)


@prepared
def _count_failures(stack_id: str, number: int, more: int) -> UpdateBase:
    table = schema.shard
    conditions = (table.c.stack_id == stack_id, table.c.number == number)
    return update(table).where(*conditions).values(failures=table.c.failures + more)


def failures_of(tx: Transaction, stack_id: str) -> int:
    """Return the number of FAILED resources of a stack."""
    failures = select(func.sum(schema.shard.c.failures)).where(schema.shard.c.stack_id == stack_id)
    return int(tx.execute(failures).scalar() or 0)


def get(tx: Transaction, stack_id: str, number: int) -> ShardRow | None:
    return typed.rows(ShardRow, _get(tx, stack_id, number)).first()


@prepared
def _get(stack_id: str, number: int) -> Select[Any]:
    table = schema.shard
    return select(table).where(table.c.stack_id == stack_id, table.c.number == number)
