"""State of one pass over one shard, shared by its stages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.clock import Clock
from homeostat.convergence.limits import Limits
from homeostat.convergence.ownership import ShardOwnership
from homeostat.convergence.stages.redactor import Redactor
from homeostat.model.plan import Event, Step
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.planner import Frontier, outcome
from homeostat.planner.effects import Change, changed_elsewhere, has_ended
from homeostat.planner.lifecycle import recovery_state
from homeostat.planner.policies.unhealthy import merely_marked
from homeostat.planner.scope import thing_of
from homeostat.resources.nested import STACK
from homeostat.resources.registry import is_outside, kind_of, type_of
from homeostat.store.database import Database
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.shard_state import Writes


@dataclass(slots=True)
class Pass:
    """State of a pass: its world, its frontier, and the writes of the next transaction.

    Attributes:
        clock: Clock of decisions and deadlines.
        limits: Time limits and sizes.
        ownership: Ownership of the shard.
        world: The world of the shard. The stages change its rows and observations.
        frontier: The plan for the world, moved by the outcomes of steps.
        redactor: Redacts stored text.
        look_max_s: See `clouds.port.look_max_s`.
        failures_before: Number of failed resources, as the shard's row has it.
        healing_before: Number of resources being healed, as the shard's row has it.
        writes: Writes of the next transaction.
        failure: Why the stack fails; "" as long as it does not.
        failure_events: Events to store with the failure, see `fail`.
        unconfirmed: Creations that may have been sent, and whose outcome is not stored.
        changes: Side effects on other things since these were last looked at, see `planner.effects`.
        looked_again: Whether such a look has changed an observation.
        looks_soon: Whether observers look at the shard soon, since a look failed, or showed work in progress.
        batch: Steps taken at once.
    """

    db: Database
    clock: Clock
    limits: Limits
    ownership: ShardOwnership
    world: World
    frontier: Frontier
    redactor: Redactor
    look_max_s: float
    failures_before: int
    healing_before: int
    writes: Writes = field(default_factory=Writes)
    failure: str = ""
    failure_events: list[Event] = field(default_factory=list)
    unconfirmed: list[Step] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    looked_again: bool = False
    looks_soon: bool = False
    batch: int = field(init=False)

    def __post_init__(self) -> None:
        types = {definition.type for definition in self.world.definitions.values()}
        types |= {row.type for row in self.world.rows.values()}
        nests = any(kind_of(name) == STACK for name in types)
        self.batch = min(self.limits.batch, self.limits.nested_batch) if nests else self.limits.batch

    def fail(self, events: Iterable[Event], reason: str) -> None:
        """Fail the stack because of a step whose row has not failed.

        The events of the step wait for the transaction that fails the stack, which stores them only while this revision
        is the newest. So they are stored once for each revision, however many passes decide the same.
        """
        self.failure_events += events
        self.failure = self.failure or reason

    def note_failure(self, row: Resource) -> None:
        """Fail the stack at the first failure of its newest revision.

        Running requests are finished, and judged by a later pass. A `thorough` action (a check, a lock) acts on every
        resource first, and fails at the end. A resource that a user has merely marked unhealthy does not fail the
        stack, nor does a resource that a health policy recovers.
        """
        stack = self.world.stack
        concerns_action = row.fails_stack and row.revision == stack.revision
        concerns_action = concerns_action and not merely_marked(row) and not recovery_state.fails_nothing(row)
        if concerns_action and not stack.thorough and stack.status == Status.IN_PROGRESS and not self.failure:
            self.failure = outcome.stack_failure(self.world, row)

    def note_failures(self) -> None:
        """Fail the stack if a worker died between storing a failed row and failing the stack."""
        for row in self.world.rows.values():
            self.note_failure(row)

    def note_effects(self, row: Resource, events: Iterable[Event], before: Mapping[str, Any], *, removed: bool) -> None:
        """Note the side effects of a row's act on other things, once the act has ended.

        Args:
            events: The row's new events.
            before: The thing's observed properties before the act.
            removed: Whether the row is deleted.
        """
        if has_ended(row, events, removed=removed):
            self.changes += changed_elsewhere(self.world, row, before)

    def store_observation(self, row: Resource) -> None:
        """Put the newest observation of a row into the next transaction."""
        kind = type_of(row.type)
        self.writes.seen[row.key] = (row, self.world.seen[row.key])
        properties = kind.observed_properties(thing_of(self.world, row, kind))
        if properties:
            self.writes.properties.append((row, properties))

    def seen_of(self, row: Resource) -> Mapping[str, Any]:
        """Return the properties in the last observation of a row's thing."""
        seen = self.world.seen.get(row.key)
        return seen.observation.properties if seen is not None else {}

    def orphans_of(self, row: Resource, token: str) -> list[Orphan]:
        """Return the orphan to watch for an abandoned token; none for types that live in the service alone."""
        return [Orphan(token, kind_of(row.type), self.world.stack.project)] if is_outside(row.type) else []

    @property
    def begins_healing(self) -> bool:
        """Whether the shard is healing more resources than its row says."""
        return self.frontier.healing > self.healing_before

    @property
    def heals_more(self) -> bool:
        """Whether healing has increased and other shards depend on the count."""
        return self.counts_healing and self.begins_healing

    @property
    def counts_healing(self) -> bool:
        """Whether the count of resources being healed is stored in the shard's row, for sibling shards."""
        return self.world.stack.shards > 1 or self.world.brake.limit.binds
