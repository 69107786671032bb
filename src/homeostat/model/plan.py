"""Decisions: steps to take now, and reasons to wait (invariant 2, CONTRIBUTING.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

from homeostat.model.node_health import RecoveryAction
from homeostat.model.observed import Observation
from homeostat.model.record import record
from homeostat.model.rollout import RolloutChange
from homeostat.model.status import Word
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource


class Priority(IntEnum):
    """Order of work (CV17): a lower number precedes a higher one."""

    USER = 0
    HEAL = 1
    ROLLOUT = 2
    DRIFT = 3
    GARBAGE = 4


class Verb(Word):
    """Word for a sort of acts, in metrics, traces and explanations."""

    CREATE = "create"
    FIND = "find"
    OBSERVE = "observe"
    UPDATE = "update"
    OPERATE = "operate"
    DELETE = "delete"
    RECORD = "record"


@dataclass(slots=True)
class Event:
    """A change of state as the event list shows it, stored in the same transaction as the change (invariant 6)."""

    name: str
    action: str
    status: str
    reason: str
    type: str
    key: str = ""
    handle: str = ""


def event_of(row: Resource, *, action: str = "", status: str = "", reason: str | None = None) -> Event:
    """Return an event of a row's new state; arguments override parts of the state."""
    why = row.reason if reason is None else reason
    return Event(row.name, action or row.action, status or row.status, why, row.shown_type, row.key, row.handle)


def snapshots_of(kind: str) -> str:
    """Return the kind of the snapshots of things of a kind, in the words of `clouds.port`."""
    return f"{kind}_snapshot"


DELETE_WITH_PARTS = "delete_with_parts"
"""Operation of the cloud port for `DeleteWithParts`."""


@record
class Create:
    """Send the request to create, with the row's token.

    Attributes:
        spec: The desired cloud object.
        adopted: Adoption data, for a record of the service or a nested stack that is created again from a document.
        model: Settings of the model server, looked up right before the creation.
    """

    verb: ClassVar = Verb.CREATE
    spec: Mapping[str, Any]
    adopted: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None


@record
class Find:
    """Look for the object with the row's token, after a creation without an answer."""

    verb: ClassVar = Verb.FIND


@record
class Observe:
    """Look at the thing."""

    verb: ClassVar = Verb.OBSERVE


@record
class Update:
    """Change the thing in place.

    Attributes:
        spec: The desired cloud object.
        changed: Names of the fields of `spec` that differ, see `clouds.port.Change`.
    """

    verb: ClassVar = Verb.UPDATE
    spec: Mapping[str, Any]
    changed: tuple[str, ...]


@record
class Operate:
    """Carry out an operation of the cloud port, such as start, reboot or snapshot."""

    verb: ClassVar = Verb.OPERATE
    operation: str
    arguments: Mapping[str, Any]


@record
class DeleteWithParts:
    """Delete the thing together with its parts, by an operation of the cloud port.

    Attributes:
        parts: Handles of the parts by kind, see `kinds.base.Kind.parts`.
        inside: Whether parts in nested stacks that are being deleted are included (ADR 0070).
    """

    verb: ClassVar = Verb.OPERATE
    parts: Mapping[str, Sequence[str]]
    inside: bool = False


@record
class Delete:
    """Delete the thing."""

    verb: ClassVar = Verb.DELETE


@record
class Record:
    """Nothing to execute; only the row's new state is stored.

    Attributes:
        fails: Why this step fails the stack although its row does not fail; "" if it does not.
    """

    verb: ClassVar = Verb.RECORD
    fails: str = ""


Act = Create | Find | Observe | Update | Operate | DeleteWithParts | Delete | Record
"""The act that carries out a step; the executor has no choice left."""
Deletion = Delete | DeleteWithParts
FIND, OBSERVE, DELETE, RECORD = Find(), Observe(), Delete(), Record()


@dataclass(frozen=True, slots=True)
class Part:
    """The snapshot of a single thing, as a part of the snapshot of its stack; see `store.schema.snapshot_part`.

    Attributes:
        token: Token of the cloud's snapshot.
        name: Name of the resource.
        kind: Kind of the thing.
        handle: The cloud's id of the complete snapshot; "" before.
    """

    token: str
    name: str
    kind: str
    handle: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """A thing given up by its row.

    Attributes:
        orphan_token: Token of a creation given up without an answer, or of a thing to be deleted that was not found.
            An object that appears with this token later is deleted.
        kept_token: Token of a creation whose thing remains outside the stack.
        retained: Handle of a remaining thing.
        reason: Reason for keeping the thing, for users.
    """

    orphan_token: str = ""
    kept_token: str = ""
    retained: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Handover:
    """An exclusive property, such as a fixed address, passes from a thing to its replacement, or back (ADR 0094).

    Attributes:
        needed_by: Name of the resource that waits for the handover.
        returns: Whether the thing gets the property back.
    """

    needed_by: str
    returns: bool = False


@dataclass(slots=True)
class Step:
    """The smallest unit of work: an act, and the values stored with its intent before the execution.

    Attributes:
        row: The row, with the intent.
        act: Request to a cloud, a nested stack or the service itself.
        events: Events to store with the intent.
        also: Further rows to store in the same transaction.
        inserted: Whether the row is new.
        removed: Whether the row is deleted.
        release: A thing that the row gives up.
        part: Part of the snapshot being taken of the stack.
        rollout: A rollout of metadata that begins or ends with this step.
        recovery: Action of a health policy that begins with this step.
        handover: The handover of exclusive properties that this step serves.
    """

    row: Resource
    act: Act = RECORD
    events: Sequence[Event] = ()
    also: Sequence[Resource] = ()
    inserted: bool = False
    removed: bool = False
    release: Release | None = None
    part: Part | None = None
    rollout: RolloutChange | None = None
    recovery: RecoveryAction | None = None
    handover: Handover | None = None


@dataclass(slots=True)
class StepOutcome:
    """Outcome of a step, ready to be stored: the row is already changed in memory.

    Attributes:
        removed: Whether the row is deleted.
        orphan_token: See `Release`.
        whole: Whether more columns of the row have changed than usual.
    """

    row: Resource
    events: list[Event] = field(default_factory=list)
    observation: Observation | None = None
    removed: bool = False
    orphan_token: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The resource matches the desired state, and its dependants may proceed.

    Attributes:
        step: A change of the row to store without acting, if any.
    """

    step: Step | None = None


SETTLED = Settled()
"""The usual case: nothing to store."""
Decision = Step | Settled | Waiting
"""Result of a decision about a resource."""
