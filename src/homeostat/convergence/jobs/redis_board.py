"""TaskFlow's Redis job board for shards (design section 6): claims are made in Redis, ownership stays in SQL.

Rows are the truth: one sweeper among the workers posts what is due in the table `shard` and has no job. A claim in
Redis is followed by the lease in SQL, whose epoch guards every write; a job whose shard is not due any more is removed
quietly. So whatever Redis forgets costs time only: it is posted again.
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
from homeostat.convergence.jobs.lost_shards import LostShards
from homeostat.model.errors import Transient
from homeostat.observability import metrics
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.sql.notices import Notices

LOG = logging.getLogger(__name__)
NAMESPACE = "homeostat"
POSTED_MAX = 50
"""So many of the shards that come first are on the board at least; who comes later is posted when these are claimed."""
LOOK_S = 0.02
"""How often the sweeper looks where there is more to do than there are jobs on the board."""
TERM_S = 1.0
"""A sweeper that is silent for so long is replaced."""
ANSWER_S = 1.0
"""Redis is local, or it is not there."""


def connect(url: str) -> "redis.Redis":
    """A client that tries a broken connection once more, and then says so. url — redis://, rediss:// or unix://."""
    return redis.Redis.from_url(
        url,
        socket_timeout=ANSWER_S,
        socket_connect_timeout=ANSWER_S,
        retry=Retry(NoBackoff(), 1),
        protocol=2,
    )


def check(url: str) -> None:
    """Fails: Transient when Redis does not answer, or the URL is wrong."""
    try:
        with contextlib.closing(connect(url)) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise Transient(f"Redis does not answer: {error}") from error


def name_of(stack_id: str, number: int) -> str:
    return f"{stack_id}/{number}"


