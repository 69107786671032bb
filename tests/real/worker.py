"""What a worker process of the ring runs: the genuine worker on the shared cloud."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from homeostat.clock import Entropy, SystemClock
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.store.database import Database
from tests.real.cloud_server import SharedCloud
from tests.real.processes import end_with_the_tests, log_to, stop_on_sigterm


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is started with. batch — small, so that a stack of hundreds is many transactions and calls;
    redis_url — of its job board, empty for the one on SQL."""

    database_url: str
    cloud_address: str
    log: Path
    lease_s: float = 1.0
    batch: int = 20
    redis_url: str = ""


def run_worker(orders: Orders) -> None:
    """Until SIGTERM."""
    end_with_the_tests()
    log_to(orders.log)
    stop = stop_on_sigterm()
    limits = Limits(lease_s=orders.lease_s, batch=orders.batch, look_busy_s=0.2)
    with contextlib.closing(Database(orders.database_url, time.time)) as db:
        worker = Worker(
            db, SharedCloud(orders.cloud_address), SystemClock(), Entropy(), limits, redis_url=orders.redis_url
        )
        worker.start()
        stop.wait()
        worker.stop()
