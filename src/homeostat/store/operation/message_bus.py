"""Progress of sending the events of stacks to the message bus.

One worker at a time sends, by a lease (`due_at`) and an epoch. The cursor moves only after the bus has an event, so a
crash leads to a repetition: each event is sent at least once, and in order.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, or_, select, tuple_, update

from homeostat.model.status import Status
from homeostat.store import schema
from homeostat.store.database import Transaction, row_lock
from homeostat.store.sql import typed

NAME = "stacks"
TAKEN_S = 30.0
"""Length of the lease of the bus: if the worker dies, another takes over after this time."""

_bus, _event, _stack, _revision, _trust, _resize = (
    schema.message_bus,
    schema.event,
    schema.stack,
    schema.revision,
    schema.trust,
    schema.resize,
)
_this_bus = _bus.c.name == NAME


@dataclass(frozen=True, slots=True)
class Turn:
    """The lease of the bus by this worker.

    Attributes:
        cursor: `seq` of the last event that was sent.
        failures: Failed attempts in a row, since failing_since.
    """

    epoch: int
    cursor: int
    failures: int
    failing_since: float | None


def is_due(tx: Transaction, now: float) -> bool:
    """Return whether the bus may be taken, and may have something to send."""
    row = tx.execute(select(_bus.c.due_at, _bus.c.cursor).where(_this_bus)).first()
    newest = tx.execute(select(func.max(_event.c.seq))).scalar_one() or 0
    return row is None or (row.due_at <= now and row.cursor < newest)


def take(tx: Transaction, now: float) -> Turn | None:
    """Take the bus for `TAKEN_S` seconds; None if another worker has it.

    The first turn begins after the newest event.
    """
    newest = tx.execute(select(func.max(_event.c.seq))).scalar_one() or 0
    # Only an existing row can be locked: the first two workers would otherwise both take the bus.
    tx.execute(tx.insert(_bus).values(name=NAME, cursor=newest).on_conflict_do_nothing())
    row = tx.execute(row_lock(select(_bus).where(_this_bus))).one()
    if row.due_at > now:
        return None
    tx.execute(update(_bus).where(_this_bus).values(due_at=now + TAKEN_S, epoch=row.epoch + 1))
    return Turn(row.epoch + 1, row.cursor, row.failures, row.failing_since)


_user_id = select(func.max(_trust.c.user_id)).where(_trust.c.stack_id == _stack.c.root_id).scalar_subquery()
_STACK = (
    _stack.c.project,
    _stack.c.owner,
    _stack.c.name.label("stack_name"),
    _stack.c.revision,
    _stack.c.created_at,
    _stack.c.updated_at,
    _stack.c.tags,
    _user_id.label("user_id"),
)
"""Columns of the stack in each notification, and the id of the stack's user (or None)."""


class UnsentEvent(NamedTuple):
    """An event with its stack, see `_STACK`."""

    seq: int
    stack_id: str
    key: str
    action: str
    status: str
    reason: str
    project: str
    owner: str | None
    stack_name: str
    revision: int
    created_at: float
    updated_at: float | None
    tags: list[str] | None
    user_id: str | None


class UnsentResize(NamedTuple):
    """A resize by a signal, with the stack of the policy and its present state."""

    event: int
    group: str
    adjustment: float
    adjustment_type: str
    before: int
    after: int
    size: int
    stack_id: str
    action: str
    status: str
    reason: str
    project: str
    owner: str | None
    stack_name: str
    revision: int
    created_at: float
    updated_at: float | None
    tags: list[str] | None
    user_id: str | None


def unsent(tx: Transaction, after: int, horizon: int, not_before: float, limit: int) -> list[UnsentEvent]:
    """Return events of stacks themselves, and of signals that resized groups, in order, each with its stack."""
    window = (_event.c.seq > after, _event.c.seq <= horizon)
    signals = select(_resize.c.event).where(_resize.c.event > after, _resize.c.event <= horizon)
    chosen = (
        select(*(_event.c[name] for name in ("seq", "stack_id", "key", "action", "status", "reason")), *_STACK)
        .join(_stack, _stack.c.id == _event.c.stack_id)
        .where(or_(_event.c.key == "", _event.c.seq.in_(signals)), *window, _event.c.at >= not_before)
        .order_by(_event.c.seq)
        .limit(limit)
    )
    return list(typed.rows(UnsentEvent, tx.execute(chosen)))


