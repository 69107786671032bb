"""TaskFlow's job board as a view over the `shard` table (design section 6).

A job says only which shard. Posting is a wake-up, claiming is a lease with a new epoch, consuming gives the shard back;
whatever a dead worker held is claimable again when its lease runs out.
"""

import contextlib
import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Row
from taskflow import exceptions, states
from taskflow.jobs import base

from homeostat.convergence.jobs.lost_shards import LostShards
from homeostat.model.errors import Transient
from homeostat.observability import metrics
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.shards.shards import Lease

PRIORITIES = (
    base.JobPriority.VERY_HIGH,
    base.JobPriority.HIGH,
    base.JobPriority.NORMAL,
    base.JobPriority.LOW,
    base.JobPriority.VERY_LOW,
)
LISTED_MAX = 20


AGAIN_S = 1.0
"""A pass that could not be finished is tried again after this time."""


@contextlib.contextmanager
def unreachable() -> Iterator[None]:
    """A database that does not answer is to TaskFlow a failure of the job board, which it waits out."""
    try:
        yield
    except Transient as error:
        raise exceptions.JobFailure(str(error)) from error


def claim_shard(db: Database, stack_id: str, number: int, who: str, lease_s: float, lost: LostShards) -> Lease | None:
    """Own the shard; None when there is nothing to do or another one was faster. Fails: Transient; then the claim may
    have been stored all the same, and `lost` holds it."""
    try:
        with db.write() as tx:
            return shards.claim(tx, stack_id, number, who, db.now_of(tx), lease_s)
    except Transient:
        lost.add(stack_id, number)
        raise


def give_back(db: Database, lease: Lease) -> None:
    """A pass that could not be finished: let anybody claim the shard again. Where a newer owner has it, that one may
    have counted a crash; there was none."""
    with db.write() as tx:
        now = db.now_of(tx)
        if not shards.release(tx, lease, lease.wakes, now + AGAIN_S):
            shards.acquit(tx, lease.stack_id, lease.number, now)


def wake_shard(db: Database, details: Mapping[str, Any] | None, priority: Any) -> Row[Any]:
    """What posting a job means to its shard. Gives its row. Fails: ValueError when details do not name a shard."""
    if not details:
        raise ValueError("a job on this board is a shard: details must name its stack_id and shard")
    urgency = PRIORITIES.index(base.JobPriority.convert(priority))
    with db.write() as tx:
        shards.wake(tx, details["stack_id"], db.now_of(tx), urgency, [details["shard"]])
        row = shards.get(tx, details["stack_id"], details["shard"])
    if row is None:
        raise ValueError(f"there is no shard {details['shard']} of a stack {details['stack_id']}")
    return row


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
    """Job board over one database. conf — `{"database": Database, "lease_s": seconds, "lost": LostShards}`; without
    `lost`, claims whose answer got lost are not told of."""

    def __init__(self, name: str, conf: dict[str, Any], persistence: Any = None) -> None:
        super().__init__(name, conf)
        self._db: Database = conf["database"]
        self._lease_s: float = conf["lease_s"]
        self._lost: LostShards = conf.get("lost") or LostShards()
        self._connected = False

    def iterjobs(self, only_unclaimed: bool = False, ensure_fresh: bool = False) -> Iterator[ShardJob]:
        """Claimable jobs, in fair order; claimed ones are not listed, since they are nobody else's business."""
        with unreachable(), self._db.read() as tx:
            rows = shards.due(tx, self._db.now_of(tx), LISTED_MAX)
        return iter([ShardJob(self, row.stack_id, row.number, row.wake_at, row.priority) for row in rows])

    def due_in(self, within_s: float) -> float:
        """Seconds until a job can be claimed: 0 where one can be now, at most `within_s`. A short indexed query."""
        with self._db.glance() as tx:
            return shards.due_in(tx, self._db.agreed_now(), within_s)

    @property
    def job_count(self) -> int:
        return len(list(self.iterjobs()))

    def find_owner(self, job: ShardJob) -> str | None:
        with self._db.read() as tx:
            row = shards.get(tx, job.stack_id, job.number)
        return None if row is None else row.owner

    def claim(self, job: ShardJob, who: str) -> None:
        """Fails: UnclaimableJob when somebody else was faster."""
        with unreachable():
            job.lease = claim_shard(self._db, job.stack_id, job.number, who, self._lease_s, self._lost)
        if job.lease is None:
            raise exceptions.UnclaimableJob(f"{job.name} was claimed by another worker")
        metrics.claimed()

    def consume(self, job: ShardJob, who: str) -> None:
        """The pass has given the shard back itself, in its last transaction."""

    def abandon(self, job: ShardJob, who: str) -> None:
        """The pass could not be finished: let anybody claim it again."""
        if job.lease is not None:
            give_back(self._db, job.lease)

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
        row = wake_shard(self._db, details, priority)
        return ShardJob(self, row.stack_id, row.number, row.wake_at, row.priority)

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
