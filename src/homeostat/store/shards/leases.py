"""Leases and epochs of shards (invariants 1 and 4, CONTRIBUTING.md; ADR 0005).

A lease gives a shard to a worker for some seconds; its epoch is the fencing token. Each claim increments the epoch, and
each write under a lease requires the shard's epoch to equal the epoch of the lease. So a worker that was frozen, and
whose shard has a new owner by now, stores nothing. Releasing a shard ends the lease and keeps the epoch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CursorResult,
    Integer,
    Select,
    Update,
    UpdateBase,
    and_,
    case,
    func,
    or_,
    select,
    tuple_,
    type_coerce,
    update,
)

from homeostat.model.errors import Superseded
from homeostat.model.plan import Priority
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.shards import look_schedule, shards
from homeostat.store.shards.shards import CRASHES_MAX
from homeostat.store.sql import notices
from homeostat.store.sql.prepared import prepared

CRASH = 3
"""Weight of the crash of an owner that has stored nothing; 1 for an owner that had, and so had made progress.

A claim counts a crash if the last owner never gave the shard back and has stopped reporting itself. So two passes that
crash their worker at the same point set the shard aside.
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """Ownership of a shard by a worker; every write under the lease checks the epoch.

    Attributes:
        wakes: The count of wake-ups at the time of the claim; if it has grown since, there is new work.
        crashes: The weighted crashes of the last owners, see `CRASHES_MAX`; 0 unless the last owner crashed.
    """

    stack_id: str
    number: int
    epoch: int
    wakes: int
    lease_until: float
    crashes: int = 0

    @property
    def crashes_workers(self) -> bool:
        """Whether passes over the shard have crashed their workers so often that it must be set aside."""
        return self.crashes >= CRASHES_MAX


def _owned(stack_id: str, number: int, epoch: int) -> tuple[ColumnElement[bool], ...]:
    table = schema.shard
    return table.c.stack_id == stack_id, table.c.number == number, table.c.epoch == epoch


def claim(tx: Transaction, stack_id: str, number: int, owner: str, now: float, lease_s: float) -> Lease | None:
    """Claim the shard for this worker.

    `wake_at` stays: if this owner dies, the shard is due again as soon as its lease has expired.

    Returns:
        A lease of `lease_s` seconds with a new epoch; None if another worker was faster, or while another transaction
        writes to the shard's row, to leave the locked shard out instead of waiting.
    """
    last = _free(tx, stack_id, number, now).first()
    if last is None:
        return None
    # A release clears the owner, so an owner in the row never gave the shard back. If that was this worker, it did not
    # crash: the database connection was lost in the middle of the claim or the release.
    ended = last.owner not in (None, owner)
    ended = ended and _living_worker(tx, last.owner, now - lease_s).first() is None
    crash = 0 if not ended else 1 if last.stored == last.epoch else CRASH
    if not _own(tx, stack_id, number, now, owner, now + lease_s, crash).rowcount:
        return None
    return Lease(stack_id, number, last.epoch + 1, last.wakes, now + lease_s, last.crashes + crash if crash else 0)


@prepared
def _living_worker(owner: str, since: float) -> Select[Any]:
    """Select the worker if it has reported itself since: a living worker was merely too slow to renew its lease."""
    return select(schema.worker.c.name).where(schema.worker.c.name == owner, schema.worker.c.seen_at > since)


def _claimable(stack_id: str, number: int, now: float) -> tuple[ColumnElement[bool], ...]:
    table = schema.shard
    return table.c.stack_id == stack_id, table.c.number == number, table.c.wake_at <= now, table.c.lease_until <= now


@prepared
def _free(stack_id: str, number: int, now: float) -> Select[Any]:
    table = schema.shard
    known = select(table.c.owner, table.c.epoch, table.c.stored, table.c.wakes, table.c.crashes)
    return known.where(*_claimable(stack_id, number, now)).with_for_update(skip_locked=True)


@prepared
def _own(stack_id: str, number: int, now: float, owner: str, until: float, crash: int) -> UpdateBase:
    table = schema.shard
    owned = update(table).where(*_claimable(stack_id, number, now))
    return owned.values(epoch=table.c.epoch + 1, owner=owner, lease_until=until, crashes=table.c.crashes + crash)


def renew(
    tx: Transaction, lease: Lease, now: float, lease_s: float, *, stores: bool = True, settles_at: int | None = None
) -> int:
    """Check the epoch and extend the lease; the first statement of each transaction of a pass.

    Args:
        stores: The transaction stores something, so the pass makes progress (see `CRASHES_MAX`).
        settles_at: Revision at which the shard is at rest; None to keep the stored one.

    Returns:
        The count of wake-ups.

    Raises:
        Superseded: The shard has a newer owner.
    """
    arguments = (lease.stack_id, lease.number, lease.epoch, now + lease_s, settles_at)
    settles, returns = settles_at is not None, tx.dialect.update_returning
    wakes = _returned(_renew(tx, *arguments, stores=stores, settles=settles, returns=returns))
    if wakes is None:
        raise Superseded(f"shard {lease.stack_id}/{lease.number} has a newer owner than epoch {lease.epoch}")
    return wakes


