"""What happens to stacks, sent to OpenStack's message bus in the form of Heat's: at least once, and in order.

Who listens to `orchestration.stack.*` (telemetry, billing, audit) needs no change.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.clock import Clock
from homeostat.model.errors import Transient
from homeostat.model.status import Status
from homeostat.notifications.delivery import DROP_S
from homeostat.planner.retry.policy import RETRY
from homeostat.store.builtin.event_sinks import EventHorizon
from homeostat.store.database import Database
from homeostat.store.operation import message_bus
from homeostat.store.operation.message_bus import TAKEN_S, Turn

LOG = logging.getLogger(__name__)
EVENTS_MAX = 200
"""Events sent before the cursor is stored."""
PHASES = {
    Status.IN_PROGRESS: ("start", "info"),
    Status.COMPLETE: ("end", "info"),
    Status.FAILED: ("error", "error"),
}
"""Status of a stack -> end of the event type, and priority."""

Send = Callable[[str, str, Mapping[str, Any]], None]
"""Sends an event type, a priority and a payload; raises Transient where they cannot be sent."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification about a stack."""

    event_type: str
    priority: str
    payload: Mapping[str, Any]


class StackNotifier:
    """Sender of the events of all stacks. Several workers may have one on one database: one of them sends."""

    def __init__(self, db: Database, send: Send, clock: Clock) -> None:
        self._db = db
        self._send = send
        self._clock = clock
        self._horizon = EventHorizon()

    def round(self) -> int:
        """Send what is to be sent; return how many notifications that were."""
        with self._db.read() as tx:
            if not message_bus.is_due(tx, self._db.now_of(tx)):
                return 0
            horizon = self._horizon.look(self._db, tx)
        with self._db.write() as tx:
            turn = message_bus.take(self._db, tx, self._db.now_of(tx))
        return 0 if turn is None else self._send_all(turn, horizon)

    def _send_all(self, turn: Turn, horizon: int) -> int:
        with self._db.read() as tx:
            oldest = self._db.now_of(tx) - DROP_S
            events = message_bus.unsent(tx, turn.cursor, horizon, oldest, EVENTS_MAX)
            descriptions = _descriptions(tx, events)
        # Half of the lease: the cursor has to be stored before another worker takes the bus.
        until = self._clock.monotonic() + TAKEN_S / 2
        cursor, count, reason = turn.cursor, 0, ""
        for event in events:
            if count and self._clock.monotonic() >= until:
                break
            note = notification_of(event, descriptions.get((event.stack_id, event.revision), ""))
            try:
                self._send(note.event_type, note.priority, note.payload)
            except Transient as error:
                reason = str(error)
                break
            cursor, count = event.seq, count + 1
        if count == len(events) < EVENTS_MAX:
            cursor = max(cursor, horizon)  # what follows is about resources only
        self._store(turn, cursor, reason)
        return count

    def _store(self, turn: Turn, cursor: int, reason: str) -> None:
        if reason and not turn.failures:
            LOG.warning("notifications about stacks wait: %s", reason)
        elif turn.failures and not reason:
            LOG.info("notifications about stacks are sent again")
        with self._db.write() as tx:
            now = self._db.now_of(tx)
            if not reason:
                message_bus.release(tx, turn, cursor, now)
                return
            since = now if turn.failing_since is None else turn.failing_since
            message_bus.fail(tx, turn, cursor, now + RETRY.delay_s(turn.failures + 1), since, reason)


def notification_of(event: Row[Any], description: str) -> Notification:
    """Return the notification about an event of a stack, see `message_bus.unsent`."""
    phase, priority = PHASES[Status(event.status)]
    payload = {
        "tenant_id": event.project,
        "user_id": event.owner,  # the name, as in Heat
        "username": event.owner,
        "user_identity": event.user_id,
        "stack_identity": event.stack_id,
        "stack_name": event.stack_name,
        "state": f"{event.action}_{event.status}",
        "state_reason": event.reason,
        "create_at": _time(event.created_at),
        "updated_at": _time(event.updated_at),
        "description": description,
        "tags": event.tags or [],
    }
    return Notification(f"orchestration.stack.{event.action.lower()}.{phase}", priority, payload)


def _descriptions(tx: Connection, events: Sequence[Row[Any]]) -> dict[tuple[str, int], str]:
    wanted = sorted({(each.stack_id, each.revision) for each in events})
    found = message_bus.templates(tx, wanted).items()
    # Groups have none.
    return {
        key: str(template.get("description") or template.get("Description") or "")
        for key, template in found
        if isinstance(template, Mapping)
    }


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
