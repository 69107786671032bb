"""Decisions: steps to take now, and for everything else the reason to wait (invariant 2, CONTRIBUTING.md)."""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from homeostat.model.observed import Observation
from homeostat.model.rollout import RolloutChange
from homeostat.model.status import Word
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource


class Handover(StrEnum):
    """What an update in place is for that hands over what one thing at a time can hold (ADR 0094).

    Attributes:
        LET_GO: The thing lets go of it, for the one in its place.
        TAKE_BACK: The thing gets it back.
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
        FIND: Look for what carries the row's token, after a creation without an answer.
        OBSERVE: Look at the thing itself.
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
    """Return an event of a row: of the state that it has entered, except for what is given."""
    why = row.reason if reason is None else reason
    return Event(row.name, action or row.action, status or row.status, why, row.shown_type, row.key, row.handle)


def snapshots_of(kind: str) -> str:
    """Return the kind of the snapshots of things of a kind, in the words of `clouds.port`."""
    return f"{kind}_snapshot"


DELETE_WITH_PARTS = "delete_with_parts"
"""Operation of the cloud port that deletes a thing together with its parts, see `kinds.base.Kind.parts`."""


@dataclass(frozen=True, slots=True)
class Part:
    """The snapshot of one resource's thing, as a part of a snapshot of its stack; see `store.schema.snapshot_part`.

    Attributes:
        token: Token that the cloud's snapshot carries.
        name: Name of the resource.
        kind: Kind of its thing.
        made: The cloud's id of the snapshot once it is complete, before that "".
    """

    token: str
    name: str
    kind: str
    made: str = ""


@dataclass(slots=True)
class Step:
    """The smallest act. When it is executed, its intent is already in `row`.

    Attributes:
        reason: Reason for the act, for users.
        spec: The cloud object wanted, for CREATE and UPDATE.
        changed: Names of the fields of `spec` that differ, see `clouds.port.Change`.
        operation: Operation for OPERATE.
        arguments: Arguments of the operation, or the adoption data of its row.
        inside: Whether the operation takes along what nested stacks are deleting of the thing, too (ADR 0070).
        inserted: Whether the row is new.
        removed: Whether the row is deleted.
        events: Events to store with the intent.
        also: Other rows that change with this one.
        orphan_token: Token of a creation that is given up without an answer, or of a thing that is not found and was to
            be deleted; "" for none. What turns up with this token later is deleted.
        kept_token: Token of a creation whose thing stays, and does not belong to the stack any more.
        part: Part of the snapshot being taken of the stack.
        retained: Handle of a thing that the row releases, and that stays.
        fails: Why the stack fails with this step although its row does not; "" if it does not.
        rollout: A rollout of metadata that begins or ends with this step.
        recovery: Action of a health policy that begins with this step; "" for none.
        begins_recovery: Whether it is the first one of a recovery, or of another round of it.
        host: The host that its thing is on then; "" where that is not known.
        handover: What it hands over, of the thing of this row to that of another one, or back; None for nothing.
        needed_by: Name of the resource that waits for that.
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
        orphan_token: Token of a creation that was given up without an answer, or of a thing that was not found and
            was to be deleted; "" for none. What turns up with this token later is deleted.
        whole: Whether more columns of the row have changed than an outcome usually changes.
    """

    row: Resource
    events: list[Event] = field(default_factory=list)
    observation: Observation | None = None
    removed: bool = False
    orphan_token: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The resource is as it should be, and its dependants may go on.

    Attributes:
        step: A change of the row to store without acting, if any.
    """

    step: Step | None = None


SETTLED = Settled()
"""The usual case: nothing to store."""
Decision = Step | Settled | Waiting
"""Result of deciding about one resource."""
