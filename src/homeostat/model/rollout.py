"""Rollouts to the members of a group: settings, state, and reports (RU1 to RU8).

A rollout gives members new metadata, a new definition (ADR 0068), or both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Any

IMMEDIATE, ROLLING, CANARY = "immediate", "rolling", "canary"
PATTERNS = (IMMEDIATE, ROLLING, CANARY)
CANARY_STEPS = ("1", "1%", "5%", "20%", "100%")
WAITED_FOR_MAX = 31
"""Wait conditions to which members of a group signal in a rollout: each has a bit of a number of 32 bits."""
PROGRESS_S = 600.0
"""Seconds in which the members of a step have to report, unless a wait condition or the template says more."""


class RolloutState(StrEnum):
    """State of a rollout.

    Attributes:
        RUNNING: Members get the new metadata, step by step.
        PAUSED: Stopped by a user; members keep the metadata they have.
        HELD: A gate said no, and the rollout waits for a person.
        SUCCEEDED: All members have the new metadata, and have reported.
        ROLLED_BACK: All members have the old metadata again.
        ABORTED: Ended in the middle: some members have the new metadata, some the old.
    """

    RUNNING = "running"
    PAUSED = "paused"
    HELD = "held"
    SUCCEEDED = "succeeded"
    ROLLED_BACK = "rolled_back"
    ABORTED = "aborted"

    @property
    def ended(self) -> bool:
        return self in (RolloutState.SUCCEEDED, RolloutState.ROLLED_BACK, RolloutState.ABORTED)


class Steering(StrEnum):
    """A command of users to a rollout, in the order of the manual."""

    APPROVE = "approve"
    RESUME = "resume"
    PAUSE = "pause"
    PROMOTE = "promote"
    ABORT = "abort"
    ROLL_BACK = "roll_back"

    @property
    def states(self) -> tuple[RolloutState, ...]:
        """States in which a rollout can be steered so."""
        return _STATES.get(self, GOING_ON)

    @property
    def goes_forward(self) -> bool:
        """Whether members may get the new metadata because of it."""
        return self in (Steering.APPROVE, Steering.RESUME, Steering.PROMOTE)

    @property
    def command(self) -> str:
        """Name of its command."""
        return self.replace("_", "-")


GOING_ON = (RolloutState.RUNNING, RolloutState.PAUSED, RolloutState.HELD)
_STATES = {
    Steering.APPROVE: (RolloutState.RUNNING,),
    Steering.PAUSE: (RolloutState.RUNNING,),
    Steering.RESUME: (RolloutState.PAUSED, RolloutState.HELD),
}


class OnFailure(StrEnum):
    """The reaction of a rollout to a gate that says no."""

    ROLLBACK = "rollback"
    HOLD = "hold"
    ABORT = "abort"


class MemberOrder(StrEnum):
    """Order in which members get the new metadata; FAILED ones are always first.

    Attributes:
        NUMBER: By the numbers of the members.
        RANDOM: Drawn by a seed.
        ZONE: One availability zone after the next, and by number within a zone.
    """

    NUMBER = "number"
    RANDOM = "random"
    ZONE = "zone"


class AppliesTo(StrEnum):
    """The part of a change that members get step by step; the rest reaches all members at once.

    Attributes:
        METADATA: New metadata of the group.
        DEFINITION: A new definition: members are changed in place, or replaced.
        BOTH: Either, and both in one rollout where both change.
    """

    METADATA = "metadata"
    DEFINITION = "definition"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class WaitGate:
    """A wait condition that depends on the group: each member of a step has to signal to it.

    Attributes:
        condition: Name of the wait condition. A new condition is made after the rollout.
        handle: Id of the record of the handle for the signals.
        timeout_s: Seconds for the members of a step.
        count: Successes that the condition itself waits for.
    """

    condition: str
    handle: str
    timeout_s: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How a rollout proceeds.

    Attributes:
        pattern: One of `PATTERNS` but `immediate`.
        steps: Members with the new metadata after each step: numbers, or shares such as `5%`. Empty for member by
            member.
        bake_s: Seconds to wait after the members of a step have reported.
        progress_s: Seconds in which members have to report; None for the time of the wait conditions, or `PROGRESS_S`.
        success_share: Share of the members of a step that has to report success in time.
        failures_max: Members in all that may fail.
        failures_max_per_step: Members of a step that may fail; None for `failures_max`.
        on_failure: One of `OnFailure`.
        approval: Whether a person has to approve each step before the next step begins.
        order: Order of the members.
        seed: Seed of the order `random`.
        gates: Wait conditions that depend on the group.
        alarms: Ids of the records of handles to which alarms are sent: an alarm stops the rollout.
        checks: URLs that have to answer with a success once the members of a step have reported.
        gates_pending: Whether handles to which members signal are still being made: the rollout waits for them.
        applies_to: One of `AppliesTo`.
    """

    pattern: str = ROLLING
    steps: Sequence[str] = ()
    bake_s: float = 0.0
    progress_s: float | None = None
    success_share: float = 1.0
    failures_max: int = 0
    failures_max_per_step: int | None = None
    on_failure: str = OnFailure.ROLLBACK
    approval: bool = False
    order: str = MemberOrder.NUMBER
    seed: int = 0
    gates: Sequence[WaitGate] = ()
    alarms: Sequence[str] = ()
    checks: Sequence[str] = ()
    gates_pending: bool = False
    applies_to: str = AppliesTo.METADATA

    @property
    def time_s(self) -> float | None:
        """Seconds for the members of a step; None without gates and checks."""
        if not self.gates and not self.checks:
            return None
        return self.progress_s or min((gate.timeout_s for gate in self.gates), default=PROGRESS_S)

    @property
    def failures_of_step_max(self) -> int:
        """Members of one step that may fail."""
        return self.failures_max if self.failures_max_per_step is None else self.failures_max_per_step

    def target(self, active: int, total: int) -> int:
        """Return how many of `total` members have the new metadata after the next step; `active` have it now."""
        if not self.steps:
            return min(active + 1, total)
        wanted = (step_size(step, total) for step in self.steps)
        return min(next((size for size in wanted if size > active), total), total)

    def targets(self, active: int, total: int, most: int) -> list[int]:
        """Return the targets of the next steps, `most` of them, if `active` members have the new metadata now."""
        targets: list[int] = []
        while active < total and len(targets) < most:
            active = self.target(active, total)
            targets.append(active)
        return targets


