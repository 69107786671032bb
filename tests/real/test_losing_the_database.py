"""PostgreSQL dies, or drops its connections, in the middle of stacks of a thousand: workers go on by themselves."""

import random
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from tests.real.world import RealWorld, Users, world_on

CRASHES = 5
LOSSES = 12
pytestmark = [pytest.mark.real, pytest.mark.postgresql]


@pytest.mark.shows("CV5")
def test_postgresql_dies_and_comes_back(crashing: tuple[str, Callable[[], None]], tmp_path: Path) -> None:
    url, crash = crashing
    with world_on(url, tmp_path) as world:
        trouble(world, crash, CRASHES)


def test_connections_are_lost(world: RealWorld) -> None:
    """Wherever a worker is: before a commit, in it, or between claiming a shard and knowing of it."""
    url = make_url(world.db.url)
    rest = "datname = current_database() AND pid <> pg_backend_pid()"

    def cut() -> None:
        with psycopg.connect(host=str(url.query["host"]), user=url.username, dbname=url.database) as admin:
            admin.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {rest}")

    trouble(world, cut, LOSSES)


def trouble(world: RealWorld, strike: Callable[[], None], times: int) -> None:
    """Strike again and again in the middle of the work; the same workers live through all of it."""
    rng = random.Random(5)
    users = Users(world, rng, scale=4)
    users.create()
    users.create()
    workers = [world.start_worker(), world.start_worker()]
    for _ in range(times):
        if world.resting():
            users.act()
        world.get_under_way(rng)
        strike()
    world.check()
    assert [worker.exitcode for worker in workers] == [None, None]
