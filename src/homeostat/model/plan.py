"""Decisions: steps to take now, and for everything else the reason to wait (invariant 2, CONTRIBUTING.md)."""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from homeostat.model.observed import Observation
from homeostat.model.world import Resource


class Priority(IntEnum):
    """Order of work (CV17): a lower number precedes a higher one."""

    USER = 0
    HEAL = 1
    ROLLOUT = 2
    DRIFT = 3
    GARBAGE = 4


class Verb(StrEnum):
    """The act that carries out a step; no choice is left to the code that performs it.

    Attributes:
        CREATE: Send the request to create, with the row's token.
        FIND: Look for what carries the row's token, after a creation without an answer.
        OBSERVE: Look at the thing itself.
        UPDATE: Change the thing in place.
        OPERATE: Carry out an operation of the cloud port: start, reboot, snapshot, …
        DELETE: Delete the thing.
        RECORD: Nothing to perform; only the row's new state is stored.
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


def snapshots_of(kind: str) -> str:
    """Return the kind of the snapshots of things of a kind, in the words of `clouds.port`."""
    return f"{kind}_snapshot"


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
    """The smallest act. When it is performed, its intent is already in `row`.

    Attributes:
        reason: Reason for the act, for users.
        spec: The cloud object wanted, for CREATE and UPDATE.
        changed: Names of the fields of `spec` that differ, see `clouds.port.Change`.
        operation: Operation for OPERATE.
        arguments: Arguments of the operation, or what a row was given to take over.
        inserted: Whether the row is new.
        removed: Whether the row is deleted.
        events: Events to store with the intent.
        also: Other rows that change with this one.
        orphan_token: Token of a creation that is given up without an answer; what turns up with it later is deleted.
        spared: Token of a creation whose thing stays, and does not belong to the stack any more.
        part: Part of the snapshot being taken of the stack.
        retained: Handle of a thing that the row lets go of, and that stays.
        fails: Why the stack fails with this step although its row does not; "" if it does not.
    """

    verb: Verb
    row: Resource
    reason: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    operation: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    inserted: bool = False
    removed: bool = False
    events: list[Event] = field(default_factory=list)
    also: "list[Resource]" = field(default_factory=list)
    orphan_token: str = ""
    spared: str = ""
    retained: str = ""
    part: Part | None = None
    fails: str = ""


@dataclass(slots=True)
class Recorded:
    """Outcome of a step, ready to be stored: the row is already changed in memory.

    Attributes:
        removed: Whether the row is deleted.
        orphan_token: Token of a creation that was given up without an answer, or of a thing that the cloud did not find
            when it was to delete it; "" for none. What turns up with this token later is deleted.
        whole: Whether more columns of the row have changed than an outcome usually changes.
    """

    row: Resource
    events: list[Event] = field(default_factory=list)
    observation: Observation | None = None
    removed: bool = False
    orphan_token: str = ""
    whole: bool = False


class Why(StrEnum):
    """Named reasons not to act yet (CV19); `RELEASED_BY` says what ends each."""

    REQUIRES = "requires"
    BUILDING = "building"
    BACKOFF = "backoff"
    UNSEEN = "unseen"
    HALTED = "halted"
    FAILED = "failed"
    IN_USE = "in_use"
    LEAVING = "leaving"
    SNAPSHOT = "snapshot"
    ANSWER = "answer"
    TURN = "turn"
    NO_WORKER = "no_worker"
    SET_ASIDE = "set_aside"
    LEFT_ALONE = "left_alone"
    PAUSE = "pause"
    HOOK = "hook"
    UNHEALTHY = "unhealthy"
    LOCKED = "locked"
    SUSPENDED = "suspended"
    BRAKE = "brake"
    BLIND = "blind"
    NEEDS_CONSENT = "asks"


RELEASED_BY = {
    Why.REQUIRES: "the resources it requires becoming complete",
    Why.BUILDING: "an observation that shows it ready, or the end of its time",
    Why.BACKOFF: "the time of the next attempt",
    Why.UNSEEN: "a look that the cloud answers",
    Why.HALTED: "an update of the stack, since another resource failed",
    Why.FAILED: "an update of the stack that changes or replaces it, or a change of what it requires",
    Why.IN_USE: "the resources that use it letting go of it",
    Why.LEAVING: "its predecessor being gone",
    Why.SNAPSHOT: "its snapshot being complete, or an update that gives it another deletion policy",
    Why.ANSWER: "an answer of the cloud",
    Why.TURN: "a worker taking it up",
    Why.NO_WORKER: "a worker being started",
    Why.SET_ASIDE: "the next try of a worker that has the mistake mended, or an update of the stack",
    Why.LEFT_ALONE: "convergence being switched on, or asked for",
    Why.PAUSE: "the time of the next batch, or an update of the stack",
    Why.UNHEALTHY: "an update of the stack, or converging it, which replaces it; or its mark being taken away",
    Why.LOCKED: "the stack being unlocked",
    Why.SUSPENDED: "the stack being resumed",
    Why.BRAKE: "others being healed, which are looked at first",
    Why.BLIND: "a look that finds any of them, somebody who says that they are gone (homeostat converge STACK), or "
    "another thing of that service being seen ten minutes later",
    Why.NEEDS_CONSENT: "somebody who agrees (homeostat converge STACK RESOURCE), or the thing coming back",
    Why.HOOK: "its hook being cleared (openstack stack hook clear), or a newer update or deletion of the stack",
}
"""Reason -> what would release it, for users."""


@dataclass(slots=True)
class Waiting:
    """A resource that does not move: the reason, since when, and when time alone would move it.

    Attributes:
        on: Keys of the rows that it waits for; where it is shown to users, names of their resources.
        reason: Details of `why`, for users.
        since: When the waiting began; None where that is not known.
        due_at: When time alone releases it; None if it never does.
        key: Key of its row; "" where there is none yet.
        ends_at: When it is examined again whatever was seen of it, since its time may be over.
    """

    name: str
    why: Why
    on: tuple[str, ...] = ()
    reason: str = ""
    since: float | None = None
    due_at: float | None = None
    key: str = ""
    ends_at: float | None = None

    @property
    def released_by(self) -> str:
        return RELEASED_BY[self.why]


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
