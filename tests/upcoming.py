"""When something is due next: for tests that let virtual time jump there."""

from typing import Any

from sqlalchemy import CursorResult, Select, case, func, select

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql.prepared import prepared


def next_wake(tx: Transaction) -> float | None:
    """Earliest time at which any shard can be claimed, or None when nothing is to be done."""
    return _time(_wake(tx))


def next_delivery(tx: Transaction) -> float | None:
    """Earliest time at which any sink may be told what it was not told yet."""
    return _time(_delivery(tx))


def next_observation(tx: Transaction) -> float | None:
    """Earliest time at which any shard is to be looked at."""
    return _time(_observation(tx))


def next_deletion(tx: Transaction) -> float | None:
    """Earliest time at which the deletion of any snapshot goes on."""
    return _time(_deletion(tx))


def next_rollout(tx: Transaction) -> float | None:
    """Earliest time at which time moves a rollout on."""
    return _time(_rollout(tx))


def next_health_check(tx: Transaction) -> float | None:
    """Earliest time at which the members of any shard are to be checked."""
    return _time(_health_check(tx))


def _time(found: CursorResult[Any]) -> float | None:
    at = found.scalar_one()
    return None if at is None else float(at)


@prepared
def _wake() -> Select[Any]:
    table = schema.shard
    claimable = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
    return select(func.min(claimable)).where(table.c.wake_at.is_not(None))


@prepared
def _delivery() -> Select[Any]:
    table, event, stack = schema.event_sink, schema.event, schema.stack
    joined = stack.join(event, event.c.stack_id == stack.c.id)
    untold = select(event.c.seq).select_from(joined)
    untold = untold.where(stack.c.root_id == table.c.stack_id, event.c.seq > table.c.cursor)
    return select(func.min(table.c.due_at)).where(untold.correlate(table).exists())


@prepared
def _observation() -> Select[Any]:
    return select(func.min(schema.shard.c.observe_at))


@prepared
def _deletion() -> Select[Any]:
    return select(func.min(schema.snapshot.c.due_at))


@prepared
def _rollout() -> Select[Any]:
    return select(func.min(schema.rollout.c.due_at))


@prepared
def _health_check() -> Select[Any]:
    return select(func.min(schema.shard.c.health_at))
