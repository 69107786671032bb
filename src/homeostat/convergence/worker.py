"""One worker process: conductor, observers and heartbeat. Any number of them may run on one database (CV5)."""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection
from taskflow.exceptions import JobFailure
from taskflow.jobs import backends

from homeostat.clock import Clock, Entropy
from homeostat.clouds.port import Cloud, Clouds
from homeostat.convergence.executor import StepExecutor
from homeostat.convergence.jobs.conductor import ShardConductor
from homeostat.convergence.jobs.lost_shards import LostShards
from homeostat.convergence.nested_stacks import NestedStacks
from homeostat.convergence.observer import IDLE_S, SWEEP_S, CloudNotices, Observer
from homeostat.convergence.periodic import PeriodicTask, PeriodicTasks
from homeostat.convergence.reconciler import Limits, Reconciler
from homeostat.convergence.snapshot_gc import SnapshotCollector
from homeostat.model.errors import Transient
from homeostat.notifications.delivery import IDLE_S as TELL_S
from homeostat.notifications.delivery import SINKS_MAX, Deliverer
from homeostat.notifications.sinks import Sinks
from homeostat.store.database import Database
from homeostat.store.operation import periodic, workers
from homeostat.store.shards import shards

LOG = logging.getLogger(__name__)
SQL_BOARD = "homeostat"
REDIS_BOARD = "homeostat-redis"
"""Names of the job boards in the register of plug-ins."""
TIDYING_S = 1.0
TIDYING_END_S = 5.0
"""So long an end waits for what is being tidied up, which may be with a service that does not answer."""


def fetch_board(db: Database, lease_s: float, redis_url: str = "", lost: LostShards | None = None) -> Any:
    """The job board, through TaskFlow's register of plug-ins."""
    name = REDIS_BOARD if redis_url else SQL_BOARD
    conf = {"board": name, "database": db, "lease_s": lease_s, "url": redis_url, "lost": lost}
    return backends.fetch(name, conf, namespace="taskflow.jobboards")


class Worker:
    """Starts and stops the threads of a worker.

    Takes: cloud — tells of changes, and serves every project unless `clouds` says what each sees; passes_max — passes
    side by side; redis_url — where the job board is, empty for the board that is a view of the database; sinks — kinds
    of event sinks, None for those of the service; tidying — what is to be done again and again beside all that.
    """

    def __init__(
        self,
        db: Database,
        cloud: Cloud,
        clock: Clock,
        entropy: Entropy,
        limits: Limits,
        passes_max: int = 4,
        redis_url: str = "",
        clouds: Clouds | None = None,
        sinks: Sinks | None = None,
        tidying: Sequence[Callable[[], int]] = (),
    ) -> None:
        self._host = socket.gethostname()
        self.name = f"{self._host}:{os.getpid()}:{entropy.read(3).hex()}"
        self._db = db
        self._limits = limits
        self._started_at = clock.now()
        self._board_name = "redis" if redis_url else "sql"
        self._pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="cloud-call")
        children = NestedStacks(db, clock, entropy, limits.stack_timeout_s, limits.depth_max, limits.resources_max)
        clouds = clouds or (lambda _project: cloud)
        performer = StepExecutor(clouds, children, clock, entropy, self._pool)
        passes = self._passes = Reconciler(db, clouds, performer, children, clock, entropy.keys(), limits)
        self._board = fetch_board(db, limits.lease_s, redis_url, passes.lost)
        self._conductor = ShardConductor(self.name, self._board, passes, passes_max, lambda: self._chores.nudge())
        observer = Observer(db, clouds, clock, limits.look_steady_s, limits.look_busy_s, self._conductor.nudge)
        self._cloud_notices = CloudNotices(observer, cloud)
        self._listening = contextlib.ExitStack()
        self._telling = ThreadPoolExecutor(max_workers=SINKS_MAX, thread_name_prefix="telling")
        deliverer = Deliverer(db, Sinks(clouds) if sinks is None else sinks, clock, self._telling)
        self._chores = PeriodicTasks(
            db,
            [
                PeriodicTask(periodic.LOOK, observer.round, IDLE_S),
                PeriodicTask(periodic.LATE, observer.sweep, SWEEP_S),
                PeriodicTask(periodic.DISPOSE, SnapshotCollector(db, clouds).round, SWEEP_S),
                PeriodicTask(periodic.TELL, deliverer.round, TELL_S),
            ],
        )
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._conduct, name="conductor", daemon=True),
            threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True),
            *(threading.Thread(target=self._tidy, args=(each,), name="tidying", daemon=True) for each in tidying),
        ]

    def start(self) -> None:
        """Fails: Transient when the job board does not answer."""
        try:
            self._conductor.connect()
        except JobFailure as error:
            raise Transient(f"the job board does not answer: {error.__cause__ or error}") from error
        self._listening.enter_context(self._db.notices.listening(self._something_is_due))
        for thread in self._threads:
            thread.start()
        self._chores.start()
        self._cloud_notices.start()
        LOG.info("worker %s started", self.name)

    def stop(self) -> None:
        """Finish the passes that run, begin none, and give all shards back."""
        self._conductor.stop()
        self._chores.stop()
        self._cloud_notices.stop()
        self._threads[0].join()
        self._conductor.close()
        self._stop.set()
        for thread in self._threads[1:]:
            thread.join(timeout=TIDYING_END_S)
        self._listening.close()
        self._pool.shutdown()
        self._telling.shutdown(wait=False, cancel_futures=True)
        LOG.info("worker %s stopped", self.name)

    def _something_is_due(self) -> None:
        self._conductor.nudge()
        self._chores.nudge()

    def _conduct(self) -> None:
        while not self._stop.is_set():
            try:
                self._conductor.run()
                return
            except Exception:
                LOG.exception("the conductor broke; it starts again")
                self._stop.wait(1.0)

    def _tidy(self, tidy: Callable[[], int]) -> None:
        while not self._stop.wait(TIDYING_S):
            try:
                tidy()
            except Exception:
                LOG.exception("tidying up failed; it is tried again")

    def _heartbeat(self) -> None:
        """Keep the leases of passes that run. One that ended without giving its shard back is not kept.

        A pass that begins between two beats is kept by the next one, with half of its lease left.
        """
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            pause_s = self._limits.lease_s / (4 if self._passes.leases else 2)
            try:
                self._beat()
            except Exception:
                LOG.exception("could not renew the leases of %s", self.name)
        try:
            with self._db.write() as tx:
                workers.leave(tx, self.name)
        except Transient as error:
            LOG.warning("%s stays in the register of workers: %s", self.name, error)

    def _beat(self) -> None:
        leases = self._passes.leases
        if leases:
            with self._db.write() as tx:
                self._end_frozen(tx)
                shards.renew_all(tx, leases, self._db.now_of(tx), self._limits.lease_s)
        self._passes.lost.acquit(self._db, self.name, leases)
        with self._db.write() as tx:
            if not leases:
                self._end_frozen(tx)
            now = self._db.now_of(tx)
            me = workers.Worker(
                self.name, self._host, os.getpid(), workers.VERSION, self._board_name, self._started_at, now
            )
            workers.report(self._db, tx, me, self._limits.forget_workers_s)

    def _end_frozen(self, tx: Connection) -> None:
        ended = self._db.end_frozen(tx, self._limits.lease_s)
        if ended:
            LOG.warning("ended %d database sessions of workers that are frozen", ended)
