"""The schedule of looks: when the things of a shard are observed, and which passes wait for that (ADR 0010).

A *look* is one round of an observer over the things of a shard. Observers need no lease: they take a shard by moving
its `observe_at`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, UpdateBase, and_, case, func, select, update

from homeostat.model.world import look_interval
from homeostat.store import schema
from homeostat.store.shards.shards import USER, is_any_of, wake_values
from homeostat.store.sql import lock_order, notices
from homeostat.store.sql.prepared import prepared

TAKEN_S = 5.0
"""Time for which an observer keeps the shards that it has taken; if it dies, they are looked at again after that."""


def take_for_observation(tx: Connection, now: float, limit: int, again_s: float) -> dict[tuple[str, int], float | None]:
    """Take shards whose things have to be looked at now, for `TAKEN_S` seconds.

    Within that time the observer calls `look_again`; otherwise another observer takes them.

    Args:
        limit: How many shards at most.
        again_s: Seconds between looks, for stacks without a setting of their own.

    Returns:
        Shard -> seconds until its next look, None for never.
    """
    found = {(row.stack_id, row.number): row for row in _to_be_looked_at(tx, now, limit)}
    if found:
        _take(tx, sorted(found), now + TAKEN_S)
    return {shard: look_interval(row.observe_s, row.exceptions, again_s) for shard, row in found.items()}


def seen_lately(tx: Connection, taken: Mapping[tuple[str, int], float | None], now: float) -> set[tuple[str, int]]:
    """Return those of these shards whose things were all looked at within their interval.

    Those for which another such look was requested, or of which something could not be seen, are left out.

    Args:
        taken: Shards, each with its seconds between looks, None for never.
    """
    return {
        (row.stack_id, row.number)
        for row in _looks(tx, sorted(taken))
        if row.looked_at is not None
        and not row.blind
        and (row.look_from is None or row.look_from <= row.looked_at)
        and now < row.looked_at + (taken[row.stack_id, row.number] or math.inf)
    }


@prepared
def _looks(these: Sequence[tuple[str, int]]) -> Select[Any]:
    table = schema.shard
    columns = (table.c.stack_id, table.c.number, table.c.looked_at, table.c.look_from, table.c.blind)
    return select(*columns).where(is_any_of(these))


@prepared
def _to_be_looked_at(now: float, limit: int) -> Select[Any]:
    # SKIP LOCKED: observers never wait for a pass that is writing to a shard; the next round finds that shard.
    table, stack = schema.shard, schema.stack
    # Not joined, so that no stack is locked: MariaDB locks the rows of all tables of a query.
    settings = (
        select(column).where(stack.c.id == table.c.stack_id).scalar_subquery().label(column.name)
        for column in (stack.c.observe_s, stack.c.exceptions)
    )
    due = select(table.c.stack_id, table.c.number, *settings).where(table.c.observe_at <= now)
    return due.order_by(table.c.observe_at).limit(limit).with_for_update(skip_locked=True)


@prepared
def _take(these: Sequence[tuple[str, int]], until: float) -> UpdateBase:
    return update(schema.shard).where(is_any_of(these)).values(observe_at=until)


def look_again(tx: Connection, taken: Collection[tuple[str, int]], taken_at: float, at: float | None) -> None:
    """Give back shards that were taken at `taken_at`; their next look is at time `at`, None for never.

    A shard for which another look was requested meanwhile keeps that time.
    """
    these = sorted(taken)
    lock_order.take(tx, these)
    _release(tx, these, taken_at, taken_at + TAKEN_S, at)


@prepared
def _release(these: Sequence[tuple[str, int]], taken_at: float, until: float, at: float | None) -> UpdateBase:
    # The exact time that `take_for_observation` has set marks the shard as taken by this observer: any other time was
    # set by a request for a look, or by the next observer. A request that came when that time was over has left it.
    table = schema.shard
    conditions = (table.c.observe_at == until, func.coalesce(table.c.look_from, 0.0) <= taken_at)
    return update(table).where(is_any_of(these), *conditions).values(observe_at=at)


def _within(
    stacks: ColumnElement[Any] | Sequence[str], numbers: Sequence[int] | None = None
) -> list[ColumnElement[bool]]:
    table = schema.shard
    some = [] if numbers is None else [table.c.number.in_(numbers)]
    return [table.c.stack_id.in_(stacks), *some]


def record_look(tx: Connection, seen: Collection[tuple[str, int]], at: float) -> None:
    """Record that all things of these shards were looked at, at this time or later.

    Shards whose passes wait for such a look are woken.
    """
    if not seen:
        return
    these = sorted(seen)
    lock_order.take(tx, these)
    # Before `_seen`, whose new `looked_at` would make every request look as if it had been fulfilled before.
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


def record_blind(tx: Connection, blind: Collection[tuple[str, int]], reason: str) -> None:
    """Record why the things of these shards could not be looked at."""
    table = schema.shard
    if blind:
        these = sorted(blind)
        lock_order.take(tx, these)
        tx.execute(update(table).where(is_any_of(these)).values(blind=reason))


def request_look(
    tx: Connection, stacks: ColumnElement[Any] | Sequence[str], at: float, numbers: Sequence[int] | None = None
) -> None:
    """Request a look at these stacks as soon as possible; their shards are woken once one made after `at` is stored.

    Args:
        stacks: The stacks, as ids or as a subquery of ids.
        at: The agreed time.
        numbers: Only these shards; None for all.
    """
    notices.mark_due(tx)
    table = schema.shard
    sooner = case((table.c.observe_at < at, table.c.observe_at), else_=at)
    lock_order.take_shards(tx, *_within(stacks, numbers))
    tx.execute(update(table).where(*_within(stacks, numbers)).values(look_from=at, observe_at=sooner))


def looked_at(
    tx: Connection, stacks: ColumnElement[Any] | Sequence[str], numbers: Sequence[int] | None = None
) -> tuple[float | None, str]:
    """Return when these stacks were last looked at as a whole.

    Args:
        stacks: The stacks, as ids or as a subquery of ids.
        numbers: Only these shards; None for all.

    Returns:
        The time of the oldest among the newest looks at each shard, None if some shard was never looked at; and why a
        shard could not be looked at last, "" if all could.
    """
    table = schema.shard
    oldest = func.min(func.coalesce(table.c.looked_at, 0.0))
    row = tx.execute(select(oldest, func.max(table.c.blind)).where(*_within(stacks, numbers))).one()
    return row[0] or None, row[1] or ""


def schedule_look(tx: Connection, stack_id: str, number: int, at: float | None) -> None:
    """Request a look at time `at`, or earlier if one was requested already.

    None means that the shard has nothing to look at; a look that a pass waits for still takes place.
    """
    _schedule_look(tx, stack_id, number, at, never=at is None)


@prepared
def _schedule_look(stack_id: str, number: int, at: float | None, *, never: bool) -> UpdateBase:
    table = schema.shard
    waits = table.c.look_from > func.coalesce(table.c.looked_at, 0.0)
    known = waits if never else table.c.observe_at < at
    sooner = case((known, table.c.observe_at), else_=at)
    return update(table).where(table.c.stack_id == stack_id, table.c.number == number).values(observe_at=sooner)
