"""The database dies, or drops its connections, in the middle of stacks of a thousand: workers go on by themselves."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.databases import cut_off, on_a_server
from tests.real.world import RealWorld, Users, world_on

CRASHES = 5
LOSSES = 12
pytestmark = [pytest.mark.real, on_a_server]


@pytest.mark.shows("CV5")
def test_the_database_dies_and_comes_back(crashing: tuple[str, Callable[[], None]], tmp_path: Path) -> None:
    url, crash = crashing
    with world_on(url, tmp_path) as world:
        trouble(world, crash, CRASHES)


def test_connections_are_lost(world: RealWorld) -> None:
    """Wherever a worker is: before a commit, in it, or between claiming a shard and knowing of it."""
    trouble(world, partial(cut_off, world.db.url), LOSSES)


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
