"""One worker process: conductor, observer, periodic tasks and heartbeat.

Any number of workers may run on one database (CV5).
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from taskflow.exceptions import JobFailure
from taskflow.jobs import backends

from homeostat.clock import Clock, Entropy
from homeostat.clouds.port import Cloud, Clouds
from homeostat.convergence.engine import Engine, Threads, Urls, build_engine
from homeostat.convergence.jobs.conductor import ShardConductor
from homeostat.convergence.limits import Limits
from homeostat.convergence.observer import IDLE_S, SWEEP_S, CloudNotices
from homeostat.convergence.ownership import LostShards
from homeostat.convergence.threads.fair_turns import FairTurns
from homeostat.convergence.threads.periodic import PeriodicTask, PeriodicTasks
from homeostat.model.errors import Outage, Transient, in_detail
from homeostat.notifications.delivery import IDLE_S as DELIVERY_IDLE_S
from homeostat.notifications.delivery import SINKS_MAX, Deliverer
from homeostat.notifications.sinks import Sinks
from homeostat.store.database import Database, Transaction
from homeostat.store.operation import periodic, workers
from homeostat.store.shards import leases

LOG = logging.getLogger(__name__)
SQL_BOARD = "homeostat"
REDIS_BOARD = "homeostat-redis"
"""Names of the job boards among TaskFlow's plug-ins (entry points, see `pyproject.toml`)."""
ASKED_MAX = 8
"""Concurrent requests to URLs that approve rollouts; also the concurrent requests to webhooks of recoveries."""
ASKED_OF_PROJECT_MAX = 2
"""Limit of either for one project."""
PROBED_MAX = 64
"""Concurrent requests to URLs of members."""
CLEANUP_S = 1.0
"""Pause between two rounds of tidying up."""
CLEANUP_END_S = 5.0
"""Time that stopping waits for a round of tidying up, which may hang in a call of a service."""


def fetch_board(db: Database, lease_s: float, redis_url: str = "", lost: LostShards | None = None) -> Any:
    """Return the job board by TaskFlow's plug-ins: on Redis if there is a URL, else on the database."""
    name = REDIS_BOARD if redis_url else SQL_BOARD
    conf = {"board": name, "database": db, "lease_s": lease_s, "url": redis_url, "lost": lost}
    return backends.fetch(name, conf, namespace="taskflow.jobboards")


def _tasks(engine: Engine, deliverer: Deliverer) -> list[PeriodicTask]:
    return [
        PeriodicTask(periodic.LOOKS, engine.observer.round, IDLE_S),
        PeriodicTask(periodic.ORPHANS, engine.observer.sweep, SWEEP_S),
        PeriodicTask(periodic.SNAPSHOTS, engine.snapshot_collector.round, SWEEP_S),
        PeriodicTask(periodic.EVENTS, deliverer.round, DELIVERY_IDLE_S),
        PeriodicTask(periodic.SIGNALS, engine.scaling.round, SWEEP_S),
        PeriodicTask(periodic.ROLLOUTS, engine.rollouts.round, 0.0),
        PeriodicTask(periodic.HEALTH, engine.health.round, IDLE_S),
        PeriodicTask(periodic.VANTAGE, engine.vantage.round, IDLE_S),
    ]


