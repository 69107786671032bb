"""All that deciding about one shard needs, as plain values: rows, observations, desired graph, facts of the stack."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.observed import Observation
from homeostat.model.status import LOCKING, MAINTENANCE, Action, Status


@dataclass(slots=True)
class Resource:
    """One row: what should exist and its lifecycle. Fields are the columns of table `resource`, in order.

    key — 12 letters and digits, also the end of the physical name; revision — of the stack when last acted on;
    requires — keys of the rows it was built on; properties — resolved ones as last asked of the cloud;
    token — what the cloud's object carries; acted_at — when the act was carried out, None from intent to outcome;
    due_at — not before this; asked_at — somebody asked to converge it: it is to be looked at after this time, and then
    to be mended whatever the switches say; attempts — creations tried for this name in a row; retries — acts in a row
    that time has to mend; intent — what an update or operation is about: `{"changed": [fields]}` or
    `{"operation": verb}`, and of a deletion with a snapshot `{"operation": "snapshot", "token": …}` and then
    `{"snapshot": id}`;
    born, changed, resolved — stamps of the shard: when the row was made, when its reference or attributes last
    changed, when its inputs were last read; judged — number of the observation last judged; called — its type as the
    template calls it, None where that is `type`; external_id — of the thing that it stands for, which is somebody
    else's; hooks — see `planner.lifecycle.hooks`; marks — what people and locks have put on it. Times are seconds
    since the epoch.
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
    asked_at: float | None = None
    attempts: int = 0
    retries: int = 0
    intent: dict[str, Any] | None = None
    born: int = 0
    changed: int = 0
    resolved: int = 0
    judged: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    called: str | None = None
    external_id: str | None = None
    hooks: dict[str, Any] | None = None
    marks: dict[str, Any] | None = None

    @property
    def shown_type(self) -> str:
        """Its type as users know it."""
        return self.called or self.type

    @property
    def busy(self) -> bool:
        return self.status == Status.IN_PROGRESS

    @property
    def failed(self) -> bool:
        return self.status == Status.FAILED

    @property
    def leaving(self) -> bool:
        """Its deletion has begun (or failed): it is nobody's current row any more."""
        return self.action == Action.DELETE

    @property
    def hinders(self) -> bool:
        """Has it failed so that the stack is not what it should be? What has a successor has not, unless it cannot
        go."""
        return self.failed and (self.replaced_by is None or self.leaving)


@dataclass(slots=True)
class Seen:
    """Newest observation of a row; number — grows whenever what was seen differs from before.

    Observers give odd numbers and owners even ones, so that neither takes the other's look for its own.
    """

    observation: Observation
    number: int = 0


def next_look(number: int) -> int:
    """Number of an observer's look after the one of this number."""
    return number + 1 + number % 2


def next_own_look(number: int) -> int:
    """Number of the owner's look, which it has judged itself."""
    return number + 2 - number % 2


ASK, REPLACE = "ask", "replace"
"""What healing does about a thing that would have to be made anew: ask for help, or do it."""
HEAL_SHARE = 0.4
"""Of the things of a stack, that are healed at a time, where neither the stack nor the service says otherwise."""


@dataclass(frozen=True, slots=True)
class Brake:
    """What holds healing back, besides the rows of the shard itself.

    share — of what should be there, that is acted on at a time; members — how many there should be in all shards, None
    for what is in this one; elsewhere — how many are being healed in other shards; in_service_min — that must be left
    alone, where there are so many; policy — what is done about what would have to be made anew, where nothing else is
    said of a resource, None for the default; blind — kinds of the cloud port of which everything in the project is
    absent, so that the look is doubted rather than the things.
    """

    share: float = HEAL_SHARE
    members: int | None = None
    elsewhere: int = 0
    in_service_min: int = 0
    policy: str | None = None
    blind: frozenset[str] = frozenset()

    def allowed(self, there: int) -> int:
        """How many of so many things may be healed at a time: at least one."""
        there = there if self.members is None else self.members
        return max(1, min(int(self.share * there + 1e-9), there - self.in_service_min))


class Spares(StrEnum):
    """What stays untouched when a stack goes: everything, since it is abandoned; or what it was given when it was
    adopted, as long as that is not complete."""

    ALL = "all"
    ADOPTED = "adopted"


