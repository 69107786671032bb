"""Input of the planner for one shard, as plain values: rows, observations, desired graph, facts of the stack."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from homeostat.model.budget import NO_LIMIT, Limit
from homeostat.model.desired import Definition
from homeostat.model.hooks import HookProgress
from homeostat.model.intent import Intent
from homeostat.model.marks import Marks
from homeostat.model.node_health import ShardHealth
from homeostat.model.observed import Observation
from homeostat.model.rollout import Rollout
from homeostat.model.stack_actions import MAINTENANCE, STACK_ACTIONS
from homeostat.model.status import RESOURCE_TRANSITIONS, Action, Status, check_transition


@dataclass(slots=True)
class Resource:
    """One row: a resource as it should exist, and the state of its lifecycle.

    The fields are the columns of table `resource`, in order. A replacement is a row of its own, so several rows may
    share a name. Times are in seconds since the epoch. Stamps (`born`, `changed`, `resolved`) are values of the shard's
    logical clock, see `World.next_stamp`; comparing two of them says which came first.

    Attributes:
        key: 12 letters and digits; also the end of the physical name.
        version: Version of the stored row, for optimistic locking between a pass and the API.
        handle: The cloud's id of the thing; "" until an answer has it.
        revision: Revision of the stack for which the row was last acted on.
        requires: Keys of the rows it was built on. Keys, not names: a dependant holds on to the very row it has used.
        properties: Resolved properties as last requested from the cloud, without defaults.
        replaces: Key of the row that this one was made to replace.
        replaced_by: Key of the row that was made to replace this one.
        token: Token that the cloud's object carries, by which it is found after a lost answer.
        acted_at: When the act was carried out; None from the intent to the outcome.
        due_at: No act before this time.
        converge_requested_at: When a user requested to converge this one resource: it is looked at after this time,
            and then healed or retried whatever the switches are; else None.
        attempts: Consecutive attempts to make or heal the resource of this name; a replacement inherits the count.
        retries: Consecutive answers after which the same act is repeated (`Transient`, `Uncertain`).
        intent: What is about to be done, or why nothing is, see `model.intent`.
        born: Stamp at which the row was made.
        changed: Stamp at which its reference or attributes last changed.
        resolved: Stamp at which its inputs were last read.
        judged_observation: Number of the observation last judged, see `Seen`; 0 has the newest judged again.
        template_type: The type as the template calls it; None where that is `type`.
        external_id: Id of an existing thing that the resource stands for and that is not managed here (`external_id` of
            the template); else None.
        hooks: Progress through hooks, see `model.hooks`.
        marks: Marks of users, locks, suspension, healing and restoring, see `model.marks`.
        new_metadata: Metadata of a group that its members get in a rollout; None while there is none.
        drains_until: When a server that leaves its group has been drained, and is deleted; None where it stays.
    """

    key: str
    stack_id: str
    shard: int
    name: str
    type: str
    version: int = 0
    handle: str = ""
    revision: int = 0
    action: str = Action.INIT
    status: str = Status.COMPLETE
    reason: str = ""
    requires: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    metadata: Any = None
    deletion_policy: str = "Delete"
    replaces: str | None = None
    replaced_by: str | None = None
    token: str = ""
    acted_at: float | None = None
    due_at: float | None = None
    converge_requested_at: float | None = None
    attempts: int = 0
    retries: int = 0
    intent: Intent | None = None
    born: int = 0
    changed: int = 0
    resolved: int = 0
    judged_observation: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    template_type: str | None = None
    external_id: str | None = None
    hooks: HookProgress | None = None
    marks: Marks | None = None
    new_metadata: Any = None
    drains_until: float | None = None

    @property
    def shown_type(self) -> str:
        """The type as users know it."""
        return self.template_type or self.type

    @property
    def busy(self) -> bool:
        return self.status == Status.IN_PROGRESS

    @property
    def failed(self) -> bool:
        return self.status == Status.FAILED

    @property
    def deleting(self) -> bool:
        """Whether its deletion has begun or failed: such a row is never the current one of its name again."""
        return self.action == Action.DELETE

    @property
    def fails_stack(self) -> bool:
        """Whether its failure keeps the stack from being as desired.

        A row with a successor does not, unless what has failed is its deletion.
        """
        return self.failed and (self.replaced_by is None or self.deleting)

    def enter(self, action: str, status: str, reason: str) -> None:
        """Enter a state, or stay in it for another reason. Nothing else writes the action and the status of a row.

        Raises:
            Bug: The row may not change to that state.
        """
        before, after = (self.action, self.status), (action, status)
        if before != after:
            check_transition(RESOURCE_TRANSITIONS, ("resource", self.key, self.name), before, after)
        self.action, self.status, self.reason = action, status, reason


@dataclass(slots=True)
class Seen:
    """Newest observation of a row.

    Attributes:
        number: Grows whenever what was seen differs from the observation before. Observers give odd numbers and the
            shard's owner even ones, so that neither mistakes the other's look for its own.
    """

    observation: Observation
    number: int = 0


def next_look(number: int) -> int:
    """Return the number of an observer's look after the look with this number: the next odd one."""
    return number + 1 + number % 2