class RedisShardBoard(impl_redis.RedisJobBoard):  # type: ignore[misc]
    """conf — as of `ShardBoard`, and `{"url": Redis database that one service has to itself}`."""

    def __init__(self, name: str, conf: dict[str, Any], persistence: Any = None) -> None:
        self._redis = connect(conf["url"])
        super().__init__(name, {**conf, "namespace": NAMESPACE}, client=self._redis)
        self._db: Database = conf["database"]
        self._lease_s: float = conf["lease_s"]
        self._lost: LostShards = conf.get("lost") or LostShards()
        self._in_hand: dict[bytes, Any] = {}
        self._answering = True
        self._sweeper = Sweeper(self)

    # -- listing -----------------------------------------------------------------------------------------------------

    def iterjobs(self, only_unclaimed: bool = False, ensure_fresh: bool = False) -> Iterator[Any]:
        """Claimable jobs in fair order: priority, then the project with the fewest claimed jobs, then the oldest.
        (TaskFlow's own order gives the newest first.) None while Redis does not answer."""
        with self._outage():
            return iter(self._claimable(self._fetch_jobs()))
        return iter(())

    def _claimable(self, jobs: list[Any]) -> list[Any]:
        with self._redis.pipeline(transaction=False) as asked:
            for job in jobs:
                asked.exists(job.owner_key)
            claimed = asked.execute()
        busy = Counter(job.details.get("project") for job, owner in zip(jobs, claimed, strict=True) if owner)
        free = [job for job, owner in zip(jobs, claimed, strict=True) if not owner]
        for job in free:
            job.lease = None
        return sorted(free, key=lambda job: _place(job, busy))

    def due_in(self, within_s: float) -> float:
        """0 where there is a job that nobody has claimed, otherwise `within_s`: who posts one tells of it."""
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
        """Wake a shard. details — `{"stack_id", "shard"}`. The row is written first: it is what counts."""
        row = wake_shard(self._db, details, priority)
        return self._put(row.stack_id, row.number, row.project, priority)

    def _put(self, stack_id: str, number: int, project: str, priority: Any) -> Any:
        details = {"stack_id": stack_id, "shard": number, "project": project}
        job = super().post(name_of(stack_id, number), details=details, priority=priority)
        job.lease = None
        return job

    def claim(self, job: Any, who: str, expiry: float | None = None) -> None:
        """In Redis for the length of a lease, then in SQL. Fails: UnclaimableJob when another one was faster, or
        nothing is to be done any more."""
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
        self._in_hand[job.key] = job
        metrics.claimed()

    def consume(self, job: Any, who: str) -> None:
        """The pass has given the shard back itself; if it is due again, it is posted again."""
        self._in_hand.pop(job.key, None)
        self._remove(job, who)

    def abandon(self, job: Any, who: str) -> None:
        """The pass could not be finished: the shard is due again in a moment, and is posted then."""
        try:
            if job.lease is not None:
                give_back(self._db, job.lease)
        finally:
            self.consume(job, who)

    def trash(self, job: Any, who: str) -> None:
        """A job that broke its conductor is not lost: rows are the truth, it is tried again later."""
        self.abandon(job, who)

    def _remove(self, job: Any, who: str) -> None:
        """Whatever of it is left: Redis may have forgotten it, or given it to somebody else."""
        try:
            super().consume(job, who)
        except (exceptions.NotFound, exceptions.JobFailure) as error:
            LOG.debug("job %s was not removed: %s", job.name, error)

    # -- what the sweeper does ---------------------------------------------------------------------------------------

    @property
    def notices(self) -> Notices:
        return self._db.notices

    def sweep(self) -> float:
        """Post what is due and has no job. Gives the seconds until something is due that was not."""
        within_s = self._db.notices.longest_wait_s()
        with self._db.read() as tx:
            now = self._db.now_of(tx)
            pause_s = shards.due_in(tx, now, within_s)
            rows = [] if pause_s else shards.due(tx, now, POSTED_MAX)
        if not rows:
            return pause_s
        there = {job.name for job in self._fetch_jobs()}
        missing = [row for row in rows if name_of(row.stack_id, row.number) not in there]
        for row in missing:
            self._put(row.stack_id, row.number, row.project, PRIORITIES[row.priority])
        if missing:
            self._db.notices.tell()
        return LOOK_S

    def keep_claims(self) -> None:
        """Lengthen the claims of the jobs in hand whose leases stand: a pass that hangs loses both."""
        jobs = list(self._in_hand.values())
        if not jobs:
            return
        with self._db.read() as tx:
            held = shards.held(tx, [job.lease for job in jobs], self._db.now_of(tx))
        for job in jobs:
            if job.lease in held:
                job.extend_expiry(self._lease_s)
            else:
                self._in_hand.pop(job.key, None)

    def be_sweeper(self, who: str) -> bool:
        """Is it this one, for TERM_S seconds from now? Two for a moment do no harm: they may post a job twice."""
        key, term_ms = self.join("sweeper"), int(TERM_S * 1000)
        if self._redis.set(key, who, nx=True, px=term_ms):
            return True
        if self._redis.get(key) != who.encode():
            return False
        return bool(self._redis.pexpire(key, term_ms))

    def be_no_sweeper(self, who: str) -> None:
        if self._redis.get(self.join("sweeper")) == who.encode():
            self._redis.delete(self.join("sweeper"))

    # -- the connection ----------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Fails: JobFailure when Redis does not answer."""
        super().connect()
        self._sweeper.start()

    def close(self) -> None:
        """Jobs in hand become claimable when their time runs out."""
        if self.connected:
            self._sweeper.stop()
            self._redis.close()
        super().close()

    @contextlib.contextmanager
    def _outage(self) -> Iterator[None]:
        """Told of once, when it begins and when it ends."""
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
    """A thread that keeps the claims of this worker, and posts what is due as long as it is the one that does."""

    def __init__(self, board: RedisShardBoard) -> None:
        self._board = board
        self._who = secrets.token_hex(8)
        self._stop = threading.Event()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is None:
            return
        self._stop.set()
        self._news.set()
        self._thread.join()
        self._thread = None
        with contextlib.suppress(redis.RedisError):  # then it ends by itself
            self._board.be_no_sweeper(self._who)

    def _run(self) -> None:
        with self._board.notices.listening(self._news.set):
            self._rounds()

    def _rounds(self) -> None:
        """Each round is left a pause twice as long as it took: a slow database is not asked all the time."""
        round_ = Rounds(self._board, self._who)
        while not self._stop.is_set():
            began = time.monotonic()
            self._news.clear()
            try:
                pause_s = round_.run(began)
            except (Transient, exceptions.JobFailure, redis.RedisError) as error:
                LOG.debug("nothing was swept: %s", error)
                pause_s = TERM_S / 4
            except Exception:
                LOG.exception("the sweeper broke; it goes on")
                pause_s = TERM_S
            if not self._stop.wait(2 * (time.monotonic() - began)):
                self._news.wait(pause_s)


class Rounds:
    """What a sweeper remembers from one round to the next."""

    def __init__(self, board: RedisShardBoard, who: str) -> None:
        self._board = board
        self._who = who
        self._sweeping = False
        self._ask_at = 0.0

    def run(self, now: float) -> float:
        """Gives the seconds until the next round."""
        if now >= self._ask_at:
            self._sweeping = False
            self._board.keep_claims()
            self._sweeping = self._board.be_sweeper(self._who)
            self._ask_at = now + TERM_S / 4
        if not self._sweeping:
            return TERM_S / 4
        return min(self._board.sweep(), TERM_S / 4)


def _place(job: Any, busy: Counter[str]) -> tuple[int, int, int]:
    return PRIORITIES.index(job.priority), busy[job.details.get("project")], job.sequence
