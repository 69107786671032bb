"""TaskFlow's Redis job board for shards (ADR 0013): claims are made in Redis, ownership stays in SQL.

Rows are the truth. One worker at a time is the sweeper: it posts shards that are due in the table `shard` and have no
job. A claim in Redis is followed by the lease in SQL, whose epoch guards every write; a job whose shard is not due any
more is removed. So if Redis loses data, only time is lost: the sweeper posts the jobs again.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from taskflow import exceptions
from taskflow.jobs import base
from taskflow.jobs.backends import impl_redis

from homeostat.convergence.jobs.board import PRIORITIES, claim_shard, give_back, unreachable, wake_shard
from homeostat.convergence.ownership import LostShards
from homeostat.model.errors import Outage, Transient
from homeostat.observability import metrics
from homeostat.store.database import Database
from homeostat.store.shards import fair_queue, leases
from homeostat.store.sql.notices import Notices

LOG = logging.getLogger(__name__)
NAMESPACE = "homeostat"
POSTED_MAX = 50
"""Jobs on the board at most, those of the first shards in line; the sweeper posts more as jobs are claimed."""
PAUSE_S = 0.02
"""Time between two looks of the sweeper while shards are due."""
TERM_S = 1.0
"""A sweeper that is silent for so many seconds is replaced."""
TIMEOUT_S = 1.0
"""Seconds that Redis may take to connect and to answer: a local Redis is faster, or counts as unreachable."""


def connect(url: str) -> "redis.Redis":
    """Return a client that retries a broken connection once; `url` is redis://…, rediss://… or unix://…."""
    return redis.Redis.from_url(
        url,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),
        protocol=2,
    )


def check(url: str) -> None:
    """Make sure that Redis can be reached.

    Raises:
        Outage: Redis does not answer, or the URL is wrong.
    """
    try:
        with contextlib.closing(connect(url)) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise Outage("Redis does not answer", str(error)) from error


def name_of(stack_id: str, number: int) -> str:
    """Return the name of a shard's job."""
    return f"{stack_id}/{number}"


