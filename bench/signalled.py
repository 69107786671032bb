"""One stack with a handle that takes signals, and all that works on it, in one process."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import select

from bench.databases import opened
from bench.shapes import Template
from homeostat.builtin.cloud import Records
from homeostat.builtin.inbox import SignalOutcome
from homeostat.builtin.signals import Signals
from homeostat.clock import Entropy, SystemClock
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.composition.garbage import spare_the_collector
from homeostat.convergence.engine import Threads, build_engine
from homeostat.convergence.jobs.board import ShardBoard
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema

PROJECT = "bench"


def no_scaling(policy: str, body: object) -> SignalOutcome:
    raise RuntimeError(f"{policy} is no policy of this stack")


class Signalled:
    """A stack that has come to rest but for what waits for signals. `handle` of its template takes them."""

    def __init__(self, url: str, template: Template, resources_max: int = 100) -> None:
        spare_the_collector()
        clock, entropy = SystemClock(), Entropy()
        self.db = opened(url)
        cloud, own = SimulatedCloud(clock.now), Records(self.db, entropy, "http://127.0.0.1")
        limits = Limits(lease_s=60.0)
        self._pool = ThreadPoolExecutor(4)

        def clouds(project: str) -> JoinedCloud:
            return JoinedCloud(cloud, own.of(project))

        self.engine = build_engine(self.db, clouds, clock, entropy, limits, Threads(self._pool))
        self._board = ShardBoard("bench", {"database": self.db, "lease_s": limits.lease_s})
        self.stack_service = StackService(self.db, entropy, Quotas(resources_max=resources_max))
        self.id = self.stack_service.create(PROJECT, None, "web", StackRequest(template))
        self.signals = Signals(self.db, no_scaling, self.engine.rollouts.advance)
        self.settle()
        self.handle = self._handle_of("handle")

    def signal(self, body: Mapping[str, Any] | None) -> None:
        self.signals.native(PROJECT, "signal_handle", self.handle, body)

    def settle(self) -> None:
        """Run all passes that are due."""
        while jobs := list(self._board.iterjobs()):
            for job in jobs:
                self._board.claim(job, "bench")
                run_pass(self.engine.reconciler, job)

    def _handle_of(self, name: str) -> str:
        table = schema.resource
        with self.db.read() as tx:
            mine = (table.c.stack_id == self.id, table.c.name == name)
            return str(tx.execute(select(table.c.handle).where(*mine)).scalar_one())

    def close(self) -> None:
        self._pool.shutdown()
        self.db.close()
