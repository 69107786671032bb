"""Event sinks: the targets of a stack's events, and the progress of their deliveries (ADR 0030).

A sink belongs to a root stack, and receives the events of all its nested stacks, too. One worker at a time serves a
sink, by a lease (`due_at`) and an epoch. The cursor moves only after a delivery, so a crash leads to a repetition: each
event is delivered at least once, and in order.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    tuple_,
    update,
)

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql import typed
from homeostat.store.sql.delete_found import delete_found
from homeostat.store.sql.prepared import prepared

TAKEN_S = 30.0
"""Length of the lease of a sink: if the worker dies, another takes over after this time."""

Key = tuple[str, str]
"""Root stack, and digest of the settings."""

_sink, _stack, _event, _resource = schema.event_sink, schema.stack, schema.event, schema.resource
_EVENTS = _stack.join(_event, _event.c.stack_id == _stack.c.id)


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink that this worker has taken.

    Attributes:
        cursor: `seq` of the last event that was delivered.
        due_at: When deliveries continue.
        failures: Failed deliveries in a row, since failing_since.
    """

    stack_id: str
    digest: str
    settings: Mapping[str, Any]
    project: str
    epoch: int
    cursor: int
    due_at: float
    failures: int
    failing_since: float | None
    reason: str


class EventHorizon:
    """The newest event up to which all events are visible, so that a cursor may advance to it.

    With concurrent writers, an event may become visible after an event with a greater number: numbers are assigned when
    a row is inserted, and rows become visible when their transaction commits. A cursor beyond the greater number would
    skip the smaller. So the newest number of a moment counts once all transactions running at the moment have ended.
    """

    def __init__(self) -> None:
        self._sure = 0
        self._newest = 0
        self._until = 0

    def advance(self, tx: Transaction) -> int:
        """Return `seq` of the newest event that counts.

        Args:
            tx: A transaction of `Database.read`, in which all statements see one snapshot.
        """
        oldest, following = tx.running()
        newest = int(tx.execute(select(func.max(_event.c.seq))).scalar_one() or 0)
        # All transactions that ran when `_newest` was read have ended: `_until` was the next to begin.
        if oldest >= self._until:
            self._sure = self._newest
            self._newest, self._until = newest, following
        # No transaction is running now.
        if oldest >= following:
            self._sure = newest
        return self._sure