def step_size(step: str, total: int) -> int:
    """Return the number of members of a step; a share of any members is at least one.

    Args:
        step: A number, or a share such as `5%`; the schema of groups has checked it.
        total: Number of members.
    """
    if step.endswith("%"):
        return ceil(Fraction(step[:-1]) * total / 100)
    return int(step)


def having(count: int, one: str, more: str) -> str:
    """Return the number of members with the verb for a single member, or for several."""
    return f"1 member {one}" if count == 1 else f"{count} members {more}"


def load(stored: Mapping[str, Any]) -> RolloutSettings:
    """Return settings from plain data."""
    gates = tuple(WaitGate(**gate) for gate in stored.get("gates", ()))
    lists = {name: tuple(stored.get(name, ())) for name in ("steps", "alarms", "checks")}
    return RolloutSettings(**{**stored, **lists, "gates": gates})


def dump(settings: RolloutSettings) -> dict[str, Any]:
    """Return settings as plain data."""
    plain = asdict(settings)
    if settings.applies_to == AppliesTo.METADATA:  # programs of earlier versions know no other rollouts
        del plain["applies_to"]
    return plain


@dataclass(frozen=True, slots=True)
class StepReport:
    """Reports of the members of the current step, and of all steps.

    Attributes:
        waiting: Members of the step without a report.
        succeeded: Members of the step that succeeded.
        failed: Members of the step that failed.
        failed_in_all: Members of all steps that failed.
        reasons: Reasons of some failed members: instance id -> reason.
    """

    waiting: int = 0
    succeeded: int = 0
    failed: int = 0
    failed_in_all: int = 0
    reasons: Mapping[str, str] | None = None

    @property
    def asked(self) -> int:
        """Members of the step."""
        return self.waiting + self.succeeded + self.failed


@dataclass(frozen=True, slots=True)
class Rollout:
    """One rollout, as its row stores it; times are in seconds since the epoch.

    Attributes:
        key: Key of the row of the group.
        stack_id: Stack of the group.
        shard: Shard of the group.
        name: Name of the group.
        members: Id of the child stack with the members.
        state: One of `RolloutState`.
        settings: How the rollout proceeds.
        step: Number of the step; 0 before the first.
        total: Number of members when the step began.
        active: Number of members with the new metadata.
        target: Number of members with the new metadata at the end of the step.
        started_at: When the rollout began.
        step_at: When the step began.
        reported_at: When all members of the step had reported; None before.
        approved: Number of the last step that a person approved.
        forgiven: Failures that a person has accepted by resuming a held rollout.
        alarm: Message of an alarm since the rollout began, or was resumed: the rollout stops for it; "" for none.
        due_at: When time alone moves the rollout; None for never.
        reason: Why the rollout is in this state, for users.
        place: How many shards of the child stack are done, in the order of the rollout, or how many pairs of a zone and
            a shard.
        first: Members that come first: they had newer metadata, too, from a rollout before.
        zones: Availability zones with the shards that have members in them, in the order of the rollout; None for
            another order.
        subject: Revision of the child stack that brought the new definition; None for a rollout of metadata alone.
        giving: Revision of the child stack by which the members of the step get the new definition; None once they
            have it.
    """

    key: str
    stack_id: str
    shard: int
    name: str
    members: str
    state: str
    settings: RolloutSettings
    step: int = 0
    total: int = 0
    active: int = 0
    target: int = 0
    started_at: float = 0.0
    step_at: float = 0.0
    reported_at: float | None = None
    approved: int = 0
    forgiven: int = 0
    alarm: str = ""
    due_at: float | None = None
    reason: str = ""
    place: int = 0
    first: Sequence[str] = ()
    zones: Sequence[tuple[str, int]] | None = None
    subject: int | None = None
    giving: int | None = None

    @property
    def what(self) -> str:
        """The subject of the rollout, for users."""
        if self.subject is None:
            return "metadata"
        return "definition and metadata" if self.settings.applies_to == AppliesTo.BOTH else "definition"

    @property
    def unbegun(self) -> bool:
        """Whether the rollout waits for the handles to which its members signal."""
        return self.settings.gates_pending and not RolloutState(self.state).ended


@dataclass(frozen=True, slots=True)
class RolloutBegin:
    """A rollout begins, and replaces the previous rollout, if any: all members have the old metadata."""

    rollout: Rollout


@dataclass(frozen=True, slots=True)
class RolloutEnd:
    """The rollout of a group is over.

    Attributes:
        key: Key of the row of the group.
        keeps_members: Whether members keep the new metadata they have.
    """

    key: str
    keeps_members: bool = False


@dataclass(frozen=True, slots=True)
class RolloutRevised:
    """A rollout has new settings: of a newer revision, or with the successors of its handles.

    Attributes:
        key: Key of the row of the group.
        settings: The new settings.
    """

    key: str
    settings: RolloutSettings


RolloutChange = RolloutBegin | RolloutEnd | RolloutRevised