class RedisShardBoard(impl_redis.RedisJobBoard):  # type: ignore[misc]
    """Job board on a database and on Redis, where the claims are."""

    def __init__(self, name: str, conf: dict[str, Any], persistence: Any = None) -> None:
        """Open the board.

        Args:
            conf: As of `ShardBoard`, and `{"url": …}`: a Redis database that no other service uses.
            persistence: Not used: there is no log book.
        """
        self._redis = connect(conf["url"])
        super().__init__(name, {**conf, "namespace": NAMESPACE}, client=self._redis)
        self._db: Database = conf["database"]
        self._lease_s: float = conf["lease_s"]
        self._lost: LostShards = conf.get("lost") or LostShards()
        self._claimed: dict[bytes, Any] = {}
        self._answering = True
        self._sweeper = Sweeper(self)

    # -- listing -----------------------------------------------------------------------------------------------------

    def iterjobs(self, only_unclaimed: bool = False, ensure_fresh: bool = False) -> Iterator[Any]:
        """Return the claimable jobs in fair order; none while Redis does not answer.

        The order is priority, then the project with the fewest claimed jobs, then the oldest. (TaskFlow's own order
        has the newest first.)
        """
        with self._outage():
            return iter(self._claimable(self._fetch_jobs()))
        return iter(())  # `_outage` has swallowed the error

    def _claimable(self, jobs: list[Any]) -> list[Any]:
        with self._redis.pipeline(transaction=False) as pipeline:
            for job in jobs:
                pipeline.exists(job.owner_key)
            claimed = pipeline.execute()
        busy = Counter(job.details.get("project") for job, owner in zip(jobs, claimed, strict=True) if owner)
        free = [job for job, owner in zip(jobs, claimed, strict=True) if not owner]
        for job in free:
            job.lease = None
        return sorted(free, key=lambda job: _place(job, busy))

    def due_in(self, within_s: float) -> float:
        """Return 0 if there is an unclaimed job, otherwise `within_s`: posting a job sends a notice."""
        with self._outage():
            keys = self._redis.hkeys(self.listings_key)
            owners = [self.join(key + self.OWNED_POSTFIX) for key in keys]
            if owners and self._redis.exists(*owners) < len(owners):
                return 0.0
        return within_s

    # -- jobs --------------------------------------------------------------------------------------------------------

    def post(
        self,
        name: str,
        book: Any = None,
        details: dict[str, Any] | None = None,
        priority: Any = base.JobPriority.NORMAL,
    ) -> Any:
        """Wake a shard, and post its job; `details` is `{"stack_id", "shard"}`."""
        # The row is written first: if Redis fails after that, the sweeper posts the job later.
        row = wake_shard(self._db, details, priority)
        return self._put(row.stack_id, row.number, row.project, priority)

    def _put(self, stack_id: str, number: int, project: str, priority: Any) -> Any:
        """Post a job to Redis."""
        details = {"stack_id": stack_id, "shard": number, "project": project}
        job = super().post(name_of(stack_id, number), details=details, priority=priority)
        job.lease = None
        return job

    def claim(self, job: Any, who: str, expiry: float | None = None) -> None:
        """Claim a job in Redis for the length of a lease, then its shard in SQL: only the lease in SQL gives ownership.

        Raises:
            UnclaimableJob: Another worker was faster, or the shard is not due any more.
            JobFailure: The database or Redis does not answer.
        """
        super().claim(job, who, expiry=expiry or self._lease_s)
        try:
            with unreachable():
                stack_id, number = job.details["stack_id"], job.details["shard"]
                job.lease = claim_shard(self._db, stack_id, number, who, self._lease_s, self._lost)
        except exceptions.JobFailure:
            self._remove(job, who)
            raise
        if job.lease is None:
            self._remove(job, who)
            raise exceptions.UnclaimableJob(f"{job.name} is not due, or another worker has it")
        self._claimed[job.key] = job
        metrics.claimed()

    def consume(self, job: Any, who: str) -> None:
        """Remove a job; the pass has given the shard back itself, and the sweeper posts the shard when due again."""
        self._claimed.pop(job.key, None)
        self._remove(job, who)

    def abandon(self, job: Any, who: str) -> None:
        """Give back the shard of a pass that could not be finished; it is due again in a moment, and posted again."""
        try:
            if job.lease is not None:
                give_back(self._db, job.lease)
        finally:
            self.consume(job, who)

    def trash(self, job: Any, who: str) -> None:
        """Give back the shard of a job that broke the conductor; nothing is discarded, it is tried again later."""
        self.abandon(job, who)

    def _remove(self, job: Any, who: str) -> None:
        """Remove a job from Redis, which may have forgotten the job, or given it to another worker."""
        try:
            super().consume(job, who)
        except (exceptions.NotFound, exceptions.JobFailure) as error:
            LOG.debug("job %s was not removed: %s", job.name, error)

    # -- the sweeper's work ------------------------------------------------------------------------------------------

    @property
    def notices(self) -> Notices:
        return self._db.notices

    def sweep(self) -> float:
        """Post shards that are due and have no job; return the seconds until the next round."""
        within_s = self._db.notices.longest_wait_s()
        with self._db.read() as tx:
            now = tx.now()
            pause_s = fair_queue.due_in(tx, now, within_s)
            rows = [] if pause_s else fair_queue.due(tx, now, POSTED_MAX)
        if not rows:
            return pause_s
        posted = {job.name for job in self._fetch_jobs()}
        missing = [row for row in rows if name_of(row.stack_id, row.number) not in posted]
        for row in missing:
            self._put(row.stack_id, row.number, row.project, PRIORITIES[row.priority])
        if missing:
            self._db.notices.notify()
        return PAUSE_S

    def extend_claims(self) -> None:
        """Extend the claims of this worker's jobs whose leases are held; a pass that hangs loses claim and lease."""
        jobs = list(self._claimed.values())
        if not jobs:
            return
        with self._db.read() as tx:
            held = leases.unexpired(tx, [job.lease for job in jobs], tx.now())
        for job in jobs:
            if job.lease in held:
                job.extend_expiry(self._lease_s)
            else:
                self._claimed.pop(job.key, None)

    def become_sweeper(self, who: str) -> bool:
        """Become or stay the sweeper, for TERM_S seconds from now; return whether that worked."""
        # Reading the key and extending its life are two steps, so for a moment there may be two sweepers. Then a job
        # may be posted twice, which is harmless.
        key, term_ms = self.join("sweeper"), int(TERM_S * 1000)
        if self._redis.set(key, who, nx=True, px=term_ms):
            return True
        if self._redis.get(key) != who.encode():
            return False
        return bool(self._redis.pexpire(key, term_ms))

    def resign(self, who: str) -> None:
        """Resign as the sweeper, so that another worker need not wait for the end of the term."""
        if self._redis.get(self.join("sweeper")) == who.encode():
            self._redis.delete(self.join("sweeper"))

    # -- the connection ----------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, and start the sweeper's thread.

        Raises:
            JobFailure: Redis does not answer.
        """
        super().connect()
        self._sweeper.start()

    def close(self) -> None:
        """Disconnect; jobs still in hand become claimable when their claims run out."""
        if self.connected:
            self._sweeper.stop()
            self._redis.close()
        super().close()

    @contextlib.contextmanager
    def _outage(self) -> Iterator[None]:
        """Swallow errors of Redis, and log an outage only when it begins and when it ends."""
        try:
            yield
        except (exceptions.JobFailure, redis.RedisError) as error:
            if self._answering:
                LOG.warning("Redis does not answer; passes that run go on, others wait: %s", error)
            self._answering = False
        else:
            if not self._answering:
                LOG.info("Redis answers again")
            self._answering = True


class Sweeper:
    """Thread that keeps the claims of this worker, and posts due shards while this worker is the sweeper."""

    def __init__(self, board: RedisShardBoard) -> None:
        self._board = board
        self._who = secrets.token_hex(8)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is None:
            return
        self._stop.set()
        self._wake.set()
        self._thread.join()
        self._thread = None
        with contextlib.suppress(redis.RedisError):  # the key expires anyway
            self._board.resign(self._who)

    def _run(self) -> None:
        with self._board.notices.listening(self._wake.set):
            self._rounds()

    def _rounds(self) -> None:
        """Run rounds; each is followed by a pause of at least twice its duration, to spare a slow database."""
        round_ = Rounds(self._board, self._who)
        while not self._stop.is_set():
            began = time.monotonic()
            self._wake.clear()
            try:
                pause_s = round_.run(began)
            except (Transient, exceptions.JobFailure, redis.RedisError) as error:
                LOG.debug("nothing was swept: %s", error)
                pause_s = TERM_S / 4
            except Exception:
                LOG.exception("the sweeper broke; it goes on")
                pause_s = TERM_S
            if not self._stop.wait(2 * (time.monotonic() - began)):
                self._wake.wait(pause_s)


class Rounds:
    """State of a sweeper from one round to the next."""

    def __init__(self, board: RedisShardBoard, who: str) -> None:
        self._board = board
        self._who = who
        self._sweeping = False
        self._renew_at = 0.0

    def run(self, now: float) -> float:
        """Run one round; return the seconds until the next. `now` is monotonic."""
        if now >= self._renew_at:
            # If `extend_claims` fails, this worker must not rely on its term until the term has been confirmed.
            self._sweeping = False
            self._board.extend_claims()
            self._sweeping = self._board.become_sweeper(self._who)
            self._renew_at = now + TERM_S / 4
        if not self._sweeping:
            return TERM_S / 4
        return min(self._board.sweep(), TERM_S / 4)


def _place(job: Any, busy: Counter[str]) -> tuple[int, int, int]:
    """Return a sort key for fair order; `busy` counts the claimed jobs by project."""
    return PRIORITIES.index(job.priority), busy[job.details.get("project")], job.sequence
