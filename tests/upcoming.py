"""When something is due next: for tests that let virtual time jump there."""

from sqlalchemy import Connection, case, func, select

from homeostat.store import schema


def next_wake(tx: Connection) -> float | None:
    """Earliest time at which any shard can be claimed, or None when nothing is to be done."""
    table = schema.shard
    claimable = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
    at = tx.execute(select(func.min(claimable)).where(table.c.wake_at.is_not(None))).scalar_one()
    return None if at is None else float(at)


def next_delivery(tx: Connection) -> float | None:
    """Earliest time at which any sink may be told what it was not told yet."""
    table, event, stack = schema.event_sink, schema.event, schema.stack
    joined = stack.join(event, event.c.stack_id == stack.c.id)
    untold = select(event.c.seq).select_from(joined)
    untold = untold.where(stack.c.root_id == table.c.stack_id, event.c.seq > table.c.cursor)
    at = tx.execute(select(func.min(table.c.due_at)).where(untold.correlate(table).exists())).scalar_one()
    return None if at is None else float(at)


def next_observation(tx: Connection) -> float | None:
    """Earliest time at which any shard is to be looked at."""
    at = tx.execute(select(func.min(schema.shard.c.observe_at))).scalar_one()
    return None if at is None else float(at)


def next_deletion(tx: Connection) -> float | None:
    """Earliest time at which the deletion of any snapshot goes on."""
    at = tx.execute(select(func.min(schema.snapshot.c.due_at))).scalar_one()
    return None if at is None else float(at)


def next_rollout(tx: Connection) -> float | None:
    """Earliest time at which time moves a rollout on."""
    at = tx.execute(select(func.min(schema.rollout.c.due_at))).scalar_one()
    return None if at is None else float(at)


def next_health_check(tx: Connection) -> float | None:
    """Earliest time at which the members of any shard are to be checked."""
    at = tx.execute(select(func.min(schema.shard.c.health_at))).scalar_one()
    return None if at is None else float(at)
