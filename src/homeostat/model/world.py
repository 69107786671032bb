"""Input of the planner for a shard, as plain values: rows, observations, desired graph, facts of the stack."""

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
from homeostat.model.snapshot import StackSnapshot
from homeostat.model.stack_actions import MAINTENANCE, STACK_ACTIONS
from homeostat.model.status import RESOURCE_TRANSITIONS, Action, Status, check_transition


@dataclass(slots=True)
class Resource:
    """A row: the desired state of a resource and the state of its lifecycle.

    The fields are the columns of table `resource`, in order. A replacement has its own row, so several rows may share a
    name. Times are in seconds since the epoch. Stamps (`born`, `changed`, `resolved`) are values of the shard's logical
    clock, see `World.next_stamp`: their order is the order of the events.

    Attributes:
        key: 12 letters and digits; also the end of the physical name.
        version: Version of the stored row, for optimistic locking between a pass and the API.
        handle: The cloud's id of the thing; "" until the cloud has answered.
        revision: Revision of the stack for which the row was last acted on.
        requires: Keys of the rows that the row depends on. Keys, not names: a dependant keeps using the same row even
            after a replacement of the same name exists.
        properties: Resolved properties as last requested from the cloud, without defaults.
        replaces: Key of the predecessor.
        replaced_by: Key of the successor.
        token: Token of the cloud's object, by which the object is found after a lost answer.
        acted_at: When the act was carried out; None from the intent to the outcome.
        due_at: No act before this time.
        converge_requested_at: When a user requested to converge this resource: it is observed after this time, and then
            healed or retried regardless of the switches; else None.
        attempts: Consecutive attempts to create or heal the resource of this name; a replacement inherits the count.
        retries: Consecutive answers after which the same act is repeated (`Transient`, `Uncertain`).
        intent: The next act, or the reason to leave the thing alone, see `model.intent`.
        born: Stamp of the row's creation.
        changed: Stamp of the last change of the reference or attributes.
        resolved: Stamp of the last read of the inputs.
        judged_observation: Number of the observation last judged, see `Seen`; 0 has the newest judged again.
        template_type: The type's name in the template; None if equal to `type`.
        external_id: Id of an existing, unmanaged thing behind the resource (`external_id` of the template); else None.
        hooks: Progress through hooks, see `model.hooks`.
        marks: Marks of users, locks, suspension, healing and restoring, see `model.marks`.
        new_metadata: New metadata of a group, during its rollout to the members; else None.
        drains_until: When a server that leaves its group has been drained, and is deleted; None if it stays.
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
        """Whether deletion has begun or failed: such a row never becomes the current row of its name again."""
        return self.action == Action.DELETE

    @property
    def fails_stack(self) -> bool:
        """Whether the stack fails with the row: any failure without a successor, or a failed deletion."""
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
        number: Grows whenever an observation differs from its predecessor. Observers use odd numbers and the shard's
            owner even numbers, so neither mistakes a foreign look for its own.
    """

    observation: Observation
    number: int = 0


def next_look(number: int) -> int:
    """Return the number of the next look of an observer: the next odd number."""
    return number + 1 + number % 2


def next_own_look(number: int) -> int:
    """Return the number of the next look of the owner, which the owner has judged itself: the next even number."""
    return number + 2 - number % 2


HEAL_SHARE = 0.4
"""Share of a stack's things healed at a time, if neither the stack nor the service has a setting."""


class HealingPolicy(StrEnum):
    """Healing of a thing that can only be replaced: replace it, or ask for the user's consent first."""

    REPLACE = "replace"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Brake:
    """Limits on healing from outside the shard.

    Attributes:
        share: Share of the expected things that may be healed at a time.
        members: Number of expected things in all shards of the stack; None to count only this shard.
        elsewhere: Number of things being healed in sibling shards.
        changing: Number of things being changed, or about to be, in sibling shards.
        limit: Number of members of a group that may be away at a time, for any reason.
        policy: Healing policy of the stack for things that can only be replaced; None for the default.
        blind: Kinds of the cloud port of which every thing in the project is absent: the observation is doubted.
        moving: While a rolling update suspends healing, number ranges of the members being updated, which are processed
            nevertheless; None if healing is active.
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
        """Return whether a rolling update suspends the healing of this member."""
        if self.moving is None or not name.isdigit():
            return False
        return not any(low <= int(name) < high for low, high in self.moving)

    def allowed(self, things: int) -> int:
        """Return how many of the shard's `things` may be healed at a time: at least one."""
        things = things if self.members is None else self.members
        # The epsilon corrects products just below an integer: 0.29 * 100 is 28.999….
        return max(1, min(int(self.share * things + 1e-9), self.limit.away_max(things)))


class KeepPolicy(StrEnum):
    """Things that stay untouched when a stack is deleted.

    `ALL`: everything, since the stack is abandoned. `ADOPTED`: the things to adopt, until their adoption is complete.
    """

    ALL = "all"
    ADOPTED = "adopted"


