"""One pass over one shard: load, decide, store the intents, act and record until nothing is left to do now; release.

Each stage is a module of `stages`. The outcomes of one batch and the intents of the next are stored in one transaction,
and the world stays in memory in between. Every transaction checks the epoch of the lease, so a stale owner writes
nothing (invariant 4, CONTRIBUTING.md).
"""

from collections.abc import Iterator

from homeostat.clock import Clock
from homeostat.clouds.port import Clouds, look_max_s
from homeostat.convergence.execution.executor import StepExecutor
from homeostat.convergence.limits import Limits
from homeostat.convergence.ownership import LostShards, ShardOwnership
from homeostat.convergence.stages.acting import act
from homeostat.convergence.stages.deciding import decide, time_out
from homeostat.convergence.stages.loading import load_world
from homeostat.convergence.stages.looking import Look, look_again
from homeostat.convergence.stages.passing import Pass
from homeostat.convergence.stages.recording import record
from homeostat.convergence.stages.redactor import Redactor, redacted_without_world
from homeostat.convergence.stages.releasing import hand_over, release
from homeostat.convergence.stages.storing import Stored, store, unlock_expired
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.redaction import Redactions, redacted
from homeostat.model.errors import Superseded, Transient
from homeostat.observability import tracing
from homeostat.planner import Frontier
from homeostat.store.database import Database
from homeostat.store.shards.leases import Lease


class Reconciler:
    """Runner of passes over one database. One instance serves any number of threads."""

    def __init__(
        self,
        db: Database,
        clouds: Clouds,
        executor: StepExecutor,
        clock: Clock,
        keys: Iterator[str],
        limits: Limits,
        look: Look,
    ) -> None:
        """Prepare the runner.

        Args:
            executor: Executes steps.
            clock: Clock of decisions and deadlines.
            keys: Supply of fresh row keys.
            look: Observes things of other shards, and wakes these shards if something has changed.
        """
        self.db = db
        self.clouds = clouds
        self.executor = executor
        self.clock = clock
        self.keys = keys
        self.look = look
        self.limits = limits
        self.definitions = DesiredGraphs()
        self.redactions = Redactions()
        self.lost = LostShards()
        self._running: dict[Lease, float] = {}

    @property
    def leases(self) -> list[Lease]:
        """Leases of the passes that run now and do not hang. The heartbeat renews them."""
        since = self.clock.monotonic() - self.limits.hang_s
        # A copy, since other threads begin and end passes meanwhile.
        alive = [lease for lease, progress_at in self._running.copy().items() if progress_at >= since]
        return sorted(alive, key=lambda lease: (lease.stack_id, lease.number))

    def run(self, lease: Lease) -> None:
        """Run one pass over a claimed shard, and give the shard back at the end.

        An error loses nothing: the stored rows say how to continue.

        Raises:
            Superseded: A newer owner has the shard, or a row was changed meanwhile.
            Transient: The database or the cloud cannot be reached.
        """
        self._note_progress(lease)
        try:
            self.converge(self._load_redacted(lease))
        finally:
            del self._running[lease]

    def _note_progress(self, lease: Lease) -> None:
        """Note progress of the pass under this lease, so that the pass does not count as hung."""
        self._running[lease] = self.clock.monotonic()

    def _load_redacted(self, lease: Lease) -> Pass:
        """Load the world of a claimed shard; redact an error, as `converge` does."""
        try:
            return self.load(lease)
        except (Superseded, Transient):
            raise
        except Exception as error:
            redacted_error = redacted_without_world(self.db, self.redactions, lease, error)
            if redacted_error is error:
                raise
            raise redacted_error from None

    def load(self, lease: Lease) -> Pass:
        """Load the world of a claimed shard: the first stage.

        Raises:
            Superseded: The shard does not exist any more.
        """
        limits = self.limits
        with self.db.read() as tx:
            shares = (limits.heal_share, limits.stack_timeout_s)
            loaded = load_world(tx, self.definitions, lease.stack_id, lease.number, self.clock.now(), *shares)
        world = loaded.world
        cloud = self.clouds(world.stack.project)
        world.listing_lag_s = cloud.listing_lag_s
        world.second_look_s = limits.second_look_s
        tracing.note(revision=world.stack.revision, stack=world.stack.name, resources=len(world.rows))
        current = Pass(
            self.db,
            self.clock,
            limits,
            ShardOwnership(self.db, self.clock, lease, limits.lease_s, lambda: self._note_progress(lease)),
            world,
            Frontier(world, self.keys),
            Redactor(self.db, self.redactions, world),
            look_max_s(cloud),
            loaded.shard.failures,
            loaded.shard.healing,
        )
        # `load_world` has observed the nested stacks; changed observations are stored with the first transaction.
        for nested, look in loaded.looks:
            current.writes.seen[nested.key] = (nested, look)
        return current

    def converge(self, current: Pass) -> None:
        """Run the other stages over a loaded world.

        Raises:
            Superseded: As in `run`.
            Transient: As in `run`.
        """
        try:
            self._run_stages(current)
        except Superseded:
            hand_over(current)
            raise
        except Exception as error:
            # The error is written to logs, events and the shard's row. It must not quote a hidden parameter, not even
            # in a chained traceback: hence `from None`.
            redacted_error = redacted(error, current.redactor.text)
            if redacted_error is error:
                raise
            raise redacted_error from None

    def _run_stages(self, current: Pass) -> None:
        """Take steps until none is left, the stack fails, the shard is woken, or the time slice is used up."""
        clock, limits = self.clock, self.limits
        started = clock.monotonic()
        time_out(current)
        unlock_expired(current)
        current.note_failures()
        while not current.failure:
            now = clock.now()
            decided = decide(current, now)
            if not decided.steps:
                break
            # Steps within the service are executed before their intent is stored: a crash loses nothing outside, and
            # intent and outcome share one transaction. Steps for a cloud need the stored intent first (invariant 3),
            # so that the next owner finds the thing that a lost request has created.
            record(current, act(current, self.executor, decided.inside))
            # A finished step may have changed other things: observe these before the step's end is stored.
            look_again(current, self.executor, self.look)
            full = len(current.writes) >= limits.batch
            stored = store(current, now) if decided.outside or full else Stored()
            if stored.abandoned:
                break
            record(current, act(current, self.executor, decided.outside))
            look_again(current, self.executor, self.look)
            if current.looked_again:
                # Resources that read the changed things are decided with the new observations.
                current.frontier, current.looked_again = Frontier(current.world, self.keys), False
            # A wake-up since the claim means that the world in memory is out of date (a new revision, an observation):
            # the pass ends, and the next one loads afresh. So an update takes effect in the middle of another update.
            if current.ownership.woken:
                break
            # Only this pass remembers a fresh observation, so it decides with it even after its time slice is over:
            # otherwise the next pass would have to observe again, and so would every later pass.
            if clock.monotonic() - started > limits.slice_s and not decided.observes:
                break
        release(current)