class Worker:
    """The threads of a worker, which run from `start` to `stop`."""

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
        urls: Urls = Urls(),
    ) -> None:
        """Put the parts of a worker together.

        Args:
            cloud: Cloud whose change notices are followed. It serves every project unless `clouds` is given.
            clock: Clock of decisions and deadlines.
            entropy: Randomness for row keys, ids and generated values.
            passes_max: Maximum of concurrent passes.
            redis_url: URL of the job board; "" for the board that is a view of the database.
            sinks: Kinds of event sinks; None for the built-in ones.
            tidying: Functions called about once a second, each in its own thread.
            urls: Access to URLs named by users.
        """
        self._host = socket.gethostname()
        self.name = f"{self._host}:{os.getpid()}:{entropy.read(3).hex()}"
        self._db = db
        self._limits = limits
        self._started_at = clock.now()
        self._board_name = "redis" if redis_url else "sql"
        self._pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="cloud-call")
        clouds = clouds or (lambda _project: cloud)
        self._asking = ThreadPoolExecutor(max_workers=ASKED_MAX, thread_name_prefix="asking")
        self._calling = ThreadPoolExecutor(max_workers=ASKED_MAX, thread_name_prefix="calling")
        self._probing = ThreadPoolExecutor(max_workers=PROBED_MAX, thread_name_prefix="probing")
        asking, calling = (FairTurns(pool, ASKED_MAX, ASKED_OF_PROJECT_MAX) for pool in (self._asking, self._calling))
        threads = Threads(self._pool, asking, calling, self._probing)
        engine = build_engine(*(db, clouds, clock, entropy, limits, threads), nudge=self._nudge, urls=urls)
        self._reconciler = engine.reconciler
        self._board = fetch_board(db, limits.lease_s, redis_url, engine.reconciler.lost)
        self._conductor = ShardConductor(
            self.name, self._board, engine.reconciler, passes_max, lambda: self._periodic_tasks.nudge()
        )
        self._cloud_notices = CloudNotices(engine.observer, cloud)
        self._notices = contextlib.ExitStack()
        self._delivery_pool = ThreadPoolExecutor(max_workers=SINKS_MAX, thread_name_prefix="delivery")
        deliverer = Deliverer(db, Sinks(clouds) if sinks is None else sinks, clock, self._delivery_pool)
        self._periodic_tasks = PeriodicTasks(db, _tasks(engine, deliverer), urls.vantage)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._conduct, name="conductor", daemon=True),
            threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True),
            *(threading.Thread(target=self._tidy, args=(tidy,), name="tidying", daemon=True) for tidy in tidying),
        ]

    def _nudge(self) -> None:
        self._conductor.nudge()

    def start(self) -> None:
        """Start all threads.

        Raises:
            Outage: The job board does not answer.
        """
        try:
            self._conductor.connect()
        except JobFailure as error:
            raise Outage("the job board does not answer", in_detail(error.__cause__ or error)) from error
        self._notices.enter_context(self._db.notices.listening(self._something_is_due))
        for thread in self._threads:
            thread.start()
        self._periodic_tasks.start()
        self._cloud_notices.start()
        LOG.info("worker %s started", self.name)

    def stop(self) -> None:
        """Finish the current passes, begin no further pass, and give all shards back."""
        self._conductor.stop()
        self._periodic_tasks.stop()
        self._cloud_notices.stop()
        # The conductor's thread ends with the last pass. Only then may the heartbeat stop (`_stop`), which renews the
        # leases of passes until they end.
        self._threads[0].join()
        self._conductor.close()
        self._stop.set()
        for thread in self._threads[1:]:
            thread.join(timeout=CLEANUP_END_S)
        self._notices.close()
        self._pool.shutdown()
        self._delivery_pool.shutdown(wait=False, cancel_futures=True)
        self._asking.shutdown(wait=False, cancel_futures=True)
        self._calling.shutdown(wait=False, cancel_futures=True)
        self._probing.shutdown(wait=False, cancel_futures=True)
        LOG.info("worker %s stopped", self.name)

    def _something_is_due(self) -> None:
        self._conductor.nudge()
        self._periodic_tasks.nudge()

    def _conduct(self) -> None:
        while not self._stop.is_set():
            try:
                self._conductor.run()
                return
            except Exception:
                LOG.exception("the conductor broke; it starts again")
                self._stop.wait(1.0)

    def _tidy(self, tidy: Callable[[], int]) -> None:
        while not self._stop.wait(CLEANUP_S):
            try:
                tidy()
            except Exception:
                LOG.exception("tidying up failed; it is tried again")

    def _heartbeat(self) -> None:
        """Renew the leases of the current passes, and report this worker as alive.

        If a pass has ended without giving its shard back, the lease expires.
        """
        # An idle worker beats twice a lease: a pass that begins between two beats has half of its lease left at the
        # next beat. With passes it beats four times a lease, so that a late beat does no harm.
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            pause_s = self._limits.lease_s / (4 if self._reconciler.leases else 2)
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
        # Leases are urgent, so they have the first transaction. `_end_frozen` precedes the renewal, since a frozen
        # session may hold locks on the rows to be renewed.
        held = self._reconciler.leases
        if held:
            with self._db.write() as tx:
                self._end_frozen(tx)
                leases.renew_all(tx, held, tx.now(), self._limits.lease_s)
        self._reconciler.lost.acquit(self._db, self.name, held)
        with self._db.write() as tx:
            if not held:
                self._end_frozen(tx)
            self._db.note_time(tx)
            now = tx.now()
            me = workers.Worker(
                self.name, self._host, os.getpid(), workers.VERSION, self._board_name, self._started_at, now
            )
            workers.report(tx, me, self._limits.forget_workers_s)

    def _end_frozen(self, tx: Transaction) -> None:
        """End database sessions of workers that froze in a transaction, whose locks would block shards."""
        ended = tx.end_frozen_sessions(self._limits.lease_s)
        if ended:
            LOG.warning("ended %d database sessions of workers that are frozen", ended)
