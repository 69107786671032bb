"""Redis dies, forgets or freezes in the middle of stacks of hundreds: it costs time, and nothing else."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real.world import RealWorld, Users, world_on
from tests.redis_server import RedisServer
from tests.waiting import PATIENCE_S, until

TIMES = 5
pytestmark = [pytest.mark.real, pytest.mark.postgresql, pytest.mark.redis]


@pytest.fixture
def world(postgresql_database_url: str, redis_running: RedisServer, tmp_path: Path) -> Iterator[RealWorld]:
    with world_on(postgresql_database_url, tmp_path, redis_running.url) as found:
        yield found


def trouble(world: RealWorld, strike: Callable[[], object], *, killing: bool = False) -> None:
    """Strike again and again in the middle of the work; workers live through all of it, or die and are replaced."""
    rng = random.Random(7)
    users = Users(world, rng)
    users.create()
    users.create()
    workers = [world.start_worker(), world.start_worker()]
    world.wait_for(lambda: len(world.registered()) == 2, "the workers to be there")
    for _ in range(TIMES):
        if world.resting():
            users.act()
        under_way = world.get_under_way(rng)
        strike()
        if killing:
            world.kill(rng.choice(under_way))
            world.start_worker()
    world.check()
    assert killing or [worker.exitcode for worker in workers] == [None, None]


def test_redis_dies_and_comes_back_empty(world: RealWorld, redis_running: RedisServer) -> None:
    def restart() -> None:
        redis_running.kill()
        redis_running.start()

    trouble(world, restart)


def test_redis_forgets_everything_while_workers_are_killed(world: RealWorld, redis_running: RedisServer) -> None:
    trouble(world, redis_running.client.flushall, killing=True)


def test_redis_is_away_for_a_while(world: RealWorld, redis_running: RedisServer) -> None:
    """Passes that run go on to their end; what comes meanwhile begins when Redis is back."""
    users = Users(world, random.Random(8))
    users.create()
    world.start_worker()
    world.wait_for(world.registered, "the worker to be there")
    world.get_under_way(random.Random(9))
    redis_running.kill()
    world.wait_for(lambda: not world.working(), "the end of what was begun")
    users.create()
    redis_running.start()
    world.check()


def test_a_worker_ends_in_order_without_redis(world: RealWorld, redis_running: RedisServer) -> None:
    Users(world, random.Random(10)).create()
    worker = world.start_worker(lease_s=30.0)
    world.wait_for(lambda: world.cloud.acts > 30 and world.owned(worker), "the worker in the middle of its work")
    redis_running.kill()
    worker.terminate()
    worker.join(PATIENCE_S)
    assert worker.exitcode == 0
    assert [shard.lease_until for shard in world.shards()] == [0.0] * len(world.shards())
    assert world.registered() == []
    redis_running.start()
    world.start_worker()
    world.check()


def test_redis_freezes(world: RealWorld, redis_running: RedisServer) -> None:
    """It takes connections and says nothing, for longer than any caller waits for an answer."""

    def freeze() -> None:
        redis_running.freeze()
        before = world.orders.log.read_text().count("Redis does not answer")
        until(lambda: world.orders.log.read_text().count("Redis does not answer") > before, "a worker to notice")
        redis_running.thaw()

    trouble(world, freeze)