@prepared
def _renew(
    stack_id: str,
    number: int,
    epoch: int,
    until: float,
    revision: int | None,
    *,
    stores: bool,
    settles: bool,
    returns: bool,
) -> UpdateBase:
    # The end of the lease is not checked: a slow owner remains the owner as long as no other worker has claimed the
    # shard. An UPDATE, not a SELECT: it locks the row, so no worker can claim the shard before the commit.
    owned = update(schema.shard).where(*_owned(stack_id, number, epoch))
    changed: dict[str, Any] = {"stored": schema.shard.c.epoch} if stores else {}
    if settles:
        changed["settled_revision"] = revision
    return _returning(owned.values(lease_until=until, **changed), schema.shard.c.wakes, returns=returns)


def renew_all(tx: Transaction, leases: Collection[Lease], now: float, lease_s: float) -> None:
    """Extend these leases as far as they are still held (heartbeat).

    A shard that another transaction is writing to is skipped until the next heartbeat. This transaction locks shards of
    any stacks in any order, so it must never wait for a lock while holding locks: a deadlock would be possible.
    """
    for lease in leases:
        arguments = (lease.stack_id, lease.number, lease.epoch)
        if _lock_unless_written(tx, *arguments).first() is not None:
            _extend(tx, *arguments, now + lease_s, now)


@prepared
def _extend(stack_id: str, number: int, epoch: int, until: float, now: float) -> UpdateBase:
    # Here the end is checked: a released shard keeps its epoch, and a late heartbeat would own the shard again.
    owned = update(schema.shard).where(*_owned(stack_id, number, epoch), schema.shard.c.lease_until > now)
    return owned.values(lease_until=until)


@prepared
def _lock_unless_written(stack_id: str, number: int, epoch: int) -> Select[Any]:
    chosen = select(schema.shard.c.number).where(*_owned(stack_id, number, epoch))
    return chosen.with_for_update(skip_locked=True)


def unexpired(tx: Transaction, leases: Collection[Lease], now: float) -> set[Lease]:
    """Return the leases that have not expired."""
    table = schema.shard
    these = shards.is_any_of(sorted((lease.stack_id, lease.number) for lease in leases))
    chosen = select(table.c.stack_id, table.c.number, table.c.epoch).where(these, table.c.lease_until > now)
    owned = {tuple(row) for row in tx.execute(chosen)}
    return {lease for lease in leases if (lease.stack_id, lease.number, lease.epoch) in owned}


def _returning(statement: Update, column: Column[int], *, returns: bool) -> UpdateBase:
    """Let an UPDATE return an integer column that it does not change; `returns`: the dialect knows RETURNING."""
    # MariaDB and MySQL lack UPDATE … RETURNING, but send a number along with the response to every statement.
    return statement.returning(column) if returns else statement.values({column: func.last_insert_id(column)})


def _returned(result: CursorResult[Any]) -> int | None:
    """Return the integer of `_returning`, None if no row was changed."""
    if result.returns_rows:
        number = result.scalar_one_or_none()
        return None if number is None else int(number)
    return int(result.lastrowid) if result.rowcount else None


@dataclass(frozen=True, slots=True)
class PassProgress:
    """The progress of a shard, as seen by a pass at a revision.

    Attributes:
        nodes: The number of nodes, including nodes to be deleted.
        unfinished: The number of nodes that are not at rest.
        defined: The number of nodes that the revision defines.
        priority: The priority of the next pass, unless something happens before.
        look_at: The time of the next look at the latest; None for never.
    """

    revision: int
    nodes: int
    unfinished: int
    defined: int
    priority: Priority = Priority.USER
    look_at: float | None = None


def release(
    tx: Transaction, lease: Lease, wakes: int, wake_at: float | None, reached: PassProgress | None = None
) -> bool:
    """Give the shard back, to be woken at `wake_at`, or at once if it was woken since `wakes` was read.

    Returns:
        False if the shard has a newer owner already, which is no error.
    """
    arguments = (lease.stack_id, lease.number, lease.epoch, wakes, wake_at)
    if reached is None:
        return _release(tx, *arguments).rowcount > 0
    how_far = (reached.revision, reached.nodes, reached.unfinished, reached.defined, int(reached.priority))
    moving, looks = reached.unfinished > 0, reached.look_at is not None
    released = _release_at_revision(tx, *arguments, *how_far, reached.look_at, is_moving=moving, looks=looks)
    return released.rowcount > 0


