"""The whole path below HTTP in one process, and how an operation on it is measured."""

import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from taskflow.exceptions import UnclaimableJob

from bench.databases import Statements, kind_of, opened, size_of
from bench.figures import Measured, queued_s
from homeostat.clock import Entropy, SystemClock
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.composition.garbage import spare_the_collector
from homeostat.convergence.engine import Threads, build_engine
from homeostat.convergence.jobs.board import ShardBoard
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.stacks import stacks


class Engine:
    """API services, board, passes and a simulated cloud. One pass at a time."""

    def __init__(self, url: str, latency_s: float = 0.0) -> None:
        spare_the_collector()
        clock, entropy = SystemClock(), Entropy()
        self.db = opened(url)
        self.statements = Statements(self.db)
        cloud = SimulatedCloud(clock.now)
        limits = Limits(lease_s=60.0)
        self._pool = ThreadPoolExecutor(4)
        engine = build_engine(self.db, lambda _project: cloud, clock, entropy, limits, Threads(self._pool))
        self.reconciler = engine.reconciler
        self.board = ShardBoard("bench", {"database": self.db, "lease_s": limits.lease_s})
        self.stack_service = StackService(self.db, entropy, Quotas())

    def settle(self, stack_id: str) -> None:
        """Run passes until the stack is at rest. Fails: RuntimeError unless it is COMPLETE then."""
        while True:
            for job in self.board.iterjobs():
                try:
                    self.board.claim(job, "bench")
                except UnclaimableJob:  # it was deleted with its parent since it was listed
                    continue
                run_pass(self.reconciler, job)
            with self.db.read() as tx:
                row = stacks.get(tx, stack_id)
            if row is not None and row.status != "IN_PROGRESS":
                if row.status != "COMPLETE":
                    raise RuntimeError(f"stack {stack_id} ended {row.status}: {row.reason}")
                return

    def measure(self, operation: str, shape: str, n: int, act: Callable[[], None]) -> Measured:
        sent = self.statements.count
        wall, cpu, queued = time.perf_counter(), time.process_time(), queued_s()
        act()
        return Measured(
            operation,
            shape,
            n,
            kind_of(self.db),
            time.perf_counter() - wall,
            time.process_time() - cpu,
            queued_s() - queued,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            self.statements.count - sent,
            size_of(self.db),
        )

    def close(self) -> None:
        self._pool.shutdown()
        self.db.close()
