"""How far the events of stacks have been sent to the message bus.

One worker at a time sends, by a lease (`due_at`) and an epoch. The cursor moves only after the bus has an event, so a
crash leads to a repetition: each event is sent at least once, and in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select, tuple_, update

from homeostat.store import schema
from homeostat.store.database import Database, row_lock

NAME = "stacks"
TAKEN_S = 30.0
"""Length of the lease of the bus: if the worker dies, another one takes over after that."""

_bus, _event, _stack, _revision, _trust = (
    schema.message_bus,
    schema.event,
    schema.stack,
    schema.revision,
    schema.trust,
)
_mine = _bus.c.name == NAME


@dataclass(frozen=True, slots=True)
class Turn:
    """The bus, which this worker has taken.

    Attributes:
        cursor: `seq` of the last event that was sent.
        failures: Failed attempts in a row, since failing_since.
    """

    epoch: int
    cursor: int
    failures: int
    failing_since: float | None


def is_due(tx: Connection, now: float) -> bool:
    """Return whether the bus may be taken, and there may be something to send."""
    row = tx.execute(select(_bus.c.due_at, _bus.c.cursor).where(_mine)).first()
    newest = tx.execute(select(func.max(_event.c.seq))).scalar_one() or 0
    return row is None or (row.due_at <= now and row.cursor < newest)


def take(db: Database, tx: Connection, now: float) -> Turn | None:
    """Take the bus for `TAKEN_S` seconds; None if another worker has it.

    The first turn begins after the newest event.
    """
    newest = tx.execute(select(func.max(_event.c.seq))).scalar_one() or 0
    tx.execute(db.insert(_bus).values(name=NAME, cursor=newest).on_conflict_do_nothing())
    row = tx.execute(row_lock(select(_bus).where(_mine))).one()
    if row.due_at > now:
        return None
    tx.execute(update(_bus).where(_mine).values(due_at=now + TAKEN_S, epoch=row.epoch + 1))
    return Turn(row.epoch + 1, row.cursor, row.failures, row.failing_since)


def unsent(tx: Connection, after: int, horizon: int, not_before: float, limit: int) -> list[Row[Any]]:
    """Return events of stacks themselves, in order, each with its stack and the id of the stack's user (or None)."""
    user_id = select(func.max(_trust.c.user_id)).where(_trust.c.stack_id == _stack.c.root_id).scalar_subquery()
    chosen = (
        select(
            _event,
            _stack.c.project,
            _stack.c.owner,
            _stack.c.name.label("stack_name"),
            _stack.c.revision,
            _stack.c.created_at,
            _stack.c.updated_at,
            _stack.c.tags,
            user_id.label("user_id"),
        )
        .join(_stack, _stack.c.id == _event.c.stack_id)
        .where(_event.c.key == "", _event.c.seq > after, _event.c.seq <= horizon, _event.c.at >= not_before)
        .order_by(_event.c.seq)
        .limit(limit)
    )
    return list(tx.execute(chosen))


def templates(tx: Connection, revisions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Any]:
    """Return the templates of revisions, by stack and number."""
    these = tuple_(_revision.c.stack_id, _revision.c.number).in_(revisions)
    rows = tx.execute(select(_revision.c.stack_id, _revision.c.number, _revision.c.template).where(these))
    return {(row.stack_id, row.number): row.template for row in rows}


def release(tx: Connection, turn: Turn, cursor: int, due_at: float) -> None:
    """Store that all went well up to `cursor`; nothing if another worker has taken the bus meanwhile."""
    _store(tx, turn, cursor=cursor, due_at=due_at, failures=0, failing_since=None, reason="")


def fail(tx: Connection, turn: Turn, cursor: int, due_at: float, since: float, reason: str) -> None:
    """Store that an attempt failed; nothing if another worker has taken the bus meanwhile."""
    _store(tx, turn, cursor=cursor, due_at=due_at, failures=turn.failures + 1, failing_since=since, reason=reason)


def failing(tx: Connection) -> tuple[float, str] | None:
    """Return since when the bus does not take events, and why; None if it does."""
    row = tx.execute(select(_bus.c.failing_since, _bus.c.reason).where(_mine, _bus.c.failures > 0)).first()
    return None if row is None else (row.failing_since, row.reason)


def _store(tx: Connection, turn: Turn, **values: Any) -> None:
    tx.execute(update(_bus).where(_mine, _bus.c.epoch == turn.epoch).values(**values))
