"""TaskFlow's job board as a view of the table `shard` (ADR 0006).

A job names a shard and carries nothing else. Posting a job is a wake-up, claiming it is a lease with a new epoch, and
the pass itself gives the shard back. The shards of a dead worker can be claimed again when their leases run out.
"""

import contextlib
import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from taskflow import exceptions, states
from taskflow.jobs import base

from homeostat.convergence.ownership import LostShards
from homeostat.model.errors import Transient
from homeostat.observability import metrics
from homeostat.store.database import Database
from homeostat.store.schema.rows import ShardRow
from homeostat.store.shards import fair_queue, leases, shards
from homeostat.store.shards.leases import Lease

PRIORITIES = (
    base.JobPriority.VERY_HIGH,
    base.JobPriority.HIGH,
    base.JobPriority.NORMAL,
    base.JobPriority.LOW,
    base.JobPriority.VERY_LOW,
)
LISTED_MAX = 20
"""Jobs listed at once."""
RETRY_S = 1.0
"""Seconds until a pass that could not be finished is tried again."""


@contextlib.contextmanager
def unreachable() -> Iterator[None]:
    """Translate a database that does not answer into a failure of the job board, which TaskFlow waits out."""
    try:
        yield
    except Transient as error:
        raise exceptions.JobFailure(str(error)) from error


def claim_shard(db: Database, stack_id: str, number: int, who: str, lease_s: float, lost: LostShards) -> Lease | None:
    """Claim a shard for a worker; return None if nothing is due or another worker was faster.

    Raises:
        Transient: The database does not answer. The claim may be stored all the same, so `lost` remembers the shard.
    """
    try:
        with db.write() as tx:
            return leases.claim(tx, stack_id, number, who, tx.now(), lease_s)
    except Transient:
        lost.add(stack_id, number)
        raise


def give_back(db: Database, lease: Lease) -> None:
    """Give back the shard of a pass that could not be finished, to be claimed again by any worker.

    If a newer owner has the shard already, the new claim may have counted a crash. There was none, so that count is
    reset.
    """
    with db.write() as tx:
        now = tx.now()
        if not leases.release(tx, lease, lease.wakes, now + RETRY_S):
            leases.clear_crashes(tx, lease.stack_id, lease.number, now)


def wake_shard(db: Database, details: Mapping[str, Any] | None, priority: Any) -> ShardRow:
    """Wake the shard of a posted job; return the shard's row.

    Args:
        details: `{"stack_id", "shard"}`.
        priority: Priority of the job, in TaskFlow's terms.

    Raises:
        ValueError: The details do not name a shard.
    """
    if not details:
        raise ValueError("a job on this board is a shard: details must name its stack_id and shard")
    urgency = PRIORITIES.index(base.JobPriority.convert(priority))
    with db.write() as tx:
        shards.wake(tx, details["stack_id"], tx.now(), urgency, [details["shard"]])
        row = shards.get(tx, details["stack_id"], details["shard"])
    if row is None:
        raise ValueError(f"there is no shard {details['shard']} of a stack {details['stack_id']}")
    return row


class ShardJob(base.Job):  # type: ignore[misc]
    """A shard with work to do. `lease` is set once it is claimed."""

    def __init__(self, board: "ShardBoard", stack_id: str, number: int, wake_at: float, priority: int) -> None:
        """Describe a shard; `wake_at` is in seconds since the epoch, `priority` an index of `PRIORITIES`."""
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
    """Job board on one database."""

    def __init__(self, name: str, conf: dict[str, Any], persistence: Any = None) -> None:
        """Open the board.

        Args:
            conf: `{"database": Database, "lease_s": seconds, "lost": LostShards}`. Without `lost`, claims with a lost
                answer are not remembered.
            persistence: Not used: there is no log book.
        """
        super().__init__(name, conf)
        self._db: Database = conf["database"]
        self._lease_s: float = conf["lease_s"]
        self._lost: LostShards = conf.get("lost") or LostShards()
        self._connected = False

    def iterjobs(self, only_unclaimed: bool = False, ensure_fresh: bool = False) -> Iterator[ShardJob]:
        """Return the claimable jobs, in fair order; claimed jobs are never listed."""
        with unreachable(), self._db.read() as tx:
            rows = fair_queue.due(tx, tx.now(), LISTED_MAX)
        return iter([ShardJob(self, row.stack_id, row.number, row.wake_at, row.priority) for row in rows])

    def due_in(self, within_s: float) -> float:
        """Return the seconds until a job can be claimed, at most `within_s`; 0 if a job can be claimed now.

        The call costs one short indexed query.
        """
        with self._db.single_read() as tx:
            return fair_queue.due_in(tx, self._db.agreed_now(), within_s)

    @property
    def job_count(self) -> int:
        return len(list(self.iterjobs()))

    def find_owner(self, job: ShardJob) -> str | None:
        with self._db.read() as tx:
            row = shards.get(tx, job.stack_id, job.number)
        return None if row is None else row.owner

    def claim(self, job: ShardJob, who: str) -> None:
        """Claim a job.

        Raises:
            UnclaimableJob: Another worker was faster.
            JobFailure: The database does not answer.
        """
        with unreachable():
            job.lease = claim_shard(self._db, job.stack_id, job.number, who, self._lease_s, self._lost)
        if job.lease is None:
            raise exceptions.UnclaimableJob(f"{job.name} was claimed by another worker")
        metrics.claimed()

    def consume(self, job: ShardJob, who: str) -> None:
        """Do nothing: the pass has given the shard back itself, in its last transaction."""

    def abandon(self, job: ShardJob, who: str) -> None:
        """Give back the shard of a pass that could not be finished."""
        if job.lease is not None:
            give_back(self._db, job.lease)

    def trash(self, job: ShardJob, who: str) -> None:
        """Give back the shard of a job that broke the conductor; nothing is discarded, it is tried again later."""
        self.abandon(job, who)

    def post(
        self,
        name: str,
        book: Any = None,
        details: dict[str, Any] | None = None,
        priority: Any = base.JobPriority.NORMAL,
    ) -> ShardJob:
        """Wake a shard; `details` is `{"stack_id", "shard"}`."""
        row = wake_shard(self._db, details, priority)
        return ShardJob(self, row.stack_id, row.number, row.wake_at or 0.0, row.priority)

    def wait(self, timeout: float | None = None) -> Iterator[ShardJob]:
        """Return the current jobs, without waiting: the conductor waits itself (see `conductor.Alarm`)."""
        return self.iterjobs()

    def register_entity(self, entity: Any) -> None:
        """Do nothing: the board keeps no register of its workers."""

    @property
    def connected(self) -> bool:
        return self._connected

    def connect(self) -> None:
        self._connected = True

    def close(self) -> None:
        self._connected = False
