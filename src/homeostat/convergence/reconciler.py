"""One pass over one shard: load, decide, store the intents, act, record, until nothing more can be done now; release.

Each stage is a module of `stages`. The outcomes of one batch and the intents of the next are stored in one transaction,
and the world stays in memory in between. Every transaction checks the epoch of the lease, so a stale owner writes
nothing (invariant 4, CONTRIBUTING.md).
"""

from collections.abc import Iterator

from homeostat.clock import Clock
from homeostat.clouds.port import Clouds, look_max_s
from homeostat.convergence.executor import StepExecutor
from homeostat.convergence.limits import Limits
from homeostat.convergence.lost_shards import LostShards
from homeostat.convergence.ownership import ShardOwnership
from homeostat.convergence.redactor import Redactor, redacted_without_world
from homeostat.convergence.stages.acting import act
from homeostat.convergence.stages.deciding import decide, time_out
from homeostat.convergence.stages.loading import load_world
from homeostat.convergence.stages.looking import Look, look_again
from homeostat.convergence.stages.passing import Pass
from homeostat.convergence.stages.recording import record
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
            db: The database.
            clouds: The cloud as each project sees it.
            executor: Executes steps.
            clock: Clock of decisions and deadlines.
            keys: Supply of fresh row keys.
            limits: Time limits and sizes.
            look: Looks at things of other shards, and wakes these where something has changed.
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
        """Leases of the passes that run now and do not hang: those that the heartbeat renews."""
        since = self.clock.monotonic() - self.limits.hang_s
        alive = [lease for lease, progress_at in self._running.copy().items() if progress_at >= since]
        return sorted(alive, key=lambda lease: (lease.stack_id, lease.number))

    def run(self, lease: Lease) -> None:
        """Run one pass over a claimed shard, and give the shard back at the end.

        Where it raises, nothing is lost: the rows say how to go on.

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
        """Note that the pass under this lease has made progress, so that it does not count as hung."""
        self._running[lease] = self.clock.monotonic()

    def _load_redacted(self, lease: Lease) -> Pass:
        """Load the world of a claimed shard; an error is redacted, as in `converge`."""
        try:
            return self.load(lease)
        except (Superseded, Transient):
            raise
        except Exception as error:
            shown = redacted_without_world(self.db, self.redactions, lease, error)
            if shown is error:
                raise
            raise shown from None

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
        # `load_world` has read how the nested stacks are now; what has changed is stored with the first transaction.
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
            # The error ends up in logs, events and the shard's row: it must not quote a hidden parameter there, not
            # even in a chained traceback (hence `from None`).
            shown = redacted(error, current.redactor.text)
            if shown is error:
                raise
            raise shown from None

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
            # Steps that no cloud hears of are executed before their intent is stored: nothing outside could be lost,
            # and intent and outcome go into one transaction. Steps for a cloud need the stored intent first
            # (invariant 3), so that the next owner finds what a lost request has made.
            record(current, act(current, self.executor, decided.inside))
            # What has come to its end may have changed other things. These are looked at before that end is stored.
            look_again(current, self.executor, self.look)
            full = len(current.writes) >= limits.batch
            stored = store(current, now) if decided.outside or full else Stored()
            if stored.abandoned:
                break
            record(current, act(current, self.executor, decided.outside))
            look_again(current, self.executor, self.look)
            if current.looked_again:
                # What reads them is decided about with what was seen now.
                current.frontier, current.looked_again = Frontier(current.world, self.keys), False
            # A wake-up since the claim means that the world in memory is out of date (a new revision, an observation):
            # the pass ends, and the next one loads afresh. That is how an update takes effect in the middle of another.
            if current.ownership.woken:
                break
            # An observation is remembered by this pass alone. It decides what follows from it, however long it took:
            # the next pass would have to look again, and so would every pass after it.
            if clock.monotonic() - started > limits.slice_s and not decided.observes:
                break
        release(current)
