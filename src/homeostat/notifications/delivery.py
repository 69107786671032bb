"""Delivery of events to event sinks: at least once, in order, and without delaying convergence (ADR 0030).

The events and each sink's cursor are rows. A single worker at a time delivers to a sink, and moves the cursor after the
delivery, so a crash in between repeats the last events. A failed sink is retried at growing intervals.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from homeostat.clock import Clock
from homeostat.desired.redaction import Redaction, Redactions
from homeostat.model.errors import HomeostatError
from homeostat.notifications.sinks import Sinks, body_of
from homeostat.observability import metrics
from homeostat.observability.log_context import about
from homeostat.planner.retry.policy import RETRY
from homeostat.store.builtin import event_sinks
from homeostat.store.builtin.event_sinks import TAKEN_S, EventHorizon, Sink, UndeliveredEvent
from homeostat.store.database import Database, Transaction
from homeostat.store.stacks import stacks

LOG = logging.getLogger(__name__)
IDLE_S = 1.0
"""Pause after a round that found nothing to deliver."""
SINKS_MAX = 8
"""Sinks served concurrently."""
EVENTS_MAX = 100
"""Events delivered to a sink before its cursor is stored."""
DROP_S = 86_400.0
"""Age at which an undelivered event is dropped."""


class Deliverer:
    """Delivers events to the sinks that this worker takes. Several workers may share a database."""

    def __init__(self, db: Database, to: Sinks, clock: Clock, executor: Executor | None = None) -> None:
        """Store the parts.

        Args:
            to: Kinds of sinks.
            clock: Clock for due times, and for the duration of rounds.
            executor: Serves several sinks concurrently; None serves them sequentially.
        """
        self._db = db
        self._to = to
        self._clock = clock
        self._executor = executor
        self._horizon = EventHorizon()
        self._redactions = Redactions()

    def round(self) -> int:
        """Deliver to due sinks; return the number of sinks served."""
        with self._db.read() as tx:
            if not event_sinks.any_due(tx, self._clock.now()):
                return 0
            horizon = self._horizon.advance(tx)
            due = event_sinks.due(tx, self._clock.now(), horizon, SINKS_MAX)
        if not due:
            return 0
        with self._db.write() as tx:
            taken = event_sinks.take(tx, due, tx.now())
        # The loop only waits: `map` is lazy, and `_serve` catches errors.
        side_by_side = map if self._executor is None else self._executor.map
        for _ in side_by_side(lambda sink: self._serve(sink, horizon), taken):
            pass
        return len(taken)

    def _serve(self, sink: Sink, horizon: int) -> None:
        with about(stack=sink.stack_id):
            try:
                self._store_cursor(*self._deliver(sink, horizon), horizon)
            except Exception:
                LOG.exception("the sink %s is served again in %.0f s", sink.settings["type"], TAKEN_S)

    def _deliver(self, sink: Sink, horizon: int) -> tuple[Sink, str]:
        """Deliver some events to a sink.

        Args:
            sink: A sink that this worker has taken.
            horizon: `seq` up to which all events are visible, see `EventHorizon`.

        Returns:
            The sink with its new cursor, and the error that stopped the delivery; "" for none.
        """
        kind = sink.settings["type"]
        with self._db.read() as tx:
            events = event_sinks.undelivered(tx, sink, horizon, EVENTS_MAX)
            redactions = self._redactions_of(tx, events)
        # Half of the lease: the cursor has to be stored before another worker takes the sink.
        until = self._clock.monotonic() + TAKEN_S / 2
        cursor, count, reason = sink.cursor, 0, ""
        for event in events:
            if count and self._clock.monotonic() >= until:
                break
            try:
                self._to.post(sink.project, sink.settings, body_of(event, redactions[event.stack_id]))
            except Exception as error:
                reason = str(error) or repr(error)
                LOG.warning(
                    "event %d cannot be delivered to the sink %s: %s",
                    event.seq,
                    kind,
                    reason,
                    exc_info=not isinstance(error, HomeostatError),
                )
                break
            cursor, count = event.seq, count + 1
        metrics.delivered(kind, count)
        return replace(sink, cursor=cursor), reason

    def _redactions_of(self, tx: Transaction, events: Sequence[UndeliveredEvent]) -> dict[str, Redaction]:
        """Return the redactions of these events, by stack."""
        # An event has the present properties of its resource, possibly of an older revision.
        revisions = defaultdict(set)
        for event in events:
            revisions[event.stack_id].add(event.revision)
        owners = ((stacks.get(tx, stack_id), numbers) for stack_id, numbers in revisions.items())
        return {
            row.id: self._redactions.over(tx, stacks.facts(row), numbers) for row, numbers in owners if row is not None
        }

    def _store_cursor(self, sink: Sink, reason: str, horizon: int) -> None:
        """Release a sink: store its cursor, and after a failure the time of the retry."""
        with self._db.write() as tx:
            now = tx.now()
            after = replace(sink, due_at=now, failures=0, failing_since=None, reason="")
            lost = 0
            if reason:
                lost, last = event_sinks.undelivered_before(tx, sink, horizon, now - DROP_S)
                after = replace(
                    sink,
                    cursor=max(sink.cursor, last),
                    due_at=now + RETRY.delay_s(sink.failures + 1),
                    failures=sink.failures + 1,
                    failing_since=now if sink.failing_since is None else sink.failing_since,
                    reason=reason,
                )
            still_owned = event_sinks.release(tx, after)
        kind = sink.settings["type"]
        if still_owned and lost:
            LOG.error("%d events are dropped: the sink %s failed for a day: %s", lost, kind, reason)
        if still_owned and reason:
            metrics.delivery_failed(kind, lost)