def resizes_begun(tx: Transaction, events: Collection[int]) -> dict[int, UnsentResize]:
    """Return the resizes of groups by signals, by `seq` of the event of the signal; see `_resizes`."""
    return {row.event: row for row in _resizes(tx, _resize.c.event.in_(events))} if events else {}


def resized_stacks(tx: Transaction, stack_ids: Collection[str]) -> set[str]:
    """Return the stacks that were resized by signals."""
    chosen = select(_resize.c.stack_id).distinct().where(_resize.c.stack_id.in_(stack_ids))
    return set(tx.execute(chosen).scalars())


def resizes_ended(tx: Transaction, stack_id: str, end: int) -> list[UnsentResize]:
    """Return the resizes of a group by signals in the action that ended with the event `end`; see `_resizes`."""
    earlier = (_event.c.stack_id == stack_id, _event.c.key == "", _event.c.seq < end)
    before = select(func.max(_event.c.seq)).where(*earlier, _event.c.status != Status.IN_PROGRESS)
    since = int(tx.execute(before).scalar_one() or 0)
    return _resizes(tx, (_resize.c.stack_id == stack_id) & (_resize.c.event > since) & (_resize.c.event < end))


def _resizes(tx: Transaction, which: ColumnElement[bool]) -> list[UnsentResize]:
    """Return rows of `schema.resize`, each with the stack of the policy, its present state and its group's size."""
    member = schema.resource.c
    size = (
        select(func.count())
        .where(member.stack_id == _resize.c.stack_id, member.status != Status.FAILED, member.handle != "")
        .scalar_subquery()
    )
    chosen = (
        select(
            _resize.c.event,
            _resize.c.stack_id.label("group"),
            _resize.c.adjustment,
            _resize.c.adjustment_type,
            _resize.c.before,
            _resize.c.after,
            size.label("size"),
            _event.c.stack_id,
            _stack.c.action,
            _stack.c.status,
            _stack.c.reason,
            *_STACK,
        )
        .join(_event, _event.c.seq == _resize.c.event)
        .join(_stack, _stack.c.id == _event.c.stack_id)
        .where(which)
        .order_by(_resize.c.event)
    )
    return list(typed.rows(UnsentResize, tx.execute(chosen)))


def templates(tx: Transaction, revisions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Any]:
    """Return the templates of revisions, by stack and number; for a deleting revision, the previous template."""
    these = tuple_(_revision.c.stack_id, _revision.c.number).in_(revisions)
    columns = (_revision.c.stack_id, _revision.c.number, _revision.c.kind, _revision.c.template)
    texts = {}
    for row in tx.execute(select(*columns).where(these)).all():
        texts[row.stack_id, row.number] = row.template if row.kind != "empty" else _before(tx, row.stack_id, row.number)
    return texts


def _before(tx: Transaction, stack_id: str, number: int) -> Any:
    """Return the last template of a stack before a revision; None if there was none."""
    conditions = (_revision.c.stack_id == stack_id, _revision.c.number < number, _revision.c.kind == "template")
    return tx.execute(
        select(_revision.c.template).where(*conditions).order_by(_revision.c.number.desc()).limit(1)
    ).scalar()


def release(tx: Transaction, turn: Turn, cursor: int, due_at: float) -> None:
    """Store success up to `cursor`; do nothing if another worker has taken the bus meanwhile."""
    _store(tx, turn, cursor=cursor, due_at=due_at, failures=0, failing_since=None, reason="")


def fail(tx: Transaction, turn: Turn, cursor: int, due_at: float, since: float, reason: str) -> None:
    """Store a failed attempt; do nothing if another worker has taken the bus meanwhile."""
    _store(tx, turn, cursor=cursor, due_at=due_at, failures=turn.failures + 1, failing_since=since, reason=reason)


def failing(tx: Transaction) -> tuple[float, str] | None:
    """Return since when the bus does not accept events, and why; None if it does."""
    row = tx.execute(select(_bus.c.failing_since, _bus.c.reason).where(_this_bus, _bus.c.failures > 0)).first()
    return None if row is None else (row.failing_since, row.reason)


def _store(tx: Transaction, turn: Turn, **values: Any) -> None:
    tx.execute(update(_bus).where(_this_bus, _bus.c.epoch == turn.epoch).values(**values))
