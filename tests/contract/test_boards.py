"""The contract of job boards, on SQL and on Redis: what conductors rely on, whichever of them they look at."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import update
from taskflow import exceptions
from taskflow.jobs.base import JobPriority
from tests.contract.store_cases import LONG_S, add_stack, shard_row
from tests.redis_server import RedisServer
from tests.waiting import until

from homeostat.convergence.jobs.redis_board import connect
from homeostat.convergence.worker import fetch_board
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import leases, shards
from homeostat.store.shards.leases import Lease
from homeostat.store.shards.shards import DRIFT, GARBAGE, HEAL, USER

SHORT_S = 1.0
Boards = Callable[..., Any]


@pytest.fixture(params=["sql", pytest.param("redis", marks=pytest.mark.redis)])
def boards(request: pytest.FixtureRequest, database: Database) -> Iterator[Boards]:
    """Gives as many connected boards as a test has workers, all of them on one database."""
    url = request.getfixturevalue("redis_running").url if request.param == "redis" else ""
    with contextlib.ExitStack() as stack:

        def connected(lease_s: float = LONG_S) -> Any:
            board = fetch_board(database, lease_s, url)
            board.connect()
            stack.callback(board.close)
            return board

        yield connected


def jobs(board: Any, count: int) -> list[Any]:
    """The jobs that can be claimed, as soon as there are so many. What was posted twice, as it may be, counts once."""

    def there() -> list[dict[str, Any]] | None:
        found: dict[str, Any] = {}
        for job in board.iterjobs():
            found.setdefault(job.name, job)
        return [found] if len(found) == count else None

    (found,) = until(there, f"{count} jobs")
    return list(found.values())


def claimed(board: Any, who: str) -> Any:
    """A job, claimed as conductors do: again and again until nobody was faster."""

    def tried() -> Any:
        for job in board.iterjobs():
            with contextlib.suppress(exceptions.UnclaimableJob):
                board.claim(job, who)
                return job
        return None

    return until(tried, "a job to claim")


def refused_to_all(board: Any) -> bool:
    """Whether no job is left once each was refused.

    A sweeper that has read what is due before a claim posts it after that.
    """
    for job in board.iterjobs():
        with pytest.raises(exceptions.UnclaimableJob):
            board.claim(job, "another")
    return not list(board.iterjobs())


def new_stack(db: Database, name: str = "web", **more: Any) -> str:
    """One whose shards are due now."""
    return add_stack(db, name, at=more.pop("at", time.time()), **more)


def finish(db: Database, job: Any, wake_at: float | None = None) -> None:
    """What a pass does at its end."""
    with db.write() as tx:
        leases.release(tx, job.lease, job.lease.wakes, wake_at)


def wake(db: Database, stack_id: str, priority: int = USER) -> None:
    with db.write() as tx:
        shards.wake(tx, stack_id, tx.now(), priority)


def asleep(db: Database, name: str, project: str = "p") -> str:
    """A stack with nothing to do."""
    stack_id = new_stack(db, name, project=project)
    with db.write() as tx:
        tx.execute(update(schema.shard).where(schema.shard.c.stack_id == stack_id).values(wake_at=None))
    return stack_id


@pytest.mark.heavy
def test_what_is_due_is_a_job_that_names_its_shard(database: Database, boards: Boards) -> None:
    board = boards()
    assert board.due_in(0.5) == 0.5
    assert list(board.iterjobs()) == []
    stack_id = new_stack(database)
    (job,) = jobs(board, 1)
    assert (job.details["stack_id"], job.details["shard"]) == (stack_id, 0)
    assert board.due_in(0.5) == 0


def test_posting_wakes_a_shard(database: Database, boards: Boards) -> None:
    stack_id = asleep(database, "web")
    board = boards()
    board.post("web", details={"stack_id": stack_id, "shard": 0}, priority=JobPriority.HIGH)
    row = shard_row(database, stack_id)
    assert (row.priority, row.wake_at is not None) == (HEAL, True)
    (job,) = jobs(board, 1)
    board.claim(job, "w")
    assert job.lease == Lease(stack_id, 0, 1, row.wakes, shard_row(database, stack_id).lease_until)


@pytest.mark.parametrize("details", [None, {"stack_id": "none", "shard": 0}])
def test_posting_what_is_no_shard_is_refused(boards: Boards, details: dict[str, Any] | None) -> None:
    with pytest.raises(ValueError, match="shard"):
        boards().post("x", details=details)


def test_one_claims_and_the_others_do_not(database: Database, boards: Boards) -> None:
    stack_id = new_stack(database)
    mine, yours = boards(), boards()
    (job,) = jobs(mine, 1)
    (same,) = jobs(yours, 1)
    mine.claim(job, "me")
    with pytest.raises(exceptions.UnclaimableJob):
        yours.claim(same, "you")
    assert (shard_row(database, stack_id).owner, mine.find_owner(job)) == ("me", "me")
    assert jobs(yours, 0) == []
    assert yours.due_in(LONG_S) > 0


def test_a_consumed_job_is_gone_until_its_shard_is_woken(database: Database, boards: Boards) -> None:
    stack_id = new_stack(database)
    board = boards()
    job = claimed(board, "w")
    finish(database, job)
    board.consume(job, "w")
    assert list(board.iterjobs()) == []
    assert board.due_in(0.5) == 0.5
    wake(database, stack_id)
    assert claimed(board, "w").lease.epoch == job.lease.epoch + 1


def test_a_shard_that_wants_to_be_woken_later_is_no_job_before(database: Database, boards: Boards) -> None:
    new_stack(database)
    board = boards()
    job = claimed(board, "w")
    due_at = time.time() + 0.3
    finish(database, job, wake_at=due_at)
    board.consume(job, "w")
    jobs(board, 1)
    assert time.time() >= due_at


def test_a_wake_up_while_claimed_is_not_lost(database: Database, boards: Boards) -> None:
    stack_id = new_stack(database)
    board = boards()
    job = claimed(board, "w")
    wake(database, stack_id)
    finish(database, job)
    board.consume(job, "w")
    assert claimed(board, "w").lease.wakes == 2


def test_the_job_of_a_dead_worker_is_taken_over(database: Database, boards: Boards) -> None:
    """It says nothing any more: neither keeps its claim nor gives it back."""
    new_stack(database)
    dead, living = boards(SHORT_S), boards()
    job = claimed(dead, "dead")
    dead.close()
    later = claimed(living, "living")
    assert later.lease.epoch == job.lease.epoch + 1
    finish(database, later)
    living.consume(later, "living")
    assert list(living.iterjobs()) == []


def test_an_owner_that_wakes_up_late_takes_nothing_away(database: Database, boards: Boards) -> None:
    stack_id = new_stack(database)
    frozen, living = boards(), boards()
    stale = claimed(frozen, "frozen")
    with database.write() as tx:
        leases.release(tx, stale.lease, 0, None)  # its lease is over
    with contextlib.suppress(AttributeError):
        frozen._redis.delete(stale.owner_key)  # and so is its claim
    job = claimed(living, "living")
    frozen.abandon(stale, "frozen")
    frozen.consume(stale, "frozen")
    row = shard_row(database, stack_id)
    assert (row.owner, row.epoch) == ("living", job.lease.epoch)
    assert list(living.iterjobs()) == []


@pytest.mark.parametrize("give_up", ["abandon", "trash"])
def test_a_job_given_up_is_claimed_again(database: Database, boards: Boards, give_up: str) -> None:
    new_stack(database)
    board, other = boards(), boards()
    job = claimed(board, "w")
    getattr(board, give_up)(job, "w")
    assert claimed(other, "v").lease.epoch == job.lease.epoch + 1


def test_the_most_urgent_goes_first(database: Database, boards: Boards) -> None:
    names = {"garbage": GARBAGE, "drift": DRIFT, "user": USER, "heal": HEAL}
    for name, priority in names.items():
        wake(database, asleep(database, name), priority)
    assert [job.details["stack_id"] for job in jobs(boards(), 4)] == ["p-user", "p-heal", "p-drift", "p-garbage"]


def test_a_project_that_is_served_lets_others_go_first(database: Database, boards: Boards) -> None:
    """CV17: a large stack does not starve small ones."""
    large = new_stack(database, "large", project="busy", shard_count=9, at=time.time() - LONG_S)
    board = boards()
    board.claim(jobs(board, 9)[0], "w")
    small = new_stack(database, "small", project="quiet", at=time.time())
    assert [job.details["stack_id"] for job in jobs(board, 9)] == [small, *[large] * 8]


def test_among_equals_the_oldest_goes_first(database: Database, boards: Boards) -> None:
    board = boards()
    for name in ("first", "second", "third"):
        wake(database, asleep(database, name))
        jobs(board, {"first": 1, "second": 2, "third": 3}[name])
    assert [job.details["stack_id"] for job in jobs(board, 3)] == ["p-first", "p-second", "p-third"]


# -- Redis alone -------------------------------------------------------------------------------------------------------


@pytest.fixture
def redis_boards(database: Database, redis_running: RedisServer) -> Iterator[Boards]:
    with contextlib.ExitStack() as stack:

        def connected(lease_s: float = LONG_S) -> Any:
            board = fetch_board(database, lease_s, redis_running.url)
            board.connect()
            stack.callback(board.close)
            return board

        yield connected


@pytest.mark.redis
def test_what_redis_forgets_is_posted_again(
    database: Database, redis_boards: Boards, redis_running: RedisServer
) -> None:
    stack_id = new_stack(database)
    board = redis_boards()
    jobs(board, 1)
    redis_running.client.flushall()
    job = claimed(board, "w")
    redis_running.client.flushall()
    until(lambda: refused_to_all(board), "no job: its lease in SQL still stands")
    finish(database, job)
    board.consume(job, "w")
    wake(database, stack_id)
    claimed(board, "w")


@pytest.mark.redis
def test_a_restarted_redis_is_used_again(database: Database, redis_boards: Boards, redis_running: RedisServer) -> None:
    board = redis_boards()
    redis_running.kill()
    new_stack(database)
    assert list(board.iterjobs()) == []
    assert board.due_in(0.5) == 0.5
    redis_running.start()
    claimed(board, "w")


@pytest.mark.redis
def test_a_job_that_is_not_due_any_more_is_removed(
    database: Database, redis_boards: Boards, redis_running: RedisServer
) -> None:
    stack_id = new_stack(database)
    board = redis_boards()
    (job,) = jobs(board, 1)
    with database.write() as tx:
        lease = leases.claim(tx, stack_id, 0, "of the other board", tx.now(), LONG_S)
        assert lease is not None
        leases.release(tx, lease, lease.wakes, None)
    with pytest.raises(exceptions.UnclaimableJob):
        board.claim(job, "w")
    assert redis_running.client.hlen(board.listings_key) == 0


@pytest.mark.redis
def test_the_claim_of_a_long_pass_is_kept(database: Database, redis_boards: Boards, redis_running: RedisServer) -> None:
    new_stack(database)
    board = redis_boards()
    job = claimed(board, "w")
    redis_running.client.pexpire(job.owner_key, 20_000)
    until(lambda: redis_running.client.pttl(job.owner_key) > 20_000, "the claim to be longer")


@pytest.mark.redis
def test_the_claim_of_a_pass_that_hangs_is_not_kept(database: Database, redis_boards: Boards) -> None:
    """Nobody lengthens its lease any more, although its worker lives."""
    new_stack(database)
    hanging, other = redis_boards(SHORT_S), redis_boards()
    job = claimed(hanging, "w")
    assert claimed(other, "v").lease.epoch == job.lease.epoch + 1


@pytest.mark.redis
def test_another_worker_sweeps_when_the_sweeper_dies(
    database: Database, redis_boards: Boards, redis_running: RedisServer
) -> None:
    first = redis_boards()
    key = first.join("sweeper")
    sweeping = until(lambda: redis_running.client.get(key), "a sweeper")
    second = redis_boards()
    first.close()
    until(lambda: redis_running.client.get(key) not in (None, sweeping), "another sweeper")
    new_stack(database)
    claimed(second, "w")


@pytest.mark.redis
def test_no_more_is_posted_than_can_be_claimed_soon(
    database: Database, redis_boards: Boards, redis_running: RedisServer
) -> None:
    new_stack(database, shard_count=300)
    board = redis_boards()
    assert len(jobs(board, 50)) == 50
    board.sweep()
    assert len(jobs(board, 50)) == 50


@pytest.mark.redis
def test_a_client_speaks_to_the_database_of_its_url(redis_running: RedisServer) -> None:
    with contextlib.closing(connect(f"{redis_running.url}?db=3")) as client:
        client.set("here", "1")
    assert redis_running.client.get("here") is None