def next_own_look(number: int) -> int:
    """Return the number of the owner's look, which it has judged itself: the next even one."""
    return number + 2 - number % 2


HEAL_SHARE = 0.4
"""Share of a stack's things healed at a time, where neither the stack nor the service has a setting."""


class HealingPolicy(StrEnum):
    """What to do with a thing that would have to be replaced: replace it, or ask for the user's consent first."""

    REPLACE = "replace"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Brake:
    """Limits on healing that come from outside the rows of the shard.

    Attributes:
        share: Share of the expected things that may be healed at a time.
        members: Number of expected things in all shards of the stack; None to count those of this shard.
        elsewhere: Number of things being healed in other shards.
        changing: Number of things in other shards that are being changed, or about to be.
        limit: How many members of a group may be away at a time, whatever for.
        policy: Healing policy of the stack for things that would have to be replaced; None for the default.
        blind: Kinds of the cloud port of which every thing in the project is absent: the look is doubted rather than
            the things.
        moving: While a rolling update has suspended the healing of members, the ranges of numbers of those that it is
            changing, which are brought about all the same; None where healing goes on.
        awaited: Names of the members of a group that have yet to report to an update.
    """

    share: float = HEAL_SHARE
    members: int | None = None
    elsewhere: int = 0
    changing: int = 0
    limit: Limit = NO_LIMIT
    policy: str | None = None
    blind: frozenset[str] = frozenset()
    moving: Sequence[tuple[int, int]] | None = None
    awaited: frozenset[str] = frozenset()

    def leaves_alone(self, name: str) -> bool:
        """Return whether a rolling update keeps the member of this name from being healed."""
        if self.moving is None or not name.isdigit():
            return False
        return not any(low <= int(name) < high for low, high in self.moving)

    def allowed(self, things: int) -> int:
        """Return how many of so many things may be healed at a time: at least one."""
        things = things if self.members is None else self.members
        # The epsilon makes up for products just below a whole number: 0.29 * 100 is 28.999….
        return max(1, min(int(self.share * things + 1e-9), self.limit.away_max(things)))


class KeepPolicy(StrEnum):
    """Things that stay untouched when a stack is deleted.

    `ALL`: everything, since the stack is abandoned. `ADOPTED`: what the stack was to adopt, as long as its
    adoption is not complete.
    """

    ALL = "all"
    ADOPTED = "adopted"