def set_sinks(tx: Transaction, stack_id: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Replace the sinks of a root stack.

    A new sink receives the events from now on; a sink with unchanged settings continues at its cursor.
    """
    by_digest = {_digest(settings): settings for settings in wanted}
    condition = _sink.c.stack_id == stack_id
    known = set(tx.execute(select(_sink.c.digest).where(condition)).scalars())
    removed, added = known - by_digest.keys(), by_digest.keys() - known
    if removed:
        tx.execute(delete(_sink).where(condition, _sink.c.digest.in_(removed)))
    if added:
        tx.insert_now()
        newest = select(func.max(_event.c.seq)).select_from(_EVENTS).where(_stack.c.root_id == stack_id)
        cursor = tx.execute(newest).scalar_one() or 0
        rows = [
            {"stack_id": stack_id, "digest": digest, "settings": by_digest[digest], "cursor": cursor}
            for digest in sorted(added)
        ]
        tx.execute(insert(_sink), rows)


def _digest(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def any_due(tx: Transaction, now: float) -> bool:
    """Return whether some sink may have events to deliver now."""
    return _any_due(tx, now).first() is not None


@prepared
def _any_due(now: float) -> Select[Any]:
    return select(_sink.c.stack_id).where(_sink.c.due_at <= now).limit(1)


def due(tx: Transaction, now: float, horizon: int, limit: int) -> list[Key]:
    """Return the sinks with events to deliver, with failing sinks last."""
    failing = case((_sink.c.failures > 0, 1), else_=0)
    undelivered_events = (
        select(_event.c.seq).select_from(_EVENTS).where(*_undelivered(_sink.c.stack_id, _sink.c.cursor, horizon))
    )
    chosen = (
        select(_sink.c.stack_id, _sink.c.digest)
        .where(_sink.c.due_at <= now, exists(undelivered_events.correlate(_sink)))
        .order_by(failing, _sink.c.due_at, _sink.c.stack_id, _sink.c.digest)
        .limit(limit)
    )
    return [(row.stack_id, row.digest) for row in tx.execute(chosen)]


def take(tx: Transaction, keys: Sequence[Key], now: float) -> list[Sink]:
    """Take the free ones among these sinks, for `TAKEN_S` seconds."""
    # A sink that another worker is just taking is locked; skip it instead of waiting.
    free = and_(tuple_(_sink.c.stack_id, _sink.c.digest).in_(keys), _sink.c.due_at <= now)
    held = select(_sink.c.stack_id, _sink.c.digest).where(free).with_for_update(skip_locked=True)
    held_sinks = [tuple(row) for row in tx.execute(held)]
    if not held_sinks:
        return []
    these = tuple_(_sink.c.stack_id, _sink.c.digest).in_(held_sinks)
    tx.execute(update(_sink).where(these).values(due_at=now + TAKEN_S, epoch=_sink.c.epoch + 1))
    taken = select(_sink, _stack.c.project).join(_stack, _stack.c.id == _sink.c.stack_id).where(these)
    return [Sink(**row._mapping) for row in tx.execute(taken.order_by(_sink.c.stack_id, _sink.c.digest))]


class UndeliveredEvent(NamedTuple):
    """An event with the present state of its resource.

    Attributes:
        properties: The properties of the resource; None if its row does not exist.
        revision: The revision of the last operation on the resource; None if its row does not exist.
    """

    seq: int
    stack_id: str
    name: str
    key: str
    handle: str
    type: str
    action: str
    status: str
    reason: str
    at: float
    requested_by: str
    request_id: str
    properties: Any | None
    revision: int | None


def undelivered(tx: Transaction, sink: Sink, horizon: int, limit: int) -> list[UndeliveredEvent]:
    """Return the events to deliver, in order."""
    chosen = (
        select(
            *(_event.c[name] for name in UndeliveredEvent._fields[:-2]), _resource.c.properties, _resource.c.revision
        )
        .select_from(_EVENTS.outerjoin(_resource, _resource.c.key == _event.c.key))
        .where(*_undelivered(sink.stack_id, sink.cursor, horizon))
        .order_by(_event.c.seq)
        .limit(limit)
    )
    return list(typed.rows(UndeliveredEvent, tx.execute(chosen)))


def undelivered_before(tx: Transaction, sink: Sink, horizon: int, before: float) -> tuple[int, int]:
    """Return the number of events to deliver from before this time, and `seq` of the last of them."""
    old = (*_undelivered(sink.stack_id, sink.cursor, horizon), _event.c.at < before)
    totals = select(func.count(), func.max(_event.c.seq)).select_from(_EVENTS).where(*old)
    count, last = tx.execute(totals).one()
    return int(count), int(last or 0)


def release(tx: Transaction, sink: Sink) -> bool:
    """Store the progress of a sink, and delete it if its stack is deleted and no events are left to deliver.

    Returns:
        False if another worker has taken the sink meanwhile; then nothing is stored.
    """
    condition = and_(_sink.c.stack_id == sink.stack_id, _sink.c.digest == sink.digest, _sink.c.epoch == sink.epoch)
    values = {name: getattr(sink, name) for name in ("cursor", "due_at", "failures", "failing_since", "reason")}
    stored = tx.execute(update(_sink).where(condition).values(**values)).rowcount == 1
    deleted = select(_stack.c.id).where(_stack.c.id == sink.stack_id, _stack.c.deleted_at.is_not(None))
    rest = select(_event.c.seq).select_from(_EVENTS).where(*_undelivered(sink.stack_id, sink.cursor))
    delete_found(tx, _sink, condition, exists(deleted), ~exists(rest))
    return stored


class FailingSink(NamedTuple):
    """A sink; `stack` is the name of its stack."""

    stack_id: str
    stack: str
    settings: Any
    failing_since: float
    reason: str


def failing(tx: Transaction) -> list[FailingSink]:
    """Return failing sinks, longest first."""
    chosen = (
        select(_sink.c.stack_id, _stack.c.name.label("stack"), _sink.c.settings, _sink.c.failing_since, _sink.c.reason)
        .join(_stack, _stack.c.id == _sink.c.stack_id)
        .where(_sink.c.failures > 0)
        .order_by(_sink.c.failing_since, _sink.c.stack_id)
    )
    return list(typed.rows(FailingSink, tx.execute(chosen)))


def _undelivered(root: Any, cursor: Any, horizon: int | None = None) -> list[ColumnElement[bool]]:
    """Return the conditions, on `_EVENTS`, for events after the cursor of a root stack and of all its descendants."""
    after = [_stack.c.root_id == root, _event.c.seq > cursor]
    return after if horizon is None else [*after, _event.c.seq <= horizon]
