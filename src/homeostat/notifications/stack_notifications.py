"""Notifications about stacks on OpenStack's message bus, in Heat's format: at least once, and in order.

Listeners to `orchestration.stack.*` (telemetry, billing, audit) and `orchestration.autoscaling.*` need no change. A
scaling begins with the event of the signal to its policy, and ends with the next end of any action of the group's
stack.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from homeostat.clock import Clock
from homeostat.model.errors import Transient
from homeostat.model.status import Action, Status
from homeostat.notifications.delivery import DROP_S
from homeostat.planner.retry.policy import RETRY
from homeostat.store.builtin.event_sinks import EventHorizon
from homeostat.store.database import Database, Transaction
from homeostat.store.operation import message_bus
from homeostat.store.operation.message_bus import TAKEN_S, Turn, UnsentEvent, UnsentResize

LOG = logging.getLogger(__name__)
EVENTS_MAX = 200
"""Events sent before the cursor is stored."""
PHASES = {
    Status.IN_PROGRESS: ("start", "info"),
    Status.COMPLETE: ("end", "info"),
    Status.FAILED: ("error", "error"),
}
"""Status of a stack -> last part of the event type, and priority."""

Send = Callable[[str, str, Mapping[str, Any]], None]
"""Sends an event type, a priority and a payload; raises Transient on failure."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification about a stack."""

    event_type: str
    priority: str
    payload: Mapping[str, Any]


class StackNotifier:
    """Sends the events of all stacks. With several workers on a database, a single worker sends at a time."""

    def __init__(self, db: Database, send: Send, clock: Clock) -> None:
        self._db = db
        self._send = send
        self._clock = clock
        self._horizon = EventHorizon()

    def round(self) -> int:
        """Send pending events; return their approximate number."""
        with self._db.read() as tx:
            if not message_bus.is_due(tx, tx.now()):
                return 0
            horizon = self._horizon.advance(tx)
        with self._db.write() as tx:
            turn = message_bus.take(tx, tx.now())
        return 0 if turn is None else self._send_all(turn, horizon)

    def _send_all(self, turn: Turn, horizon: int) -> int:
        with self._db.read() as tx:
            oldest = tx.now() - DROP_S
            events = message_bus.unsent(tx, turn.cursor, horizon, oldest, EVENTS_MAX)
            notes = _notes_of(tx, events)
        # Half of the lease: the cursor has to be stored before another worker takes the bus.
        until = self._clock.monotonic() + TAKEN_S / 2
        cursor, count, reason = turn.cursor, 0, ""
        for event in events:
            if count and self._clock.monotonic() >= until:
                break
            try:
                for note in notes.get(event.seq, ()):
                    self._send(note.event_type, note.priority, note.payload)
            except Transient as error:
                reason = str(error)
                break
            cursor, count = event.seq, count + 1
        if count == len(events) < EVENTS_MAX:
            cursor = max(cursor, horizon)  # all following events are about resources only
        self._store(turn, cursor, reason)
        return count

    def _store(self, turn: Turn, cursor: int, reason: str) -> None:
        if reason and not turn.failures:
            LOG.warning("notifications about stacks wait: %s", reason)
        elif turn.failures and not reason:
            LOG.info("notifications about stacks are sent again")
        with self._db.write() as tx:
            now = tx.now()
            if not reason:
                message_bus.release(tx, turn, cursor, now)
                return
            since = now if turn.failing_since is None else turn.failing_since
            message_bus.fail(tx, turn, cursor, now + RETRY.delay_s(turn.failures + 1), since, reason)


def _notes_of(tx: Transaction, events: Sequence[UnsentEvent]) -> dict[int, list[Notification]]:
    """Return the notifications about each event, by its `seq`."""
    about_stacks = [event for event in events if event.key == ""]
    begun = message_bus.resizes_begun(tx, [event.seq for event in events if event.key])
    ends = [event for event in about_stacks if event.status != Status.IN_PROGRESS]
    resized = message_bus.resized_stacks(tx, {event.stack_id for event in ends})
    ended = {end.seq: message_bus.resizes_ended(tx, end.stack_id, end.seq) for end in ends if end.stack_id in resized}
    descriptions = _descriptions(tx, [*about_stacks, *begun.values(), *chain.from_iterable(ended.values())])
    notes = {event.seq: [notification_of(event, descriptions)] for event in about_stacks}
    for event in about_stacks:
        notes[event.seq] += [_end_of(resize, event, descriptions) for resize in ended.get(event.seq, ())]
    return notes | {seq: [_start_of(resize, descriptions)] for seq, resize in begun.items()}


Descriptions = Mapping[tuple[str, int], str]
"""Stack and number of a revision -> the description in its template."""


def notification_of(event: UnsentEvent, descriptions: Descriptions) -> Notification:
    """Return the notification about an event of a stack, see `message_bus.unsent`."""
    phase, priority = PHASES[Status(event.status)]
    return Notification(f"orchestration.stack.{event.action.lower()}.{phase}", priority, _payload(event, descriptions))


def _start_of(resize: UnsentResize, descriptions: Descriptions) -> Notification:
    """Return the notification about the start of a group's resize; for its row see `message_bus.resizes_begun`."""
    return _scaling("start", "info", resize, descriptions, resize.before, f"Start resizing the group {resize.group}")


def _end_of(resize: UnsentResize, end: UnsentEvent, descriptions: Descriptions) -> Notification:
    """Return the notification about the result of a group's resize; `end` is the last event of the stack's action."""
    if end.status == Status.COMPLETE and end.action != Action.DELETE:
        return _scaling("end", "info", resize, descriptions, resize.after, f"End resizing the group {resize.group}")
    return _scaling("error", "error", resize, descriptions, resize.size, end.reason)


def _scaling(
    phase: str, priority: str, resize: UnsentResize, descriptions: Descriptions, capacity: int, message: str
) -> Notification:
    amount = resize.adjustment
    payload = {
        **_payload(resize, descriptions),
        "adjustment": int(amount) if amount == int(amount) else amount,
        "adjustment_type": resize.adjustment_type,
        "capacity": capacity,
        "groupname": resize.group,
        "message": message,
    }
    return Notification(f"orchestration.autoscaling.{phase}", priority, payload)


def _payload(about: UnsentEvent | UnsentResize, descriptions: Descriptions) -> dict[str, Any]:
    """Return the common payload of all notifications."""
    return {
        "tenant_id": about.project,
        "user_id": about.owner,  # the name, as in Heat
        "username": about.owner,
        "user_identity": about.user_id,
        "stack_identity": about.stack_id,
        "stack_name": about.stack_name,
        "state": f"{about.action}_{about.status}",
        "state_reason": about.reason,
        "create_at": _time(about.created_at),
        "updated_at": _time(about.updated_at),
        "description": descriptions.get((about.stack_id, about.revision), ""),
        "tags": about.tags or [],
    }


def _descriptions(tx: Transaction, events: Sequence[UnsentEvent | UnsentResize]) -> Descriptions:
    wanted = sorted({(event.stack_id, event.revision) for event in events})
    templates = message_bus.templates(tx, wanted).items()
    # Stacks of groups have no template.
    return {
        key: str(template.get("description") or template.get("Description") or "")
        for key, template in templates
        if isinstance(template, Mapping)
    }


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