@dataclass(slots=True)
class StackFacts:
    """What a shard must know of its stack. rollback_to — the revision a ROLLBACK goes back to, else None;
    observe_s, exceptions, look_from, step_at, lock, suspended, snapshot, secret, healing — see `store.schema.stack`;
    spares — one of `Spares`, or None."""

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
    def halted(self) -> bool:
        """Its newest revision has failed before it was ever complete: nothing new is begun for it.

        Maintenance of what is there neither completes it nor gives it another try."""
        failed = self.status == Status.FAILED or self.action in MAINTENANCE
        return failed and self.complete_revision != self.revision

    @property
    def checking(self) -> bool:
        """It is being looked at, and nothing is to be changed."""
        return self.action == Action.CHECK and self.status == Status.IN_PROGRESS

    @property
    def maintained(self) -> bool:
        """What is there is being suspended, resumed, locked or unlocked."""
        return self.action in MAINTENANCE and self.status == Status.IN_PROGRESS

    @property
    def thorough(self) -> bool:
        """Every resource gets its turn, whatever fails of the others; the stack fails at the end. So checks find all
        that is wrong, and locks protect all that can be protected."""
        return self.checking or (self.maintained and self.action in LOCKING)

    @property
    def held(self) -> bool:
        """Nothing of it is begun: it is locked or suspended. Whoever deletes it takes both away; what could not be
        deleted may be locked then."""
        return self.lock is not None or (self.suspended and self.action != Action.DELETE)

    @property
    def lock_ends_at(self) -> float | None:
        """When the service takes its lock away, if it does. What could not be unlocked is left to people."""
        if self.lock is None or self.parent_id is not None or self.action != Action.LOCK:
            return None
        return self.lock.get("expires_at")

    @property
    def adopting(self) -> bool:
        """It is taking over what there is, as it is."""
        return self.action == Action.ADOPT and self.status == Status.IN_PROGRESS

    @property
    def abandoned(self) -> bool:
        """Nothing that it has had is touched any more."""
        return self.spares == Spares.ALL

    @property
    def snapshotting(self) -> bool:
        """A snapshot is being taken of it, and nothing is to be changed."""
        return self.action == Action.SNAPSHOT and self.status == Status.IN_PROGRESS

    @property
    def restoring(self) -> bool:
        """It goes back to a snapshot, and has not got there yet."""
        return self.snapshot is not None and "run" in self.snapshot and self.complete_revision != self.revision

    def snapshot_inside(self, name: str) -> dict[str, Any] | None:
        """The same snapshot, as it concerns the stack inside this one that is the reality of a resource."""
        return None if self.snapshot is None else {**self.snapshot, "place": [*self.snapshot["place"], name]}

    def healing_inside(self, name: str) -> Mapping[str, Any] | None:
        """The same for the stack inside this one that is the reality of a resource."""
        exception = (self.exceptions or {}).get(name, {}).get("healing")
        return self.healing if exception is None else {**(self.healing or {}), "policy": exception}

    def converges(self, name: str) -> bool:
        """Is a resource brought back by itself when the world changes (CV8)?"""
        exception = (self.exceptions or {}).get(name, {}).get("converge")
        return self.converge if exception is None else bool(exception)


def look_interval(
    observe_s: float | None, exceptions: Mapping[str, Mapping[str, Any]] | None, default_s: float
) -> float | None:
    """Seconds between looks at a shard where all is at rest; None: never. One resource's wish is served for all of its
    shard, since looks are made in bulk. observe_s, exceptions — see `store.schema.stack`; 0 there means never."""
    wishes = [default_s if observe_s is None else observe_s]
    wishes += [each["observe_s"] for each in (exceptions or {}).values() if each.get("observe_s") is not None]
    return min((wish for wish in wishes if wish > 0), default=None)


@dataclass(slots=True)
class World:
    """One shard as it is: what `planner.Frontier` decides from.

    definitions — desired graph of this shard; settled_revision — newest revision at which the shard came to rest;
    looked_at — the newest round of looking that saw all its things; blind — why the one after that did not;
    listing_lag_s — see `clouds.port.Cloud`; second_look_s — how long after something was not found it is looked for
    once more; looked — keys of the rows whose things the owner has looked for itself, in this pass; brake — what holds
    healing back; restored — name of a resource -> id of the snapshot that it is to have its data back from; policies —
    name of a resource -> the deletion policy that it has got since its deletion began (ADR 0048); patience_s — how long
    what was begun in a stack that is not in progress may take (ADR 0058).
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
    stamp: int = 0
    restored: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    patience_s: float = math.inf

    def next_stamp(self) -> int:
        self.stamp += 1
        return self.stamp