@dataclass(slots=True)
class StackFacts:
    """Facts about the stack that its shards decide by; shapes as in `store.schema.stack`.

    Attributes:
        revision: Newest revision, the desired state.
        complete_revision: Newest revision that was complete; None before the first.
        rollback_to: Revision that a ROLLBACK goes back to, else None.
        deadline: When the action in progress fails, in seconds since the epoch.
        converge: Whether resources are brought back without a request when the world changes.
        observe_s: Seconds between looks at things at rest; 0 for never, None for the service's interval.
        exceptions: Resource name -> switches that differ from the stack's.
        look_from: No resource is at rest before it was looked at after this time.
        step_at: A group goes on to its next batch no sooner than this.
        parent_key: Key of the row in the parent stack whose thing this stack is; None for a root stack.
        depth: Levels of nesting above it.
        lock: The lock while the stack is locked, else None.
        suspended: Whether it was suspended and not resumed since.
        spares: The `KeepPolicy` of its deletion, or None.
        snapshot: The snapshot being taken of the stack, or restored to it, with the place of a nested stack in it.
        secret: False if nothing in the whole tree of stacks is made from secrets; None if that is not known yet.
        healing: Healing settings that differ from the service's: `policy`, `share`.
    """

    id: str
    name: str
    project: str
    revision: int
    action: str
    status: str
    reason: str = ""
    complete_revision: int | None = None
    rollback_to: int | None = None
    disable_rollback: bool = True
    deadline: float | None = None
    converge: bool = True
    observe_s: float | None = None
    exceptions: Mapping[str, Mapping[str, Any]] | None = None
    look_from: float | None = None
    step_at: float | None = None
    parent_id: str | None = None
    parent_name: str | None = None
    parent_key: str | None = None
    root_id: str = ""
    depth: int = 0
    shards: int = 1
    lock: Mapping[str, Any] | None = None
    suspended: bool = False
    spares: str | None = None
    snapshot: Mapping[str, Any] | None = None
    secret: bool | None = None
    healing: Mapping[str, Any] | None = None

    @property
    def failed_early(self) -> bool:
        """Whether the newest revision failed before it was ever complete, so that nothing new is begun for it.

        Maintenance of existing things neither completes such a revision nor gives it another try.
        """
        failed = self.status == Status.FAILED or self.action in MAINTENANCE
        return failed and self.complete_revision != self.revision

    @property
    def checking(self) -> bool:
        """Whether a check is in progress, which changes nothing."""
        return self.action == Action.CHECK and self.status == Status.IN_PROGRESS

    @property
    def maintained(self) -> bool:
        """Whether existing things are being suspended, resumed, locked or unlocked."""
        return self.action in MAINTENANCE and self.status == Status.IN_PROGRESS

    @property
    def thorough(self) -> bool:
        """Whether every resource gets its turn although others fail; the stack fails at the end.

        So a check finds everything that is wrong, a lock protects everything that can be protected, and nothing stays
        suspended for another one's failure.
        """
        return self.status == Status.IN_PROGRESS and STACK_ACTIONS[self.action].thorough

    @property
    def frozen(self) -> bool:
        """Whether nothing may be begun, since the stack is locked or suspended.

        Deleting a stack takes both away; a stack that could not be deleted may be locked afterwards.
        """
        return self.lock is not None or (self.suspended and self.action != Action.DELETE)

    @property
    def lock_ends_at(self) -> float | None:
        """When the service removes the lock, None if it does not.

        A lock that could not be taken away (action UNLOCK) is left to users, and a nested stack's ends with its root's.
        """
        if self.lock is None or self.parent_id is not None or self.action != Action.LOCK:
            return None
        return self.lock.get("expires_at")

    @property
    def adopting(self) -> bool:
        """Whether it is taking over existing things as they are."""
        return self.action == Action.ADOPT and self.status == Status.IN_PROGRESS

    @property
    def abandoned(self) -> bool:
        """Whether everything that ever belonged to it stays untouched."""
        return self.spares == KeepPolicy.ALL

    @property
    def snapshotting(self) -> bool:
        """Whether a snapshot is being taken of it, which changes nothing else."""
        return self.action == Action.SNAPSHOT and self.status == Status.IN_PROGRESS

    @property
    def restoring(self) -> bool:
        """Whether it is on its way back to a snapshot."""
        # Only going back stores a "run"; a snapshot that is merely taken has none.
        return self.snapshot is not None and "run" in self.snapshot and self.complete_revision != self.revision

    def snapshot_inside(self, name: str) -> dict[str, Any] | None:
        """Return the same snapshot as it concerns the nested stack behind the resource `name`."""
        return None if self.snapshot is None else {**self.snapshot, "place": [*self.snapshot["place"], name]}

    def healing_inside(self, name: str) -> Mapping[str, Any] | None:
        """Return the healing settings of the nested stack behind the resource `name`."""
        exception = (self.exceptions or {}).get(name, {}).get("healing")
        return self.healing if exception is None else {**(self.healing or {}), "policy": exception}

    def converges(self, name: str) -> bool:
        """Return whether a resource is brought back without a request when the world changes (CV8)."""
        exception = (self.exceptions or {}).get(name, {}).get("converge")
        return self.converge if exception is None else bool(exception)