@dataclass(slots=True)
class StackFacts:
    """Facts about the stack for decisions of its shards; shapes as in `store.schema.stack`.

    Attributes:
        revision: Newest revision, the desired state.
        complete_revision: Newest revision that was complete; None before the first.
        rollback_to: Target revision of a ROLLBACK, else None.
        deadline: When the action in progress times out, in seconds since the epoch.
        converge: Whether drift in the cloud is healed without a request.
        observe_s: Seconds between looks at things at rest; 0 for never, None for the service's interval.
        exceptions: Resource name -> switches that differ from the stack's.
        look_from: No resource is at rest before a look after this time.
        step_at: Earliest time of a group's next batch.
        parent_key: Key of the row in the parent stack that this nested stack belongs to; None for a root stack.
        depth: Number of ancestor stacks.
        lock: The lock while the stack is locked, else None.
        suspended: Whether the stack is suspended.
        spares: A `KeepPolicy`, or None.
        snapshot: The snapshot being taken or restored, with the place of a nested stack in it.
        secret: False if nothing in the whole tree of stacks contains secrets; None if not known yet.
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
    snapshot: StackSnapshot | None = None
    secret: bool | None = None
    healing: Mapping[str, Any] | None = None

    @property
    def failed_early(self) -> bool:
        """Whether the newest revision failed before it was ever complete, so nothing new is begun for it.

        Maintenance of existing things neither completes nor retries such a revision.
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
        """Whether every resource is processed even if some fail; the stack fails at the end.

        So a check finds every problem, a lock protects as much as possible, and no resource stays suspended because a
        sibling failed.
        """
        return self.status == Status.IN_PROGRESS and STACK_ACTIONS[self.action].thorough

    @property
    def frozen(self) -> bool:
        """Whether nothing may be begun, since the stack is locked or suspended.

        Deletion of the stack ends both; after a failed deletion the stack may be locked.
        """
        return self.lock is not None or (self.suspended and self.action != Action.DELETE)

    @property
    def lock_ends_at(self) -> float | None:
        """When the service removes the lock, None if it does not."""
        # After a failed UNLOCK the user has to unlock; the lock of a nested stack ends with the lock of its root.
        if self.lock is None or self.parent_id is not None or self.action != Action.LOCK:
            return None
        return self.lock.get("expires_at")

    @property
    def adopting(self) -> bool:
        """Whether the stack is adopting existing things."""
        return self.action == Action.ADOPT and self.status == Status.IN_PROGRESS

    @property
    def abandoned(self) -> bool:
        """Whether all things of the stack stay untouched."""
        return self.spares == KeepPolicy.ALL

    @property
    def snapshotting(self) -> bool:
        """Whether a snapshot of the stack is being taken, which changes nothing else."""
        return self.action == Action.SNAPSHOT and self.status == Status.IN_PROGRESS

    @property
    def restoring(self) -> bool:
        """Whether a snapshot is being restored."""
        # Only a restore stores a "run".
        return self.snapshot is not None and self.snapshot.run != "" and self.complete_revision != self.revision

    def snapshot_inside(self, name: str) -> StackSnapshot | None:
        """Return the snapshot from the view of the nested stack behind the resource `name`."""
        return None if self.snapshot is None else self.snapshot.inside(name)

    def healing_inside(self, name: str) -> Mapping[str, Any] | None:
        """Return the healing settings of the nested stack behind the resource `name`."""
        exception = (self.exceptions or {}).get(name, {}).get("healing")
        return self.healing if exception is None else {**(self.healing or {}), "policy": exception}

    def converges(self, name: str) -> bool:
        """Return whether drift of a resource is healed without a request (CV8)."""
        exception = (self.exceptions or {}).get(name, {}).get("converge")
        return self.converge if exception is None else bool(exception)


def look_interval(
    observe_s: float | None, exceptions: Mapping[str, Mapping[str, Any]] | None, default_s: float
) -> float | None:
    """Return the seconds between looks at a shard at rest, None for never.

    The shortest interval of any resource holds for the whole shard, since looks are made in bulk.

    Args:
        observe_s: The stack's interval; 0 for never, None for `default_s`.
        exceptions: Resource name -> switches, of which only `observe_s` is read; see `store.schema.stack`.
        default_s: The service's interval.
    """
    intervals = [default_s if observe_s is None else observe_s]
    intervals += [
        switches["observe_s"] for switches in (exceptions or {}).values() if switches.get("observe_s") is not None
    ]
    return min((interval for interval in intervals if interval > 0), default=None)


@dataclass(frozen=True, slots=True)
class Enclosing:
    """The state of the parent of a nested stack.

    Attributes:
        spares: A `KeepPolicy`, or None.
        deletion_policy: Of the nested stack's row in the parent.
    """

    action: str
    status: str
    spares: str | None
    deletion_policy: str


@dataclass(slots=True)
class World:
    """The state of a shard, the input of `planner.Frontier`.

    Attributes:
        definitions: Desired graph of this shard, by resource name.
        rows: All rows of the shard, by key.
        seen: Newest observations, by row key; no entry for a row that was never observed.
        settled_revision: Newest revision at which the shard came to rest.
        looked_at: Time of the newest round of observations that saw all things of the shard.
        blind: Why the following round failed to see all; "" if it did not fail.
        listing_lag_s: Seconds after a creation during which lists may lack the new thing, see `clouds.port.Cloud`.
        second_look_s: Seconds from a look that missed a thing to the owner's second look.
        looked: Keys of the rows whose things the owner has looked for in this pass.
        brake: Limits on healing.
        drain_s: Seconds for which servers are drained before they leave a group; 0 for no draining.
        stamp: The logical clock of the shard: the newest stamp in any row.
        restored: Resource name -> id of the snapshot to restore its data from.
        policies: Resource name -> deletion policy set since the deletion of the stack began (ADR 0048).
        patience_s: Seconds for an act begun in a stack that is not in progress (ADR 0058).
        rollouts: Key of a group's row -> the rollout of its metadata.
        health: Health policies and findings; None without a policy.
        to_be_deleted: Whether an ancestor is being deleted, and will delete this stack, whose deletion has not begun.
        neglected: Keys of the rows of nested stacks with a problem that is left alone, an unhealthy mark, or a
            replacement due to a mark, during an action that repairs them.
        earlier: Revision -> its graph of this shard, if the newest revision has failed: the newest complete revision,
            and later revisions for which rows were last acted on.
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
