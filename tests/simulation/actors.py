"""Processes that can be stopped at every store and cloud call: killed there, frozen and thawed much later, cut off."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import greenlet
from taskflow.exceptions import JobFailure, UnclaimableJob

from homeostat.builtin.cloud import Records
from homeostat.builtin.member_reports import MemberReports
from homeostat.builtin.signals import Signals
from homeostat.clock import AgreedClock
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.outbound import Outbound
from homeostat.clouds.port import ChangeNotice, Cloud
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.engine import Urls, build_engine
from homeostat.convergence.jobs.board import ShardBoard
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.convergence.members.scaling import Scaling
from homeostat.model.errors import Rejected, Superseded, Transient
from homeostat.plugins.cloud import PluginClouds
from homeostat.services.actions import StackActions
from homeostat.services.marks import Marks
from homeostat.services.pipeline.prerequisites import Prerequisites
from homeostat.services.quotas import Quotas
from homeostat.services.snapshots import Snapshots
from homeostat.services.stacks import StackService
from homeostat.services.transfer import StackTransfer
from homeostat.store.database import Database, Statements, Transaction
from homeostat.store.operation.purge import Rules, purge
from homeostat.store.shards import leases
from homeostat.store.shards.leases import Lease
from homeostat.store.sql import timeline
from homeostat.store.sql.timeline import KeptTime

if TYPE_CHECKING:
    from tests.simulation.world import World

URL = "http://api.test:8004"
TIMEOUT_S = 900.0
"""Of stacks that say nothing else."""


class Killed(BaseException):
    """kill -9: unwinds the stacks of a process; nothing of it may be caught on the way."""


class VirtualClock:
    """Time that moves only when the world says so. step_s — by how much the database's clock was set ahead of it."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.time = start
        self.step_s = 0.0

    def database(self) -> float:
        """What the clock of the database shows."""
        return self.time + self.step_s

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class SkewedClock:
    """The clock of one machine. skew_s — how far it is ahead of the world's; may change at any time."""

    def __init__(self, world: VirtualClock) -> None:
        self._world = world
        self.skew_s = 0.0

    def now(self) -> float:
        return self._world.time + self.skew_s

    def monotonic(self) -> float:
        return self._world.time


class ProcessClock(AgreedClock):
    """The time as the threads of a process know it."""

    def __init__(self, agreed_now: Callable[[], float], world: VirtualClock) -> None:
        super().__init__(agreed_now)
        self._world = world

    def monotonic(self) -> float:
        return self._world.time


def pause() -> None:
    """A point at which an actor may be killed or frozen: gives control back to the world."""
    current = greenlet.getcurrent()
    if current.parent is not None:
        current.parent.switch()


class Turn:
    """What a thread of a process waits at for its turn: meanwhile others go on, or die."""

    def __init__(self) -> None:
        self._taken = False

    def acquire(self) -> None:
        while self._taken:
            if greenlet.getcurrent().parent is None:
                raise RuntimeError("the world itself would wait for one of its threads, for ever")
            pause()
        self._taken = True

    def release(self) -> None:
        self._taken = False


class Interruptible:
    """The database as one process sees it: the process may die, or lose its connection, before a transaction begins,
    before its commit, and after it. The database knows the right time, the process only what it has read.

    Takes: clock — of the process; strikes — called at each of these points, raises what happens there.
    """

    def __init__(self, db: Database, clock: "SkewedClock", strikes: Callable[[], None]) -> None:
        self._db = db
        self._clock = clock
        self._strikes = strikes
        self._agreed: tuple[float, float] | None = None
        self._kept = KeptTime(clock.monotonic, rate=0.0)  # invariants compare with the time of the world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def now_of(self, tx: Transaction) -> float:
        agreed = self._kept.read(lambda: timeline.clock_and_row(tx, "", self._db.now))
        self._agreed = agreed, self._clock.monotonic()
        return agreed

    def note_time(self, tx: Transaction) -> None:
        self.now_of(tx)
        timeline.note(tx, self._db.backend.insert, self._kept.known, self._db.now())

    def agreed_now(self) -> float:
        if self._agreed is None:
            return self._clock.now()
        agreed_now, at = self._agreed
        return agreed_now + self._clock.monotonic() - at

    def recent_now(self, tx: Transaction) -> float:
        return self.now_of(tx)

    @contextmanager
    def statements(self) -> Iterator[Statements]:
        yield Statements(self.read, self.write)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        pause()
        self._strikes()
        with self._db.read() as tx:
            tx.database = cast(Database, self)
            yield tx

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        pause()
        self._strikes()
        with self._db.write() as tx:
            tx.database = cast(Database, self)
            yield tx
            self._strikes()
        pause()
        self._strikes()