def look_interval(
    observe_s: float | None, exceptions: Mapping[str, Mapping[str, Any]] | None, default_s: float
) -> float | None:
    """Return the seconds between looks at a shard at rest, None for never.

    The shortest interval that any resource has holds for the whole shard, since looks are made in bulk.

    Args:
        observe_s: The stack's own interval; 0 for never, None for `default_s`.
        exceptions: Resource name -> switches, of which `observe_s` counts here; see `store.schema.stack`.
        default_s: The service's interval.
    """
    intervals = [default_s if observe_s is None else observe_s]
    intervals += [each["observe_s"] for each in (exceptions or {}).values() if each.get("observe_s") is not None]
    return min((each for each in intervals if each > 0), default=None)


@dataclass(frozen=True, slots=True)
class Enclosing:
    """A stack around a nested one, and the row of the nested one in it.

    Attributes:
        action: Action of the stack.
        status: Its status.
        spares: The `KeepPolicy` of its deletion, or None.
        deletion_policy: That of the row.
    """

    action: str
    status: str
    spares: str | None
    deletion_policy: str


@dataclass(slots=True)
class World:
    """The state of one shard, from which `planner.Frontier` decides.

    Attributes:
        definitions: Desired graph of this shard, by resource name.
        rows: All rows of the shard, by key.
        seen: Newest observations, by row key; no entry for a row that was never looked at.
        settled_revision: Newest revision at which the shard came to rest.
        looked_at: Time of the newest round of looking that saw all its things.
        blind: Why the round after that one did not; "" if it did.
        listing_lag_s: Seconds after a creation during which looks may not show the new thing, see `clouds.port.Cloud`.
        second_look_s: Seconds from a look that did not find a thing to the owner's second look for it.
        looked: Keys of the rows whose things the owner itself has looked for in this pass.
        brake: Limits on healing.
        drain_s: Seconds for which servers of a group are drained that leave it; 0 where none are.
        stamp: The logical clock of the shard: the newest stamp in any row.
        restored: Resource name -> id of the snapshot from which it gets its data back.
        policies: Resource name -> its deletion policy as set since the deletion of the stack began (ADR 0048).
        patience_s: Seconds for an act begun in a stack that is not in progress (ADR 0058).
        rollouts: Key of the row of a group -> the rollout of its metadata.
        health: What health policies say about its things; None where none holds for any.
        to_be_deleted: Whether the stack will be deleted with one around it that is being deleted, and its own deletion
            has not begun.
        neglected: Keys of the rows of nested stacks in which something is wrong and left alone, or marked unhealthy, or
            being replaced for a mark, while an action is in progress that brings it back.
        earlier: Revision -> its graph of this shard, where the newest revision has failed: of the newest that was
            complete, and of later ones for which rows were last acted on.
    """

    stack: StackFacts
    shard: int
    definitions: Mapping[str, Definition]
    rows: dict[str, Resource] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    settled_revision: int = 0
    looked_at: float = 0.0
    blind: str = ""
    listing_lag_s: float = 0.0
    second_look_s: float = 0.0
    looked: set[str] = field(default_factory=set)
    brake: Brake = Brake()
    drain_s: float = 0.0
    stamp: int = 0
    restored: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    patience_s: float = math.inf
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    health: ShardHealth | None = None
    to_be_deleted: bool = False
    neglected: frozenset[str] = frozenset()
    earlier: Mapping[int, Mapping[str, Definition]] = field(default_factory=dict)

    def next_stamp(self) -> int:
        """Advance the logical clock of the shard and return it."""
        self.stamp += 1
        return self.stamp
