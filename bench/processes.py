"""Real worker processes on PostgreSQL: how fast one, two and four of them create stacks."""

import contextlib
import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

from sqlalchemy import func, select

from bench.cpu import cpu_s, sessions_cpu_s
from bench.databases import database_url, opened
from bench.figures import Figure
from bench.shapes import SHAPES
from homeostat.clock import AgreedClock, Entropy
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.composition.garbage import spare_the_collector
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

STACKS = 8
LOOK_S = 0.005
PATIENCE_S = 600.0
CONTEXT = multiprocessing.get_context("spawn")


def created_by_workers(n: int, workers: int, shape: str, database: str = "postgresql") -> list[Figure]:
    """Create n resources in several stacks, accepting them included."""
    with contextlib.ExitStack() as context:
        url = context.enter_context(database_url(database))
        db = context.enter_context(contextlib.closing(opened(url)))
        pids = context.enter_context(running_workers(url, workers))
        stack_service = StackService(db, Entropy(), Quotas())
        complete(db, [stack_service.create("bench", None, "warm", SHAPES[shape].request(100))])
        before, server_before = cpu_s(pids), sessions_cpu_s(db)
        started = time.perf_counter()
        ids = [stack_service.create("bench", None, f"s{i}", SHAPES[shape].request(n // STACKS)) for i in range(STACKS)]
        complete(db, ids)
        seconds = time.perf_counter() - started
        workers_s, server_s = cpu_s(pids) - before, sessions_cpu_s(db) - server_before
    name = f"create.{shape}.workers_{workers}"

    def figure(what: str, value: float, unit: str, about: str = "") -> Figure:
        return Figure(f"{name}.{what}", value, unit, n, database, about)

    return [
        figure("rate", n / seconds, "resources/s", f"{workers} worker processes, {STACKS} stacks"),
        figure("cpu", workers_s / n * 1000, "CPU ms/resource", "of the workers"),
        figure("server_cpu", server_s / n * 1000, "CPU ms/resource", "of the database server's sessions"),
        figure("by_cpu", 2 * n / (workers_s + server_s), "resources/s", "what two cores could do by these CPU times"),
    ]


@contextlib.contextmanager
def running_workers(url: str, count: int) -> Iterator[list[int]]:
    """Workers that begin with the block, all at once, and end with it; their process ids."""
    ready = CONTEXT.Barrier(count + 1)
    processes: list[BaseProcess] = [CONTEXT.Process(target=_work, args=(url, ready), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        ready.wait(timeout=PATIENCE_S)
        yield [process.pid or 0 for process in processes]
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _work(url: str, ready: "threading.Barrier") -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with contextlib.closing(Database(url, time.time)) as db:
        clock = AgreedClock(db.agreed_now)
        worker = Worker(db, SimulatedCloud(clock.now), clock, Entropy(), Limits())
        spare_the_collector()
        ready.wait()
        worker.start()
        stop.wait()
        worker.stop()


def complete(db: Database, ids: list[str]) -> None:
    """Wait until all are COMPLETE. Fails: RuntimeError when one is not, or it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    waiting = list(ids)
    while waiting:
        with db.read() as tx:
            row = stacks.get(tx, waiting[-1])
        if row is not None and row.status == "COMPLETE":
            waiting.pop()
            continue
        if row is None or row.status == "FAILED" or time.monotonic() > deadline:
            raise RuntimeError(f"stack {waiting[-1]} did not become COMPLETE: {row and row.reason}")
        time.sleep(LOOK_S)


def wait_for_rest(db: Database) -> None:
    """Wait until no stack is in progress. Fails: RuntimeError when one failed, or it takes too long."""
    table, deadline = schema.stack, time.monotonic() + PATIENCE_S
    counted = select(table.c.status, func.count()).where(table.c.deleted_at.is_(None)).group_by(table.c.status)
    while True:
        with db.read() as tx:
            counts = {str(status): count for status, count in tx.execute(counted).all()}
        if "FAILED" in counts or time.monotonic() > deadline:
            raise RuntimeError(f"the stacks did not come to rest: {counts}")
        if "IN_PROGRESS" not in counts:
            return
        time.sleep(0.1)  # seldom: asking costs the server, too
