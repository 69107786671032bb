"""A world of real processes: workers that die and are replaced, users who change their minds, and what must hold."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

from sqlalchemy import select, text

from homeostat.clock import Entropy
from homeostat.model.status import Status
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.operation import workers
from homeostat.store.operation.workers import Worker
from tests.real import cloud_server
from tests.real.cloud_server import SharedCloud
from tests.real.processes import CONTEXT
from tests.real.templates import generation
from tests.real.worker import Orders, run_worker
from tests.simulation.invariants import check_events, check_rest
from tests.waiting import until

PROJECT = "p"


class RealWorld:
    """Takes: directory — for logs and sockets. Workers run on the database, cloud and job board of this world."""

    def __init__(self, directory: Path, database_url: str, cloud_address: str, redis_url: str = "") -> None:
        self.directory = directory
        self.db = Database(database_url, time.time)
        self.db.migrate()
        self.cloud = SharedCloud(cloud_address)
        self.orders = Orders(database_url, cloud_address, directory / "workers.log", redis_url=redis_url)
        self.workers: list[BaseProcess] = []
        self.retained: set[str] = set()
        self.let_go: set[str] = set()
        self.mended: set[str] = set()
        self.went: set[tuple[str, str]] = set()

    # -- workers -----------------------------------------------------------------------------------------------------

    def start_worker(self, **orders: Any) -> BaseProcess:
        worker = CONTEXT.Process(target=run_worker, args=(replace(self.orders, **orders),))
        worker.start()
        self.workers.append(worker)
        return worker

    def kill(self, worker: BaseProcess) -> None:
        """kill -9."""
        worker.kill()
        worker.join()
        self.workers.remove(worker)

    def working(self) -> list[BaseProcess]:
        """Living workers that own a shard now."""
        return [worker for worker in self.workers if self.owned(worker)]

    def released(self, worker: BaseProcess) -> bool:
        return not self.owned(worker)

    def owned(self, worker: BaseProcess) -> list[Any]:
        """Shards of which the worker holds a lease that has not run out."""
        table = schema.shard
        with self.db.read() as tx:
            now = tx.now()
            mine = table.c.owner.like(f"%:{worker.pid}:%")
            return list(tx.execute(select(table).where(mine, table.c.lease_until > now)))

    def registered(self) -> list[Worker]:
        """Workers in the register that are not known to be dead."""
        with self.db.read() as tx:
            now = tx.now()
            return [each for each in workers.listed(tx) if each.is_alive(now)]

    def get_under_way(self, rng: random.Random) -> list[BaseProcess]:
        """Wait until the cloud has got some dozens of requests more, and a worker is busy. Returns the busy workers, or
        all when everything is done before."""
        goal = self.cloud.acts + rng.randrange(80)
        self.wait_for(lambda: self.resting() or (self.cloud.acts >= goal and self.working()), "work to be under way")
        return self.working() or self.workers

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        """Fails: AssertionError with the state of the world."""
        try:
            until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.trouble()}") from None

    def shards(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.shard)))

    def close(self) -> None:
        for worker in list(self.workers):
            if worker.is_alive():
                os.kill(cast(int, worker.pid), signal.SIGCONT)
            self.kill(worker)
        self.db.close()

    # -- looking -----------------------------------------------------------------------------------------------------

    def resting(self) -> bool:
        """No stack is in progress and no shard wants a pass."""
        with self.db.read() as tx:
            busy = tx.execute(select(schema.stack.c.id).where(schema.stack.c.status == Status.IN_PROGRESS)).first()
            due = tx.execute(select(schema.shard.c.number).where(schema.shard.c.wake_at.is_not(None))).first()
        return busy is None and due is None

    def check(self) -> None:
        """Everything comes to rest as it should be, and no user has ever seen that workers died (CV5, CV18)."""
        self.wait_for(self.resting, "rest")
        self.wait_for(lambda: set(self.cloud.things()) <= {row.handle for row in self.rows()}, "the end of late things")
        assert not self._failures(), f"users saw a failure: {self._failures()}\n{self.trouble()}"
        assert not self.cloud.doubled, f"created twice: {self.cloud.doubled}"
        check_rest(self)
        check_events(self)

    def trouble(self) -> str:
        """What is not at rest, and the end of their log."""
        table = schema.shard
        with self.db.read() as tx:
            shards = list(tx.execute(select(table).where(table.c.wake_at.is_not(None))))
            busy = [row for row in self.rows() if row.status != Status.COMPLETE]
        lines = [f"stack {each.name} {each.action} {each.status}: {each.reason}" for each in self.all_stacks()]
        lines += [f"shard {each}" for each in shards]
        lines += self._sessions()
        lines += [f"{row.name} {row.action} {row.status} {row.reason} due {row.due_at}" for row in busy[:20]]
        log = self.orders.log.read_text().splitlines() if self.orders.log.exists() else []
        return "\n".join([f"now {time.time()}", *lines, *log[-60:]])

    def _sessions(self) -> list[str]:
        """Sessions of PostgreSQL that are in a transaction."""
        if self.db.is_sqlite:
            return []
        query = (
            "SELECT pid, state, wait_event, pg_blocking_pids(pid), xact_start, left(query, 90) FROM pg_stat_activity"
        )
        with self.db.read() as tx:
            return [f"session {tuple(row)}" for row in tx.execute(text(f"{query} WHERE xact_start IS NOT NULL"))]

    def _failures(self) -> list[Any]:
        table = schema.event
        with self.db.read() as tx:
            failed = select(table.c.name, table.c.action, table.c.reason).where(table.c.status == Status.FAILED)
            return list(tx.execute(failed))

    def things(self) -> dict[str, dict[str, Any]]:
        return self.cloud.things()

    def copies(self) -> list[dict[str, Any]]:
        return self.cloud.all_snapshots()

    def rows(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.resource)))

    def all_stacks(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.stack)))


class Users:
    """They keep some stacks of 300 things, or `scale` times that, and change or replace one whenever asked to act."""

    def __init__(self, world: RealWorld, rng: random.Random, scale: int = 1) -> None:
        self._stack_service = StackService(world.db, Entropy(), Quotas())
        self._rng = rng
        self._scale = scale
        self._generations: dict[str, tuple[str, int]] = {}
        self._born = 0

    def create(self) -> str:
        name = f"stack{self._born}"
        self._born += 1
        stack_id = self._stack_service.create(PROJECT, None, name, StackRequest(generation(name, 0, self._scale)))
        self._generations[stack_id] = (name, 0)
        return stack_id

    def update(self, stack_id: str) -> None:
        name, number = self._generations[stack_id]
        self._stack_service.update(stack_id, StackRequest(generation(name, number + 1, self._scale)))
        self._generations[stack_id] = (name, number + 1)

    def delete(self, stack_id: str) -> None:
        self._stack_service.delete(stack_id)
        del self._generations[stack_id]

    def act(self) -> None:
        """Update one stack; sometimes delete it, and create another one."""
        stack_id = self._rng.choice(sorted(self._generations))
        if self._rng.random() < 0.7:
            self.update(stack_id)
        else:
            self.delete(stack_id)
            self.create()


@contextlib.contextmanager
def world_on(database_url: str, directory: Path, redis_url: str = "") -> Iterator[RealWorld]:
    with (
        cloud_server.serving(directory) as address,
        contextlib.closing(RealWorld(directory, database_url, address, redis_url)) as world,
    ):
        yield world
