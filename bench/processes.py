"""Real worker processes on PostgreSQL: how fast one, two and four of them create stacks."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

from sqlalchemy import text

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
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

STACKS = 8
LOOK_S = 0.005
PATIENCE_S = 600.0
CONTEXT = multiprocessing.get_context("spawn")
TICKS = os.sysconf("SC_CLK_TCK")


def created_by_workers(n: int, workers: int, shape: str, database: str = "postgresql") -> list[Figure]:
    """Create n resources in several stacks, accepting them included."""
    with contextlib.ExitStack() as context:
        url = context.enter_context(database_url(database))
        db = context.enter_context(contextlib.closing(opened(url)))
        processes = context.enter_context(running_workers(url, workers))
        stack_service = StackService(db, Entropy(), Quotas())
        complete(db, [stack_service.create("bench", None, "warm", SHAPES[shape].request(100))])
        before, server_before = cpu_s(processes), _server_cpu_s(db)
        started = time.perf_counter()
        ids = [stack_service.create("bench", None, f"s{i}", SHAPES[shape].request(n // STACKS)) for i in range(STACKS)]
        complete(db, ids)
        seconds = time.perf_counter() - started
        workers_s, server_s = cpu_s(processes) - before, _server_cpu_s(db) - server_before
    name = f"create.{shape}.workers_{workers}"

    def figure(what: str, value: float, unit: str, about: str = "") -> Figure:
        return Figure(f"{name}.{what}", value, unit, n, database, about)

    return [
        figure("rate", n / seconds, "resources/s", f"{workers} worker processes, {STACKS} stacks"),
        figure("cpu", workers_s / n * 1000, "CPU ms/resource", "of the workers"),
        figure("server_cpu", server_s / n * 1000, "CPU ms/resource", "of the database server's sessions"),
        figure("by_cpu", 2 * n / (workers_s + server_s), "resources/s", "what two cores could do by these CPU times"),
    ]


def idle(n: int, database: str, seconds: float) -> list[Figure]:
    """A worker beside quiet stacks of three resources each that looks at them from time to time, n resources in all."""
    with contextlib.ExitStack() as context:
        url = context.enter_context(database_url(database))
        db = context.enter_context(contextlib.closing(opened(url)))
        processes = context.enter_context(running_workers(url, 1))
        stack_service = StackService(db, Entropy(), Quotas())
        count = max(1, n // 3)
        complete(
            db, [stack_service.create("bench", None, f"s{i}", SHAPES["independent"].request(3)) for i in range(count)]
        )
        time.sleep(Limits().look_steady_s)  # until all of them were looked at once
        before = cpu_s(processes)
        time.sleep(seconds)
        share = (cpu_s(processes) - before) / seconds
    return [Figure("idle.worker.cpu", share * 100, "% of a core", n, database, f"{count} stacks, {seconds:.0f} s")]


@contextlib.contextmanager
def running_workers(url: str, count: int) -> Iterator[list[BaseProcess]]:
    """Workers that begin with the block, all at once, and end with it."""
    ready = CONTEXT.Barrier(count + 1)
    processes: list[BaseProcess] = [CONTEXT.Process(target=_work, args=(url, ready), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        ready.wait(timeout=PATIENCE_S)
        yield processes
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


def cpu_s(processes: list[BaseProcess]) -> float:
    """CPU time of running processes so far."""
    return sum(cpu_s_of(process.pid) for process in processes)


def _server_cpu_s(db: Database) -> float:
    """CPU time of the server's sessions so far; they live as long as the connections of the workers."""
    with db.read() as tx:
        pids = tx.execute(text("SELECT pid FROM pg_stat_activity WHERE application_name = 'homeostat'")).scalars()
        return sum(map(cpu_s_of, pids))


def whole_server_cpu_s(db: Database) -> float:
    """CPU time of the database server so far, also of sessions that have ended; 0 for SQLite."""
    if db.is_sqlite:
        return 0.0
    with db.read() as tx:
        mine = tx.execute(text("SELECT pg_backend_pid()")).scalar_one()
        pids = list(tx.execute(text("SELECT pid FROM pg_stat_activity")).scalars())
        server = _stat(mine)[1]
        live_s = 0.0
        for pid in pids:
            with contextlib.suppress(FileNotFoundError):  # it has ended just now
                live_s += cpu_s_of(pid)
    ended = _stat(server)[13:15]
    return live_s + sum(map(int, ended)) / TICKS


def cpu_s_of(pid: int | None) -> float:
    """CPU time of a process so far."""
    return sum(map(int, _stat(pid)[11:13])) / TICKS


def _stat(pid: object) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
