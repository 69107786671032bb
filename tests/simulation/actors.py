"""Workers that can be stopped at every store and cloud call: killed there, or frozen and thawed much later."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import greenlet
from sqlalchemy import Connection

from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.children import Children
from homeostat.convergence.clock import Entropy
from homeostat.convergence.observing import Observer
from homeostat.convergence.pass_ import Limits, Passes
from homeostat.convergence.performing import Performer
from homeostat.model.errors import Superseded, Transient
from homeostat.store import shards
from homeostat.store.database import Database


class Killed(BaseException):
    """kill -9: unwinds the worker's stack; nothing of it may be caught on the way."""


class VirtualClock:
    """Time that moves only when the world says so."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def pause() -> None:
    """A point at which a worker may be killed or frozen: gives control back to the world."""
    current = greenlet.getcurrent()
    if current.parent is not None:
        current.parent.switch()


class Interruptible:
    """The database as one worker sees it: it may die before a transaction begins, before its commit, and after it."""

    def __init__(self, db: Database, dies_inside: Callable[[], bool]) -> None:
        self._db = db
        self._dies_inside = dies_inside

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        pause()
        with self._db.read() as tx:
            yield tx

    @contextmanager
    def write(self) -> Iterator[Connection]:
        pause()
        with self._db.write() as tx:
            yield tx
            if self._dies_inside():
                raise Killed
        pause()


class InterruptibleCloud:
    """The cloud as one worker sees it: it may die or freeze before a call is sent, and after it was carried out."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self._cloud = cloud
        self.name = cloud.name
        self.kinds = cloud.kinds

    @property
    def listing_lag_s(self) -> float:
        return self._cloud.listing_lag_s

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cloud, name)

        def call(*arguments: Any) -> Any:
            pause()
            answer = method(*arguments)
            pause()
            return answer

        return call


class SimulatedWorker:
    """One worker process: a thread of passes and observation rounds that the world moves step by step."""

    def __init__(
        self, name: str, db: Database, cloud: SimulatedCloud, clock: VirtualClock, entropy: Entropy, rng: random.Random
    ) -> None:
        self.name = name
        self.limits = Limits(lease_s=5.0, slice_s=1e9, batch=rng.choice((1, 3, 50)), look_steady_s=20.0)
        self.deadly = 0.0
        self.frozen_until = 0.0
        self.passes_run = 0
        self.superseded = 0
        database: Any = Interruptible(db, lambda: rng.random() < self.deadly)
        seen_cloud: Any = InterruptibleCloud(cloud)
        children = Children(database, clock, entropy, 3600.0)
        performer = Performer(lambda _project: seen_cloud, children, clock, entropy)
        self._passes = Passes(
            database, lambda _project: seen_cloud, performer, children, clock, entropy.keys(), self.limits
        )
        self._observer = Observer(
            database, lambda _project: seen_cloud, clock, self.limits.look_steady_s, self.limits.look_busy_s
        )
        self._db = db
        self._clock = clock
        self._rng = rng
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
                pause()
                self._work() if self._rng.random() < 0.8 else self._look()
        except Killed:
            return

    def _work(self) -> None:
        with self._db.read() as tx:
            due = shards.due(tx, self._clock.now(), 5)
        if not due:
            return
        chosen = self._rng.choice(due)
        with self._db.write() as tx:
            lease = shards.claim(tx, chosen.stack_id, chosen.number, self.name, self._clock.now(), self.limits.lease_s)
        if lease is None:
            return
        try:
            self._passes.run(lease)
            self.passes_run += 1
        except (Superseded, Transient):
            self.superseded += 1
            with self._db.write() as tx:
                shards.release(tx, lease, lease.wakes, self._clock.now() + 1.0)

    def _look(self) -> None:
        try:
            self._observer.round()
            self._observer.sweep()
        except Transient:
            return
