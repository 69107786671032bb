"""The state of the service, read from its rows for `homeostat doctor` and for gauges. Nothing here changes a row."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Table, case, func, select, text

from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.sql import typed

_CHUNK = 500

_shard = schema.shard
_stack = schema.stack
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class Backlog:
    """Shards that wait for a worker.

    Attributes:
        oldest_at: Since when the oldest waits, in seconds since the epoch; None if none waits.
    """

    shards: int
    oldest_at: float | None

    def lag_s(self, now: float) -> float:
        return 0.0 if self.oldest_at is None else max(now - self.oldest_at, 0.0)


def check_writable(db: Database) -> None:
    """Check that the database can be written to.

    Raises:
        SQLAlchemyError: Writing is refused, as on a standby or a read-only disk.
    """
    with db.write() as tx:
        tx.execute(text("UPDATE shard SET wakes = wakes WHERE 1 = 0"))


def backlog(tx: Transaction, now: float) -> Backlog:
    """Count the shards that are due and have no living owner."""
    # If the owner of a shard has died, the shard waits since the end of the lease, even if it was woken earlier.
    since = case((_shard.c.wake_at > _shard.c.lease_until, _shard.c.wake_at), else_=_shard.c.lease_until)
    claimable = (_shard.c.wake_at <= now, _shard.c.lease_until <= now)
    row = tx.execute(select(func.count(), func.min(since)).where(*claimable)).one()
    return Backlog(row[0], row[1])


def members_by_health(tx: Transaction) -> dict[str, int]:
    """Return the number of resources under health policies, by finding."""
    finding = schema.node_health.c.finding
    return {row[0]: row[1] for row in tx.execute(select(finding, func.count()).group_by(finding))}


def owned(tx: Transaction, now: float) -> dict[str, int]:
    """Return the number of shards that each worker owns now, by its name; workers without shards are left out."""
    chosen = select(_shard.c.owner, func.count()).where(_shard.c.lease_until > now).group_by(_shard.c.owner)
    return {row.owner: row[1] for row in tx.execute(chosen)}


class ShardAside(NamedTuple):
    """A shard that was set aside; `stack` is the name of its stack."""

    stack_id: str
    number: int
    stack: str
    project: str
    reason: str


def set_aside(tx: Transaction) -> list[ShardAside]:
    """Return the shards that were set aside and have not come to rest since."""
    chosen = (
        select(_shard.c.stack_id, _shard.c.number, _stack.c.name.label("stack"), _stack.c.project, _shard.c.reason)
        .join(_stack, _stack.c.id == _shard.c.stack_id)
        .where(_shard.c.reason != "", _shard.c.wake_at.is_not(None))
        .order_by(_shard.c.stack_id, _shard.c.number)
    )
    return list(typed.rows(ShardAside, tx.execute(chosen)))


def overdue(tx: Transaction, before: float) -> list[StackRow]:
    """Return the stacks in progress whose deadline was before this time, the oldest deadline first."""
    late = (_stack.c.status == Status.IN_PROGRESS, _stack.c.deadline < before)
    return list(typed.rows(StackRow, tx.execute(select(_stack).where(*late).order_by(_stack.c.deadline))))


def locked(tx: Transaction) -> list[StackRow]:
    """Return the locked root stacks, the oldest first; their nested stacks are locked as well, but left out."""
    lock = (_stack.c.lock.is_not(None), _stack.c.deleted_at.is_(None), _stack.c.parent_id.is_(None))
    return list(typed.rows(StackRow, tx.execute(select(_stack).where(*lock).order_by(_stack.c.created_at))))


def live_stacks(tx: Transaction) -> dict[tuple[str, str], int]:
    """Count the stacks that are not deleted, including nested stacks, by (action, status)."""
    chosen = (
        select(_stack.c.action, _stack.c.status, func.count())
        .where(_stack.c.deleted_at.is_(None))
        .group_by(_stack.c.action, _stack.c.status)
    )
    return {(action, status): count for action, status, count in tx.execute(chosen)}


def deleted_stacks(tx: Transaction) -> int:
    return int(tx.execute(select(func.count()).where(_stack.c.deleted_at.is_not(None))).scalar_one())


def count(tx: Transaction, table: Table) -> int:
    return int(tx.execute(select(func.count()).select_from(table)).scalar_one())


def unowned(tx: Transaction, things: Mapping[str, str]) -> set[str]:
    """Return the handles of things without a row.

    A thing whose creation was given up, and whose token is still looked for, is left out: the sweep removes it.

    Args:
        things: Handle -> the token of the thing.
    """
    rest = dict(things)
    for chunk in _chunks(list(things)):
        handles = tx.execute(select(_resource.c.handle).where(_resource.c.handle.in_(chunk))).scalars().all()
        rest = {handle: token for handle, token in rest.items() if handle not in handles}
    for table in (_resource, schema.orphan):
        for chunk in _chunks(list(rest.values())):
            tokens = set(tx.execute(select(table.c.token).where(table.c.token.in_(chunk))).scalars())
            rest = {handle: token for handle, token in rest.items() if token not in tokens}
    return set(rest)


class SteadyThing(NamedTuple):
    stack_id: str
    name: str
    type: str
    handle: str


def steady(tx: Transaction, types: Collection[str]) -> list[SteadyThing]:
    """Return the complete resources of these types that exist in the cloud."""
    chosen = select(_resource.c.stack_id, _resource.c.name, _resource.c.type, _resource.c.handle).where(
        _resource.c.type.in_(sorted(types)),
        _resource.c.status == Status.COMPLETE,
        _resource.c.action != Action.DELETE,
        _resource.c.handle != "",
    )
    return list(typed.rows(SteadyThing, tx.execute(chosen)))


def _chunks(values: list[str]) -> list[list[str]]:
    return [values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK)]
