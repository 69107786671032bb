"""The whole path below HTTP in one process, and how an operation on it is measured."""

import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from taskflow.exceptions import UnclaimableJob

from bench.databases import Statements, kind_of, opened, size_of
from bench.figures import Measured, queued_s
from homeostat.clock import Clock, Entropy, SystemClock
from homeostat.clouds.port import Cloud
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.composition.garbage import spare_the_collector
from homeostat.convergence.engine import Threads, build_engine
from homeostat.convergence.jobs.board import ShardBoard
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.stacks import stacks

PROJECT = "bench"


class Engine:
    """API services, board, passes and a simulated cloud. One pass at a time."""

    def __init__(
        self, url: str, quotas: Quotas = Quotas(), clock: Clock = SystemClock(), entropy: Entropy = Entropy()
    ) -> None:
        spare_the_collector()
        self.entropy = entropy
        self.db = opened(url, clock.now)
        self.statements = Statements(self.db)
        self.cloud = SimulatedCloud(clock.now)
        limits = Limits(lease_s=60.0)
        self._pool = ThreadPoolExecutor(4)
        self.engine = build_engine(self.db, self.clouds, clock, self.entropy, limits, Threads(self._pool))
        self.reconciler = self.engine.reconciler
        self.board = ShardBoard("bench", {"database": self.db, "lease_s": limits.lease_s})
        self.stack_service = StackService(self.db, self.entropy, quotas)

    def clouds(self, _project: str) -> Cloud:
        return self.cloud

    def passes(self) -> int:
        """Run the passes that are due; return how many shards had one."""
        jobs = list(self.board.iterjobs())
        for job in jobs:
            try:
                self.board.claim(job, "bench")
            except UnclaimableJob:  # it was deleted with its parent since it was listed
                continue
            run_pass(self.reconciler, job)
        return len(jobs)

    def rest(self) -> None:
        """Run passes until none is due."""
        while self.passes():
            pass

    def settle(self, stack_id: str) -> None:
        """Run passes until the stack is at rest. Fails: RuntimeError unless it is COMPLETE then."""
        while True:
            self.passes()
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