@prepared
def _release(stack_id: str, number: int, epoch: int, wakes: int, wake_at: float | None) -> UpdateBase:
    return _released(stack_id, number, epoch, wakes, wake_at, {})


@prepared
def _release_at_revision(
    stack_id: str,
    number: int,
    epoch: int,
    wakes: int,
    wake_at: float | None,
    revision: int,
    nodes: int,
    unfinished: int,
    defined: int,
    priority: int,
    look_at: float | None,
    *,
    is_moving: bool,
    looks: bool,
) -> UpdateBase:
    """Build the release that also stores the progress of the pass, and the time of the next look.

    `planned` and `done` stay as they are if there is a newer revision, to which this progress does not apply.

    Args:
        is_moving: Some nodes are unfinished. `nodes` does not count deleted nodes, so `planned` never shrinks while
            nodes are unfinished; otherwise progress would seem to go backwards. At rest, `planned` is what remains.
    """
    table = schema.shard
    newest = select(schema.stack.c.revision).where(schema.stack.c.id == stack_id).scalar_subquery()
    same: ColumnElement[bool] = newest == revision
    planned: Any = type_coerce(defined, Integer)
    if is_moving:
        planned = case((table.c.planned > nodes, table.c.planned), else_=nodes)
    else:
        # The end of this pass may have created the next batch of its group, a newer revision that does not touch this
        # shard, and carried the shard over: then the progress holds for the newer revision as well.
        same = or_(same, table.c.settled_revision == newest)
    values = {
        "planned": case((same, planned), else_=table.c.planned),
        "done": case((same, planned - unfinished), else_=table.c.done),
        "priority": case((table.c.wakes == wakes, priority), else_=table.c.priority),
        "observe_at": look_schedule.looked_at_by(look_at, never=not looks),
    }
    return _released(stack_id, number, epoch, wakes, wake_at, values)


def _released(
    stack_id: str, number: int, epoch: int, wakes: int, wake_at: float | None, values: Mapping[str, Any]
) -> UpdateBase:
    table = schema.shard
    # If the count has changed, a wake-up came after the claim, and this pass may not have seen its cause. The row has
    # the time of the wake-up already, and overwriting the time would lose the wake-up.
    again = case((table.c.wakes == wakes, wake_at), else_=table.c.wake_at)
    owned = update(table).where(*_owned(stack_id, number, epoch))
    return owned.values(owner=None, lease_until=0.0, reason="", crashes=0, wake_at=again, **values)


def clear_crashes(tx: Transaction, stack_id: str, number: int, now: float) -> None:
    """Reset the crashes of a shard, since the worker that seemed to have crashed has not.

    If the shard was set aside for them, request a pass now.
    """
    notices.mark_due(tx)
    table = schema.shard
    aside = and_(table.c.crashes >= CRASHES_MAX, table.c.wake_at.is_not(None))
    tx.execute(
        update(table)
        .where(table.c.stack_id == stack_id, table.c.number == number, table.c.crashes > 0)
        .values(
            crashes=0,
            wake_at=case((aside, shards.sooner(now)), else_=table.c.wake_at),
            reason=case((aside, ""), else_=table.c.reason),
        )
    )


def end_lease(tx: Transaction, stack_id: str, number: int, owner: str) -> None:
    """End an owner's lease, if any, on a shard that the owner does not work on.

    `wake_at` stays, so the pass that the lease was meant for is still due.
    """
    table = schema.shard
    these = (table.c.stack_id == stack_id, table.c.number == number, table.c.owner == owner)
    tx.execute(update(table).where(*these).values(owner=None, lease_until=0.0))


def supersede(tx: Transaction, these: Sequence[tuple[str, int]]) -> None:
    """Start a new epoch of shards whose rows another transaction changes: their owners have loaded outdated rows.

    Args:
        tx: The transaction; it has locked the shards.
    """
    table = schema.shard
    ended = {"epoch": table.c.epoch + 1, "owner": None, "lease_until": 0.0}
    tx.execute(update(table).where(tuple_(table.c.stack_id, table.c.number).in_(these)).values(**ended))


def set_aside(tx: Transaction, lease: Lease, reason: str, until: float) -> None:
    """Set a shard aside until a time, after an internal error or crashes of its workers, and store the reason.

    Sibling shards continue. Nothing changes if a newer owner has the shard.
    """
    table = schema.shard
    # `crashes` stays, unlike in a release: the next pass is tried, and one more crash sets the shard aside for longer.
    tx.execute(
        update(table)
        .where(table.c.stack_id == lease.stack_id, table.c.number == lease.number, table.c.epoch == lease.epoch)
        .values(owner=None, lease_until=0.0, wake_at=until, reason=reason)
    )
