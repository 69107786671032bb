"""Create, no-op update, one-change update and delete of N resources, independent or in a chain."""

import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeostat.api.intake import Intake, Intent, Quotas
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.board import ShardBoard
from homeostat.convergence.children import Children
from homeostat.convergence.clock import Entropy, SystemClock
from homeostat.convergence.conductor import run_pass
from homeostat.convergence.pass_ import Limits, Passes
from homeostat.convergence.performing import Performer
from homeostat.convergence.worker import spare_the_collector
from homeostat.store import stacks
from homeostat.store.database import Database, sqlite_url

Template = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """seconds — wall clock; cpu_s — of this process; peak_mib — high water mark of its memory so far."""

    operation: str
    shape: str
    n: int
    seconds: float
    cpu_s: float
    peak_mib: float


def independent(n: int, changed: str = "") -> Template:
    resources = {f"r{i}": {"type": "OS::Heat::TestResource", "properties": {"value": "v"}} for i in range(n)}
    return _template(resources, changed)


def chain(n: int, changed: str = "") -> Template:
    resources: Template = {"r0": {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}}
    for i in range(1, n):
        value = {"get_attr": [f"r{i - 1}", "output"]}
        resources[f"r{i}"] = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
    return _template(resources, changed)


def clouded(n: int, changed: str = "") -> Template:
    """Independent things of a cloud: their intents are stored before the cloud hears of them."""
    resources = {f"r{i}": {"type": "OS::Cinder::Volume", "properties": {"size": 1}} for i in range(n)}
    return _template(resources, changed)


def _template(resources: Template, changed: str) -> Template:
    if changed:
        name = f"r{len(resources) - 1}"
        resources[name] = {"type": "OS::Heat::TestResource", "properties": {"value": changed}}
    return {"heat_template_version": "2018-08-31", "resources": resources}


SHAPES: dict[str, Callable[..., Template]] = {"independent": independent, "chain": chain, "clouded": clouded}


class Engine:
    """The whole path below HTTP, in this process: intake, board, passes, simulated cloud."""

    def __init__(self, url: str) -> None:
        spare_the_collector()
        clock, entropy = SystemClock(), Entropy()
        self.db = Database(url, clock.now)
        self.db.migrate()
        cloud = SimulatedCloud(clock.now)
        limits = Limits(lease_s=60.0)
        children = Children(self.db, clock, entropy, 3600.0)
        self._pool = ThreadPoolExecutor(4)
        performer = Performer(lambda _project: cloud, children, clock, entropy, self._pool)
        self.passes = Passes(self.db, lambda _project: cloud, performer, children, clock, entropy.keys(), limits)
        self.board = ShardBoard("bench", {"database": self.db, "lease_s": limits.lease_s})
        self.intake = Intake(self.db, entropy, Quotas())

    def settle(self, stack_id: str) -> str:
        """Run passes until the stack is at rest. Gives its status."""
        while True:
            for job in self.board.iterjobs():
                self.board.claim(job, "bench")
                run_pass(self.passes, job)
            with self.db.read() as tx:
                row = stacks.get(tx, stack_id)
            if row is not None and row.status != "IN_PROGRESS":
                return str(row.status)

    def close(self) -> None:
        self._pool.shutdown()
        self.db.close()


def measure(operation: str, shape: str, n: int, act: Callable[[], None]) -> Figure:
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return Figure(
        operation,
        shape,
        n,
        time.perf_counter() - wall,
        time.process_time() - cpu,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def lifecycle(shape: str, n: int) -> list[Figure]:
    """The four operations on one stack of n resources, on an SQLite database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(sqlite_url(Path(folder) / "bench.db"))
        try:
            return _lifecycle(engine, shape, n)
        finally:
            engine.close()


def _lifecycle(engine: Engine, shape: str, n: int) -> list[Figure]:
    grow = SHAPES[shape]
    ids: list[str] = []

    def settle() -> None:
        status = engine.settle(ids[0])
        if status != "COMPLETE":
            raise RuntimeError(f"the stack of {n} {shape} resources ended {status}")

    def create() -> None:
        ids.append(engine.intake.create("bench", None, "bench", Intent(grow(n))))
        settle()

    def no_op() -> None:
        engine.intake.update(ids[0], Intent(grow(n)))
        settle()

    def one_change() -> None:
        engine.intake.update(ids[0], Intent(grow(n, "changed")))
        settle()

    def delete() -> None:
        engine.intake.delete(ids[0])
        settle()

    acts = {"create": create, "no_op_update": no_op, "one_change_update": one_change, "delete": delete}
    return [measure(operation, shape, n, act) for operation, act in acts.items()]
