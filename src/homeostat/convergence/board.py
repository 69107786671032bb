"""TaskFlow's job board as a view over the `shard` table (design section 6).

A job says only which shard. Posting is a wake-up, claiming is a lease with a new epoch, consuming gives the shard back;
whatever a dead worker held is claimable again when its lease runs out.
"""

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

from taskflow import exceptions, states
from taskflow.jobs import base

from homeostat.convergence import metrics
from homeostat.model.errors import Transient
from homeostat.store import shards
from homeostat.store.database import Database
from homeostat.store.shards import Lease

PRIORITIES = (
    base.JobPriority.VERY_HIGH,
    base.JobPriority.HIGH,
    base.JobPriority.NORMAL,
    base.JobPriority.LOW,
    base.JobPriority.VERY_LOW,
)
LISTED_MAX = 20


@contextlib.contextmanager
def _unreachable() -> Iterator[None]:
    """A database that does not answer is to TaskFlow a failure of the job board, which it waits out."""
    try:
        yield
    except Transient as error:
        raise exceptions.JobFailure(str(error)) from error


class ShardJob(base.Job):  # type: ignore[misc]
    """A shard with work to do. lease — set by the claim."""

    def __init__(self, board: "ShardBoard", stack_id: str, number: int, wake_at: float, priority: int) -> None:
        super().__init__(board, f"{stack_id}/{number}", details={"stack_id": stack_id, "shard": number})
        self.stack_id = stack_id
        self.number = number
        self.lease: Lease | None = None
        self._wake_at = datetime.datetime.fromtimestamp(wake_at, datetime.UTC)
        self._priority = PRIORITIES[priority]

    @property
    def last_modified(self) -> datetime.datetime:
        return self._wake_at

    @property
    def created_on(self) -> datetime.datetime:
        return self._wake_at

    @property
    def priority(self) -> base.JobPriority:
        return self._priority

    @property
    def state(self) -> str:
        return str(states.CLAIMED if self.lease is not None else states.UNCLAIMED)


class ShardBoard(base.JobBoard):  # type: ignore[misc]
    """Job board over one database. conf — `{"database": Database, "lease_s": seconds}`."""

    def __init__(self, name: str, conf: dict[str, Any], persistence: Any = None) -> None:
        super().__init__(name, conf)
        self._db: Database = conf["database"]
        self._lease_s: float = conf["lease_s"]
        self._connected = False

    def iterjobs(self, only_unclaimed: bool = False, ensure_fresh: bool = False) -> Iterator[ShardJob]:
        """Claimable jobs, in fair order; claimed ones are not listed, since they are nobody else's business."""
        with _unreachable(), self._db.read() as tx:
            rows = shards.due(tx, self._db.now_of(tx), LISTED_MAX)
        return iter([ShardJob(self, row.stack_id, row.number, row.wake_at, row.priority) for row in rows])

    @property
    def job_count(self) -> int:
        return len(list(self.iterjobs()))

    def find_owner(self, job: ShardJob) -> str | None:
        with self._db.read() as tx:
            row = shards.get(tx, job.stack_id, job.number)
        return None if row is None else row.owner

    def claim(self, job: ShardJob, who: str) -> None:
        """Fails: UnclaimableJob when somebody else was faster."""
        with _unreachable(), self._db.write() as tx:
            job.lease = shards.claim(tx, job.stack_id, job.number, who, self._db.now_of(tx), self._lease_s)
        if job.lease is None:
            raise exceptions.UnclaimableJob(f"{job.name} was claimed by another worker")
        metrics.claimed()

    def consume(self, job: ShardJob, who: str) -> None:
        """The pass has given the shard back itself, in its last transaction."""

    def abandon(self, job: ShardJob, who: str) -> None:
        """The pass could not be finished: let anybody claim it again."""
        if job.lease is not None:
            with self._db.write() as tx:
                now = self._db.now_of(tx)
                shards.release(tx, job.lease, job.lease.wakes, now + 1.0)

    def trash(self, job: ShardJob, who: str) -> None:
        """A job that broke its conductor is not lost: rows are the truth, it is tried again later."""
        self.abandon(job, who)

    def post(
        self,
        name: str,
        book: Any = None,
        details: dict[str, Any] | None = None,
        priority: Any = base.JobPriority.NORMAL,
    ) -> ShardJob:
        """Wake a shard. details — `{"stack_id", "shard"}`."""
        if not details:
            raise ValueError("a job on this board is a shard: details must name its stack_id and shard")
        urgency = PRIORITIES.index(base.JobPriority.convert(priority))
        with self._db.write() as tx:
            now = self._db.now_of(tx)
            shards.wake(tx, details["stack_id"], now, urgency, [details["shard"]])
        return ShardJob(self, details["stack_id"], details["shard"], now, urgency)

    def wait(self, timeout: float | None = None) -> Iterator[ShardJob]:
        """Jobs there are; the conductor does the waiting (see `conductor.Alarm`)."""
        return self.iterjobs()

    def register_entity(self, entity: Any) -> None:
        """Workers are known by their leases; there is no register to keep."""

    @property
    def connected(self) -> bool:
        return self._connected

    def connect(self) -> None:
        self._connected = True

    def close(self) -> None:
        self._connected = False
