"""Decisions: steps to take now, and reasons to wait (invariant 2, CONTRIBUTING.md)."""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from homeostat.model.observed import Observation
from homeostat.model.rollout import RolloutChange
from homeostat.model.status import Word
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource


class Handover(StrEnum):
    """Purpose of an update that hands over an exclusive property, such as a fixed address (ADR 0094).

    Attributes:
        LET_GO: The thing releases the property, for its replacement.
        TAKE_BACK: The thing gets the property back.
    """

    LET_GO = "let go"
    TAKE_BACK = "take back"


class Priority(IntEnum):
    """Order of work (CV17): a lower number precedes a higher one."""

    USER = 0
    HEAL = 1
    ROLLOUT = 2
    DRIFT = 3
    GARBAGE = 4


class Verb(Word):
    """The act that carries out a step; the executor has no choice left.

    Attributes:
        CREATE: Send the request to create, with the row's token.
        FIND: Look for the object with the row's token, after a creation without an answer.
        OBSERVE: Look at the thing.
        UPDATE: Change the thing in place.
        OPERATE: Carry out an operation of the cloud port: start, reboot, snapshot, …
        DELETE: Delete the thing.
        RECORD: Nothing to execute; only the row's new state is stored.
    """

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
"""Operation of the cloud port that deletes a thing together with its parts, see `kinds.base.Kind.parts`."""


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


@dataclass(slots=True)
class Step:
    """The smallest unit of work. Before its execution, the intent is already stored in `row`.

    Attributes:
        reason: Reason for the act, for users.
        spec: The desired cloud object, for CREATE and UPDATE.
        changed: Names of the fields of `spec` that differ, see `clouds.port.Change`.
        operation: Operation for OPERATE.
        arguments: Arguments of the operation, or the adoption data of the row.
        inside: Whether DELETE_WITH_PARTS includes parts in nested stacks that are being deleted (ADR 0070).
        inserted: Whether the row is new.
        removed: Whether the row is deleted.
        events: Events to store with the intent.
        also: Further rows to store in the same transaction.
        orphan_token: Token of a creation given up without an answer, or of a thing to be deleted that was not found; ""
            for none. An object that appears with this token later is deleted.
        kept_token: Token of a creation whose thing stays, and no longer belongs to the stack.
        part: Part of the snapshot being taken of the stack.
        retained: Handle of a thing that stays although the row gives it up.
        fails: Why this step fails the stack although its row does not fail; "" if it does not.
        rollout: A rollout of metadata that begins or ends with this step.
        recovery: Action of a health policy that begins with this step; "" for none.
        begins_recovery: Whether `recovery` is the first action of a recovery, or of another round.
        host: The host of the thing at the time; "" if unknown.
        handover: For an update: the direction of a handover of exclusive properties, if any.
        needed_by: Name of the resource that waits for the handover.
    """

    verb: Verb
    row: Resource
    reason: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    operation: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    inside: bool = False
    inserted: bool = False
    removed: bool = False
    events: list[Event] = field(default_factory=list)
    also: "list[Resource]" = field(default_factory=list)
    orphan_token: str = ""
    kept_token: str = ""
    retained: str = ""
    part: Part | None = None
    fails: str = ""
    rollout: RolloutChange | None = None
    recovery: str = ""
    begins_recovery: bool = False
    host: str = ""
    handover: Handover | None = None
    needed_by: str = ""


@dataclass(slots=True)
class StepOutcome:
    """Outcome of a step, ready to be stored: the row is already changed in memory.

    Attributes:
        removed: Whether the row is deleted.
        orphan_token: See `Step`.
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
