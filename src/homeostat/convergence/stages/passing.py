"""One pass over one shard: what all of its stages share."""

from dataclasses import dataclass, field

from homeostat.clock import Clock
from homeostat.convergence.limits import Limits
from homeostat.convergence.ownership import ShardOwnership
from homeostat.convergence.redactor import Redactor
from homeostat.model.plan import Event, Step
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.planner import Frontier, outcome
from homeostat.planner.lifecycle import recovery_state
from homeostat.planner.policies.unhealthy import merely_marked
from homeostat.resources.nested import STACK
from homeostat.resources.registry import is_outside, kind_of
from homeostat.store.database import Database
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.shard_state import Writes


@dataclass(slots=True)
class Pass:
    """State of a pass: its world, its frontier, and what the next transaction will store.

    Attributes:
        db: The database.
        clock: Clock of decisions and deadlines.
        limits: Time limits and sizes.
        ownership: Ownership of the shard.
        world: The world of the shard. The stages change its rows and observations.
        frontier: The plan for the world, moved by the outcomes of steps.
        redactor: Redacts what is stored.
        look_max_s: See `clouds.port.look_max_s`.
        failures_before: Number of failed resources, as the shard's row has it.
        healing_before: Number of resources being healed, as the shard's row has it.
        writes: What the next transaction stores.
        failure: Why the stack fails; "" as long as it does not.
        failure_events: Events to store with the failure, see `fail`.
        unconfirmed: Creations that may have been sent, and whose outcome is not stored.
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
    batch: int = field(init=False)

    def __post_init__(self) -> None:
        types = {each.type for each in self.world.definitions.values()} | {
            each.type for each in self.world.rows.values()
        }
        nests = any(kind_of(each) == STACK for each in types)
        self.batch = min(self.limits.batch, self.limits.nested_batch) if nests else self.limits.batch

    def fail(self, step: Step) -> None:
        """Fail the stack with a step, though its row has not failed.

        The events of the step wait for the transaction that fails the stack, which stores them only while this revision
        is still the newest: so they are stored once for each revision, however many passes decide the same.
        """
        self.failure_events += step.events
        self.failure = self.failure or step.fails

    def note_failure(self, row: Resource) -> None:
        """Fail the stack at the first failure of its newest revision.

        What runs already is finished, and judged by a later pass. A `thorough` action (a check, a lock) gives every
        resource its turn first, and fails at the end. A row that a user has merely marked unhealthy fails nothing,
        nor does one that a health policy recovers.
        """
        stack = self.world.stack
        mine = row.fails_stack and row.revision == stack.revision
        mine = mine and not merely_marked(row) and not recovery_state.fails_nothing(row)
        if mine and not stack.thorough and stack.status == Status.IN_PROGRESS and not self.failure:
            self.failure = outcome.stack_failure(self.world, row)

    def note_failures(self) -> None:
        """Fail the stack where a worker died after it stored a failed row, and before it failed the stack."""
        for row in self.world.rows.values():
            self.note_failure(row)

    def orphans_of(self, row: Resource, token: str) -> list[Orphan]:
        """Return the orphan to watch for a token that was given up; none for what lives in the database alone."""
        return [Orphan(token, kind_of(row.type), self.world.stack.project)] if is_outside(row.type) else []

    @property
    def begins_healing(self) -> bool:
        """Whether the shard is healing more resources than its row says."""
        return self.frontier.healing > self.healing_before

    @property
    def heals_more(self) -> bool:
        """Whether it is, where that matters to others."""
        return self.counts_healing and self.begins_healing

    @property
    def counts_healing(self) -> bool:
        """Whether the row of the shard has the number of resources that it heals: others depend on it."""
        return self.world.stack.shards > 1 or self.world.brake.limit.binds