class InterruptibleCloud:
    """The cloud as one process sees it: it may die or freeze before a call is sent, and after it was carried out."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self._cloud = cloud
        self.name = cloud.name
        self.kinds = cloud.kinds

    @property
    def listing_lag_s(self) -> float:
        return self._cloud.listing_lag_s

    @property
    def look_max_s(self) -> float:
        return self._cloud.look_max_s

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cloud, name)

        def call(*arguments: Any) -> Any:
            pause()
            answer = method(*arguments)
            pause()
            return answer

        return call


class Actor:
    """A thread of a process. idle — it is between two pieces of work."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name = name
        self.idle = True
        self._work = work
        self._task = greenlet.greenlet(self._live)
        self.step()

    @property
    def alive(self) -> bool:
        return not self._task.dead

    def step(self) -> None:
        """Go on to the next call of store or cloud."""
        self._task.switch()

    def kill(self) -> None:
        self._task.throw(Killed)

    def _live(self) -> None:
        try:
            while True:
                self.idle = True
                pause()
                self.idle = False
                self._work()
        except Killed:
            return


class Process:
    """Threads that live and die together, with a clock of their own.

    deadly — chance to die at a point of a transaction; flaky — chance that the database does not answer there;
    frozen_until, cut_off_until — times of the world.
    """

    def __init__(self, name: str, world: "World") -> None:
        self.name = name
        self.clock = SkewedClock(world.clock)
        self.deadly = 0.0
        self.flaky = 0.0
        self.frozen_until = 0.0
        self.cut_off_until = 0.0
        self.actors: list[Actor] = []
        self.db: Any = Interruptible(world.db, self.clock, self._strikes)
        self._plain_db = world.db
        self.rng = world.rng
        self._world = world

    def _strikes(self) -> None:
        if self.rng.random() < self.deadly:
            raise Killed
        if self._world.clock.time < self.cut_off_until or self.rng.random() < self.flaky:
            raise Transient("the database does not answer")

    @property
    def alive(self) -> bool:
        return all(actor.alive for actor in self.actors)

    @property
    def ready(self) -> bool:
        return self.frozen_until <= self._world.clock.time and self.alive

    def wanted(self, *, due: bool) -> bool:
        """Has an idle thread of it anything to do? due — a pass, a look or a sweep is."""
        return due

    def step(self, actor: Actor) -> None:
        """Let one thread go on; where it dies the others do."""
        actor.step()
        if not actor.alive:
            self.kill()

    def kill(self) -> None:
        for actor in self.actors:
            if actor.alive:
                actor.kill()

    def calm(self) -> None:
        """Whatever troubled this process is over; it only keeps the wrong time."""
        self.deadly = self.flaky = self.frozen_until = self.cut_off_until = 0.0


