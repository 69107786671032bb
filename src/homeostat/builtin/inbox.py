"""Signals for handles of wait conditions and for deployments, stored with observations of the changed records.

The waiting shard is woken in the same transaction. The wake-up carries no data: the shard reads the observation
(invariant 1, CONTRIBUTING.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.builtin.kinds.deployments import end_deployment
from homeostat.builtin.kinds.registry import observed
from homeostat.builtin.reports import SIGNAL, Body
from homeostat.model.errors import Rejected
from homeostat.model.limits import OUTPUTS, SIGNALS
from homeostat.model.plan import Priority
from homeostat.model.status import Action
from homeostat.resources import signals
from homeostat.resources.families import deployments
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE
from homeostat.resources.registry import of_kind
from homeostat.store import events
from homeostat.store.builtin import records, signal_tallies
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Database, Transaction
from homeostat.store.schema import json_size
from homeostat.store.shards import observations, shards

ANSWERED_MAX = 64 * 1024
"""Maximum of bytes of a handle's signals to include all signals in the answer to a signal."""


@dataclass(frozen=True, slots=True)
class SignalOutcome:
    """The result of a signal.

    Attributes:
        name: Name of the resource; "" if it is gone.
        metadata: Current metadata of the resource.
    """

    name: str
    metadata: Mapping[str, Any]


def refused_during(action: str) -> str:
    """Return the reason of the event for a signal refused during an action, as in Heat."""
    return f"Cannot signal resource during {action}"


class Untimely(Rejected):
    """A signal to a resource whose stack is suspended or being deleted."""

    def __init__(self, owner: Owner, action: Action = Action.SUSPEND) -> None:
        self.owner = owner
        self.action = action
        super().__init__("NotSupported", f"Signal resource during {action} is not supported.")


class Inbox:
    """Signals for handles and deployments."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def take(self, tx: Transaction, record: Record, body: Body, part: str = "") -> SignalOutcome:
        """Store a signal for a record, which is locked, with an event, and observations of changed records.

        Args:
            part: See `RecordSession.signed`.

        Raises:
            Untimely: In a suspended stack.
            Rejected: An invalid signal, or too many signals.
        """
        now = tx.now()
        key = records.key_of(record.token)
        owner = records.owners(tx, [key]).get(key)
        if owner is not None and record.kind == HANDLE:
            check_awake(owner)
        if record.kind == HANDLE:
            reason = self._signal(tx, record, body, now)
        else:
            reason = self._outputs(tx, record, body, part, now)
        if reason and owner is not None:
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, f"Signal: {reason}")], now)
        if reason:
            self._spread(tx, record, now)
        return SignalOutcome(owner.name if owner is not None else "", _answered_metadata(tx, record))

    def _signal(self, tx: Transaction, record: Record, body: Body, now: float) -> str:
        """Store a signal for a handle; return the text for the event, "" if nothing has changed."""
        before = signal_tallies.count(tx, record.id)
        signal = signals.normal(record.object["form"], body, before.senders)
        if signal is None:
            return ""
        SIGNALS.check(before.signals, before.size, signal_tallies.size_of(signal))
        records.add_signal(tx, record.id, records.Signal(signal, now))
        signal_tallies.count(tx, record.id)
        return f"status:{signal['status']} reason:{signals.shortened(signal['reason'])}"

    def _outputs(self, tx: Transaction, record: Record, body: Body, part: str, now: float) -> str:
        """Store the outputs of a waiting deployment; return the text for the event, "" if nothing has changed."""
        if record.object.get("status") != deployments.IN_PROGRESS:  # a second signal
            return ""
        config_id = record.object["config_id"]
        # A late signal for a config that was derived earlier.
        if part and part != config_id.replace("-", ""):
            return ""
        config = records.get(tx, config_id, CONFIG)
        outcome = deployments.outcome(record.id, config.object["outputs"] if config is not None else (), body)
        more = json_size(outcome.outputs) - json_size(record.object.get("output_values") or {})
        if more > 0:
            OUTPUTS.check(0, records.total_size(tx, DEPLOYMENT, record.project), more, 0)
        record.object |= {
            "output_values": dict(outcome.outputs),
            "status": outcome.status,
            "status_reason": outcome.reason,
        }
        if record.object["action"] == Action.DELETE and outcome.status == deployments.COMPLETE:
            end_deployment(tx, record)
        else:
            records.save(tx, record, now)
        return outcome.event

    def _spread(self, tx: Transaction, record: Record, now: float) -> None:
        """Observe the records that a signal has changed, and wake the waiting shards."""
        changed = records.linked(tx, [record.id], CONDITION) if record.kind == HANDLE else [record]
        self.look(tx, changed, now)

    def look(self, tx: Transaction, changed: Sequence[Record], now: float) -> None:
        """Store observations of records for their resources, and wake the shards of the resources."""
        for record in changed:
            key = records.key_of(record.token)
            owner = records.owners(tx, [key]).get(key)
            if owner is None:
                continue
            # The shard is locked before its rows (invariant 5).
            shards.wake(tx, owner.stack_id, now, Priority.USER, [owner.shard])
            watched = [
                resource
                for resource in observations.by_handle(tx, [record.id], of_kind([record.kind])[record.kind])
                if resource.key == key
            ]
            observed_records = observed(tx, record.project, record.kind, [record.id], now)
            observations.record(
                tx, observations.encode(self._db, [(resource, observed_records[0]) for resource in watched])
            )


def check_awake(owner: Owner) -> None:
    """Refuse signals in a suspended stack; not called for deployments, which signal the outcome of their suspension.

    Raises:
        Rejected: NotSupported, in a suspended stack.
    """
    if owner.suspended:
        raise Untimely(owner)


def _answered_metadata(tx: Transaction, record: Record) -> dict[str, Any]:
    """Return the signals of a handle for the answer to a signal; only the newest signal if all are large."""
    if record.kind != HANDLE:
        return {}
    small = signal_tallies.count(tx, record.id).size <= ANSWERED_MAX
    received = records.signals_of(tx, [record.id])[record.id] if small else records.newest_signal(tx, record.id)
    return signals.as_metadata(record.object["form"], [signal.object for signal in received])
