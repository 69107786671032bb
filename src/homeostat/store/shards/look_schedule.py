"""The schedule of looks: when the things of a shard are observed, and which passes wait for a look (ADR 0010).

A *look* is one round of an observer over the things of a shard. Observers need no lease: they take a shard by moving
its `observe_at`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, UpdateBase, and_, case, func, select, update

from homeostat.model.world import look_interval
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.shards.shards import USER, is_any_of, wake_values
from homeostat.store.sql import lock_order, notices
from homeostat.store.sql.prepared import prepared

Stamp = tuple[int, int]
"""Epoch and wake-ups of a shard."""
TAKEN_S = 5.0
"""Time for which an observer keeps the shards that it takes: after its death they are due again so much later."""


def take_for_observation(
    tx: Transaction, now: float, limit: int, again_s: float
) -> dict[tuple[str, int], float | None]:
    """Take shards with a due look, for `TAKEN_S` seconds.

    Within that time the observer calls `reschedule`; otherwise another observer takes them.

    Args:
        again_s: Seconds between looks, for stacks without their own setting.

    Returns:
        Shard -> seconds until its next look, None for never.
    """
    taken = {(row.stack_id, row.number): row for row in _to_be_looked_at(tx, now, limit)}
    if taken:
        _take(tx, sorted(taken), now + TAKEN_S)
    return {shard: look_interval(row.observe_s, row.exceptions, again_s) for shard, row in taken.items()}


@dataclass(frozen=True, slots=True)
class Look:
    """The newest look at a shard.

    Attributes:
        stamp: Differs as soon as anything was stored about the shard's things; None while the shard has an owner.
        at: The time of the newest look at all its things; None if there was none, or a newer one is requested or has
            failed.
    """

    stamp: Stamp | None
    at: float | None


def looks(tx: Transaction, these: Collection[tuple[str, int]]) -> dict[tuple[str, int], Look]:
    """Return the newest looks at these shards."""
    return {(stack_id, number): _look(*values) for stack_id, number, *values in _looks(tx, sorted(these))}


def _look(
    looked_at: float | None, look_from: float | None, blind: str, owner: str | None, epoch: int, wakes: int
) -> Look:
    outdated = blind or looked_at is None or (look_from is not None and look_from > looked_at)
    # A pass stores nothing without an owner in the row, and increments the epoch first; all others wake the shard.
    return Look((epoch, wakes) if owner is None else None, None if outdated else looked_at)


@prepared
def _looks(these: Sequence[tuple[str, int]]) -> Select[Any]:
    table = schema.shard
    times = (table.c.looked_at, table.c.look_from, table.c.blind)
    stamp = (table.c.owner, table.c.epoch, table.c.wakes)
    return select(table.c.stack_id, table.c.number, *times, *stamp).where(is_any_of(these))


@prepared
def _to_be_looked_at(now: float, limit: int) -> Select[Any]:
    # SKIP LOCKED: observers never wait for a pass that is writing to a shard; the next round finds that shard.
    table, stack = schema.shard, schema.stack
    # Subqueries instead of a join, to lock no stack: MariaDB locks the rows of all tables of a query.
    settings = (
        select(column).where(stack.c.id == table.c.stack_id).scalar_subquery().label(column.name)
        for column in (stack.c.observe_s, stack.c.exceptions)
    )
    due = select(table.c.stack_id, table.c.number, *settings).where(table.c.observe_at <= now)
    return due.order_by(table.c.observe_at).limit(limit).with_for_update(skip_locked=True)


@prepared
def _take(these: Sequence[tuple[str, int]], until: float) -> UpdateBase:
    return update(schema.shard).where(is_any_of(these)).values(observe_at=until)


def reschedule(tx: Transaction, taken: Collection[tuple[str, int]], taken_at: float, at: float | None) -> None:
    """Give back shards that were taken at `taken_at`; their next look is at time `at`, None for never.

    A shard with a new request for a look keeps the requested time.
    """
    these = sorted(taken)
    lock_order.take(tx, these)
    _release(tx, these, taken_at, taken_at + TAKEN_S, at)


@prepared
def _release(these: Sequence[tuple[str, int]], taken_at: float, until: float, at: float | None) -> UpdateBase:
    # The exact time set by `take_for_observation` marks the shard as taken by this observer: other times come from a
    # request for a look, or from the next observer. A request made after that time does not move it, hence `look_from`.
    table = schema.shard
    conditions = (table.c.observe_at == until, func.coalesce(table.c.look_from, 0.0) <= taken_at)
    return update(table).where(is_any_of(these), *conditions).values(observe_at=at)


def _within(
    stacks: ColumnElement[Any] | Sequence[str], numbers: Sequence[int] | None = None
) -> list[ColumnElement[bool]]:
    table = schema.shard
    of_numbers = [] if numbers is None else [table.c.number.in_(numbers)]
    return [table.c.stack_id.in_(stacks), *of_numbers]


def record_look(tx: Transaction, seen: Collection[tuple[str, int]], at: float) -> None:
    """Record that all things of these shards were observed at this time or later; wake passes waiting for the look."""
    if not seen:
        return
    these = sorted(seen)
    lock_order.take(tx, these)
    # Before `_seen`, whose new `looked_at` would make every request seem fulfilled already.
    if _wake_waiting(tx, these, at).rowcount:
        notices.mark_due(tx)
    _seen(tx, these, at)


@prepared
def _wake_waiting(these: Sequence[tuple[str, int]], at: float) -> UpdateBase:
    table = schema.shard
    waits = and_(table.c.look_from <= at, table.c.look_from >= func.coalesce(table.c.looked_at, 0.0))
    return update(table).where(is_any_of(these), waits).values(**wake_values(at, USER))


@prepared
def _seen(these: Sequence[tuple[str, int]], at: float) -> UpdateBase:
    return update(schema.shard).where(is_any_of(these)).values(looked_at=at, blind="")


def record_blind(tx: Transaction, blind: Collection[tuple[str, int]], reason: str) -> None:
    """Record why the things of these shards could not be observed."""
    table = schema.shard
    if blind:
        these = sorted(blind)
        lock_order.take(tx, these)
        tx.execute(update(table).where(is_any_of(these)).values(blind=reason))


def request_look(
    tx: Transaction, stacks: ColumnElement[Any] | Sequence[str], at: float, numbers: Sequence[int] | None = None
) -> None:
    """Request a look at these stacks, as soon as possible; the first look after `at` wakes their shards when stored."""
    notices.mark_due(tx)
    table = schema.shard
    sooner = case((table.c.observe_at < at, table.c.observe_at), else_=at)
    lock_order.take_shards(tx, *_within(stacks, numbers))
    tx.execute(update(table).where(*_within(stacks, numbers)).values(look_from=at, observe_at=sooner))


def last_complete_look(
    tx: Transaction, stacks: ColumnElement[Any] | Sequence[str], numbers: Sequence[int] | None = None
) -> tuple[float | None, str]:
    """Return the time of the last complete look at these stacks.

    Returns:
        The minimum over the shards of the time of the newest look, None if a shard was never looked at; and why the
        latest look at a shard failed, "" if all succeeded.
    """
    table = schema.shard
    oldest = func.min(func.coalesce(table.c.looked_at, 0.0))
    row = tx.execute(select(oldest, func.max(table.c.blind)).where(*_within(stacks, numbers))).one()
    return row[0] or None, row[1] or ""


def looked_at_by(at: Any, *, never: bool) -> ColumnElement[float]:
    """Return the time of a shard's next look: `at`, or earlier if requested already.

    Args:
        never: The shard has nothing to observe; a look that a pass waits for still takes place.
    """
    table = schema.shard
    waits = table.c.look_from > func.coalesce(table.c.looked_at, 0.0)
    return case((waits if never else table.c.observe_at < at, table.c.observe_at), else_=at)
