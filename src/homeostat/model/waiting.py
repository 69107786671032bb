"""Waiting reasons: the table of reasons not to act yet, with their texts and the events that end the wait (CV19)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Why(StrEnum):
    """Named reasons not to act yet; `REASONS` has their meanings."""

    REQUIRES = "requires"
    BUILDING = "building"
    BACKOFF = "backoff"
    UNSEEN = "unseen"
    STACK_FAILED = "halted"
    FAILED = "failed"
    IN_USE = "in_use"
    PART = "part"
    LEAVING = "leaving"
    HANDOVER = "handover"
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
    TO_BE_DELETED = "to_be_deleted"
    BRAKE = "brake"
    BLIND = "blind"
    NEEDS_CONSENT = "asks"
    ROLLOUT = "rollout"
    REPORTS = "reports"
    BUDGET = "budget"
    DRAINING = "draining"
    OBSERVED = "observed"
    PROPOSED = "proposed"
    POSTPONED = "held_back"
    VERIFYING = "verifying"
    FENCING = "fencing"


@dataclass(frozen=True, slots=True)
class Reason:
    """Meaning of a waiting reason, for users.

    Attributes:
        words: A few words about the resource, for one line.
        released_by: The event that ends the wait.
    """

    words: str
    released_by: str


REASONS: Mapping[Why, Reason] = {
    Why.REQUIRES: Reason("it needs others first", "the resources it requires becoming complete"),
    Why.BUILDING: Reason("it is under way", "an observation that shows it ready, or the end of its time"),
    Why.BACKOFF: Reason("it will be tried again", "the time of the next attempt"),
    Why.UNSEEN: Reason("it could not be observed", "an observation that the cloud answers"),
    Why.STACK_FAILED: Reason("the stack has failed", "an update of the stack, since another resource failed"),
    Why.FAILED: Reason(
        "it failed", "an update of the stack that changes or replaces it, or a change of what it requires"
    ),
    Why.IN_USE: Reason("others still use it", "the resources that use it releasing it"),
    Why.PART: Reason("it goes with what it is part of", "the deletion of what it is part of"),
    Why.LEAVING: Reason("what it replaces is being deleted", "the end of its predecessor's deletion"),
    Why.HANDOVER: Reason(
        "what it needs is held by another one",
        "the other one letting go of it, or going",
    ),
    Why.SNAPSHOT: Reason(
        "a snapshot of it is made first",
        "its snapshot being complete, or an update that gives it another deletion policy",
    ),
    Why.ANSWER: Reason("the cloud has not answered", "an answer of the cloud"),
    Why.TURN: Reason("a worker will take it up", "a worker taking it up"),
    Why.NO_WORKER: Reason("no worker is alive", "a worker being started"),
    Why.SET_ASIDE: Reason("an internal error", "the next try of a worker without the bug, or an update of the stack"),
    Why.LEFT_ALONE: Reason("it is left as it is", "convergence being switched on, or requested"),
    Why.PAUSE: Reason("a pause between batches", "the time of the next batch, or an update of the stack"),
    Why.HOOK: Reason(
        "it stops at a hook",
        "its hook being cleared (openstack stack hook clear), or a newer update or deletion of the stack",
    ),
    Why.UNHEALTHY: Reason(
        "it is marked unhealthy",
        "an update of the stack, or converging it, which replaces it; or the removal of its mark",
    ),
    Why.LOCKED: Reason("the stack is locked", "the stack being unlocked"),
    Why.SUSPENDED: Reason("the stack is suspended", "the stack being resumed"),
    Why.TO_BE_DELETED: Reason(
        "a stack around it is being deleted, and it goes with that",
        "its deletion, or the end of that of the stack around it: by its failure, or by an update",
    ),
    Why.BRAKE: Reason("others are healed first", "the healing of others, which comes first"),
    Why.BLIND: Reason(
        "everything of its kind seems to be gone, which is doubted",
        "an observation that finds any of them, a user who runs homeostat converge STACK since they are gone, or an "
        "observation of another thing of that service ten minutes later",
    ),
    Why.NEEDS_CONSENT: Reason(
        "it needs your consent to be replaced",
        "a user who runs homeostat converge STACK RESOURCE, or the thing coming back",
    ),
    Why.ROLLOUT: Reason(
        "its members get the new metadata, or definition, step by step",
        "the reports of its members, the end of their time, or a user who steers the rollout (homeostat rollout)",
    ),
    Why.REPORTS: Reason(
        "its members have to signal how they are",
        "the signals of its members (SignalResource, openstack stack resource signal), or the end of their time",
    ),
    Why.BUDGET: Reason(
        "others of its group are away",
        "members that come back into service, or an update of the stack that lets more be away",
    ),
    Why.DRAINING: Reason(
        "it is drained before it is deleted",
        "the end of the drain_time of its group, an update that wants it again, or the deletion of its group",
    ),
    Why.OBSERVED: Reason(
        "it is unhealthy, and its health policy only observes",
        "the thing becoming healthy, a user who runs homeostat health approve STACK RESOURCE, or another policy",
    ),
    Why.PROPOSED: Reason(
        "its recovery is proposed",
        "a user who runs homeostat health approve STACK RESOURCE, or the thing becoming healthy",
    ),
    Why.POSTPONED: Reason(
        "its health policy holds its recovery back",
        "enough of the others becoming healthy, or a user who runs homeostat health approve STACK RESOURCE",
    ),
    Why.VERIFYING: Reason(
        "its recovery has yet to show that it helped",
        "a look that finds it healthy, or the verify_timeout of its health policy, after which the next action follows",
    ),
    Why.FENCING: Reason(
        "it is not confirmed that it is cut off, and no other one is made before",
        "the cloud confirming that it is cut off, or the thing becoming healthy",
    ),
}
"""The API shows `released_by`, the `homeostat` command shows both, and a page of the documentation lists all."""


def words(why: str) -> str:
    """Return the words for a reason; an unknown reason, of a newer service, stays as it is."""
    return REASONS[Why(why)].words if why in REASONS else why


@dataclass(slots=True)
class Waiting:
    """A waiting resource: the reason, since when, and when time alone ends the wait.

    Attributes:
        on: Keys of the rows waited for; in output for users, names of their resources.
        reason: Details of `why`, for users.
        since: When the wait began; None if unknown.
        due_at: When time alone ends the wait; None if it does not.
        key: Key of the waiting row; "" if the row does not exist yet.
        ends_at: When the resource is examined again regardless of observations, since its time may be over.
        by: The event that ends the wait, if known more exactly than by `why`.
        after: Names of resources of the same shard that must be at rest before the next examination, and do not wait
            for this resource. A resource that waits for REQUIRES waits for these only.
    """

    name: str
    why: Why
    on: tuple[str, ...] = ()
    reason: str = ""
    since: float | None = None
    due_at: float | None = None
    key: str = ""
    ends_at: float | None = None
    by: str = ""
    after: tuple[str, ...] = ()

    @property
    def released_by(self) -> str:
        return self.by or REASONS[self.why].released_by
