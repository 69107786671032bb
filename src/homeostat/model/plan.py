"""What was decided: steps to take now, and for everything not acted on the reason why (laws 2 and 9)."""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from homeostat.model.observed import Observation
from homeostat.model.world import Resource


class Priority(IntEnum):
    """Which work goes first (CV17): a lower number before a higher one."""

    USER = 0
    HEAL = 1
    ROLLOUT = 2
    DRIFT = 3
    GARBAGE = 4


class Verb(StrEnum):
    """What the acting part does with a step; it has no choices left."""

    CREATE = "create"
    FIND = "find"
    OBSERVE = "observe"
    UPDATE = "update"
    OPERATE = "operate"
    DELETE = "delete"
    RECORD = "record"


@dataclass(slots=True)
class Event:
    """A change of state, as the event list shows it; stored with the change (law 6)."""

    name: str
    action: str
    status: str
    reason: str
    type: str
    key: str = ""
    handle: str = ""


def snapshots_of(kind: str) -> str:
    """Kind of the snapshots of things of a kind, in the words of `clouds.port`."""
    return f"{kind}_snapshot"


@dataclass(frozen=True, slots=True)
class Part:
    """What a cloud keeps of one resource for a snapshot of its stack; see `store.schema.snapshot_part`."""

    token: str
    name: str
    kind: str
    made: str = ""


@dataclass(slots=True)
class Step:
    """The smallest act. Its intent is already in `row` when it is performed.

    verb RECORD — nothing to perform, only the row's new state to store. spec, changed — for the cloud (see
    `clouds.port.Change`); operation, arguments — for OPERATE; inserted — the row is new; removed — the row goes away;
    events — to store with the intent; also — other rows that change with it; forsaken — token of a creation that is
    given up without an answer; spared — token of one whose thing stays, whoever it belongs to from now on; part — of
    the snapshot that is taken of the stack; retained — handle of a thing that the row lets go of, and that stays;
    fails — why the stack fails with this step, though its row has not failed; "" if it does not.
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
    forsaken: str = ""
    spared: str = ""
    retained: str = ""
    part: Part | None = None
    fails: str = ""


@dataclass(slots=True)
class Recorded:
    """Outcome of a step, ready to be stored: the row is already changed in memory.

    forsaken — token of a creation that was given up without an answer, or of what the cloud did not find when it was to
    delete it, if any; whole — more of the row has changed than an act usually changes.
    """

    row: Resource
    events: list[Event] = field(default_factory=list)
    observation: Observation | None = None
    removed: bool = False
    forsaken: str = ""
    whole: bool = False


class Why(StrEnum):
    """Named reasons not to act yet (CV19)."""

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
    ASKS = "asks"


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
    Why.ASKS: "somebody who agrees (homeostat converge STACK RESOURCE), or the thing coming back",
    Why.HOOK: "its hook being cleared (openstack stack hook clear), or a newer update or deletion of the stack",
}


@dataclass(slots=True)
class Waiting:
    """One thing that is not moving: what it waits for, since when, and when time alone would move it.

    on — names of resources that it waits for; key — of its row, "" where there is none yet; ends_at — when it is
    examined again, whatever was seen of it: its time may be over.
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
    """It is what it should be; dependants may go on. step — a quiet change of its row to store, if any."""

    step: Step | None = None


SETTLED = Settled()
Decision = Step | Settled | Waiting