class Worker(Process):
    """A worker: one or two threads of passes, one that observes and sweeps.

    Takes: urls — how it reaches those that users name. notices — those of the cloud that this worker has not read yet;
    superseded — how many of its passes a newer owner has ended.
    """

    def __init__(self, name: str, world: "World", urls: Urls) -> None:
        super().__init__(name, world)
        self.urls = urls
        self.limits = Limits(
            lease_s=5.0,
            slice_s=self.rng.choice((1e9, 0.3)),
            batch=self.rng.choice((1, 3, 50)),
            look_steady_s=20.0,
            stack_timeout_s=TIMEOUT_S,
        )
        self.notices: deque[ChangeNotice] = deque()
        own = Records(self.db, world.entropy, URL, world.stack_users(self.db))
        views: dict[str, Any] = {
            project: JoinedCloud(cast(Cloud, InterruptibleCloud(cloud)), own.of(project))
            for project, cloud in world.clouds.items()
        }
        if world.plugin_types:
            plugins = PluginClouds(self.db, world.plugin_types, views.__getitem__)
            views = {project: JoinedCloud(cloud, plugins.of(project)) for project, cloud in views.items()}
        now = ProcessClock(self.db.agreed_now, world.clock)
        self.engine = build_engine(self.db, views.__getitem__, now, world.entropy, self.limits, urls=urls)
        self.reconciler = self.engine.reconciler
        self.superseded = 0
        self._count_superseded()
        lost = self.reconciler.lost
        self._board = ShardBoard("shards", {"database": self.db, "lease_s": self.limits.lease_s, "lost": lost})
        self.actors = [Actor(f"{name}.pass{number}", self._pass) for number in range(self.rng.randint(1, 2))]
        self.actors.append(Actor(f"{name}.look", self._look))

    def _count_superseded(self) -> None:
        run = self.reconciler.run

        def count(lease: Lease) -> None:
            try:
                run(lease)
            except Superseded:
                self.superseded += 1
                raise

        self.reconciler.run = count  # type: ignore[method-assign]

    def wanted(self, *, due: bool) -> bool:
        return due or bool(self.notices)

    def _pass(self) -> None:
        try:
            due = list(self._board.iterjobs())[:5]
            if not due:
                return
            job = self.rng.choice(due)
            self._board.claim(job, self.name)
            run_pass(self.reconciler, job)
        except (Transient, JobFailure, UnclaimableJob):
            return

    def _look(self) -> None:
        for part in self._world.parts:
            part.looks(self)
        self._look_around()
        for part in self._world.parts:
            part.looked(self)

    def _look_around(self) -> None:
        try:
            if self.notices:
                self.engine.observer.notice([self.notices.popleft()])
            else:
                self.engine.observer.round()
                self.engine.observer.sweep()
                self.engine.snapshot_collector.round()
                if self._plain_db.is_checked():
                    self.engine.health.round()
        except Transient:
            return

    def beat(self) -> None:
        """The heartbeat: a transaction of its own, between two calls of the other threads."""
        if self.reconciler.leases and self._world.clock.time >= self.cut_off_until:
            with self._plain_db.write() as tx:
                leases.renew_all(tx, self.reconciler.leases, tx.now(), self.limits.lease_s)
        if self._world.clock.time >= self.cut_off_until:
            with self._plain_db.write() as tx:
                self.db.note_time(tx)
            self.reconciler.lost.acquit(self._plain_db, self.name, self.reconciler.leases)


class Api(Process):
    """An API process: its threads serve requests; a purge is one more."""

    def __init__(self, name: str, world: "World") -> None:
        super().__init__(name, world)
        self.requests: deque[Callable[[Api], object]] = deque()
        # No name is looked up: what is asked by URL in these worlds answers by itself.
        outbound = Outbound(resolve=lambda *_: ["8.8.8.8"])
        self.stack_service = StackService(
            self.db,
            world.entropy,
            Quotas(timeout_s=TIMEOUT_S),
            prerequisites=Prerequisites(None, makes_users=True),
            outbound=outbound,
        )
        self.actions = StackActions(self.db, TIMEOUT_S)
        self.snapshots = Snapshots(self.db, self.stack_service)
        self.marks = Marks(self.db)
        self.moving = StackTransfer(self.db, self.stack_service)
        self._scaling = Scaling(self.db, world.clock, Quotas().resources_max, TIMEOUT_S)
        self.signals = self.receiver()
        self.reports = MemberReports(self.db)
        self.actors = [Actor(f"{name}.{number}", self._serve) for number in range(2)]

    def receiver(self) -> Signals:
        """One of signals that come from the world itself, which must not wait for the threads of a process."""
        return Signals(self.db, self._scaling.signal, RolloutEngine(self.db).advance)

    def wanted(self, *, due: bool) -> bool:
        return bool(self.requests)

    def purge(self, older_than_s: float, events_max: int) -> None:
        """Ask for the removal of what was deleted so long ago."""
        self.requests.append(lambda _: self._purge(Rules(self._world.clock.time - older_than_s, events_max)))

    def _purge(self, rules: Rules) -> None:
        removed = purge(self.db, rules)
        self._world.note(f"purged {removed}")

    def _serve(self) -> None:
        if not self.requests:
            return
        try:
            self.requests.popleft()(self)
        except Rejected as error:
            self._world.note(f"refused: {error}")
        except Transient as error:
            self._world.note(f"not served: {error}")
