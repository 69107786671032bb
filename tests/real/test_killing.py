"""Workers are killed and frozen in the middle of what they do. `HOMEOSTAT_KILLS=1000` kills more of them."""

import os
import random
import signal
import time
from functools import partial
from multiprocessing.process import BaseProcess
from typing import cast

import pytest

from tests.databases import on_a_server
from tests.real.world import RealWorld, Users
from tests.waiting import QUIET, until

KILLS = int(os.environ.get("HOMEOSTAT_KILLS", "24"))
FREEZES = 6
TAKEN_OVER_S = 10.0 if QUIET else 60.0
pytestmark = [pytest.mark.real, on_a_server, pytest.mark.timeout(120 + 10 * KILLS)]


@pytest.mark.shows("CV5")
def test_users_do_not_see_that_workers_are_killed(world: RealWorld) -> None:
    """CV5, CV18: stacks are created, updated and deleted on, whichever process dies."""
    rng = random.Random(1)
    users = Users(world, rng)
    for _ in range(3):
        users.create()
    world.start_worker()
    world.start_worker()
    for number in range(KILLS):
        if number % 3 == 2 or world.resting():
            users.act()
        world.kill(rng.choice(world.get_under_way(rng)))
        world.start_worker()
    world.check()


def stop_at_work(world: RealWorld, users: Users, rng: random.Random) -> BaseProcess:
    """Freeze a worker while it owns a shard. Gives the worker."""
    while True:
        victim = rng.choice(world.get_under_way(rng))
        os.kill(cast(int, victim.pid), signal.SIGSTOP)
        if world.owned(victim):
            return victim
        os.kill(cast(int, victim.pid), signal.SIGCONT)
        if world.resting():
            users.act()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.shows("CV5")
def test_another_worker_takes_over(world: RealWorld, end: signal.Signals) -> None:
    """With the lease that the service has by default, whether the worker is dead or frozen."""
    for _ in range(2):
        world.start_worker(lease_s=5.0)
    world.wait_for(lambda: len(world.registered()) == 2, "both workers to be there")
    rng = random.Random(2)
    users = Users(world, rng)
    users.create()
    victim = stop_at_work(world, users, rng)
    os.kill(cast(int, victim.pid), end)
    ended_at = time.monotonic()
    epochs = {(shard.stack_id, shard.number): shard.epoch for shard in world.owned(victim)}

    def taken_over() -> bool:
        now = {(shard.stack_id, shard.number): shard.epoch for shard in world.shards()}
        return all(now[place] > epoch for place, epoch in epochs.items())

    until(taken_over, "the other worker to go on", within_s=TAKEN_OVER_S)
    assert time.monotonic() - ended_at <= TAKEN_OVER_S
    world.check()


@pytest.mark.shows("CV5")
def test_users_do_not_see_that_workers_are_frozen(world: RealWorld) -> None:
    """A worker that wakes up long after its lease ran out finds that another one has taken over."""
    rng = random.Random(3)
    users = Users(world, rng)
    users.create()
    users.create()
    world.start_worker()
    world.start_worker()
    for _ in range(FREEZES):
        if world.resting():
            users.act()
        frozen = rng.choice(world.get_under_way(rng))
        os.kill(cast(int, frozen.pid), signal.SIGSTOP)
        world.wait_for(partial(world.released, frozen), "the end of the lease of the frozen worker")
        world.wait_for(lambda: world.resting() or world.working(), "the other worker to go on")
        os.kill(cast(int, frozen.pid), signal.SIGCONT)
    world.check()


def test_a_stopping_worker_releases_its_shards(world: RealWorld) -> None:
    """SIGTERM: what has begun is finished, and no lease has to run out."""
    Users(world, random.Random(4)).create()
    worker = world.start_worker(lease_s=30.0)
    until(lambda: world.cloud.acts > 30 and world.owned(worker), "the worker in the middle of its work")
    worker.terminate()
    worker.join(5.0)
    assert worker.exitcode == 0
    world.workers.remove(worker)
    assert not world.resting()
    assert [shard.lease_until for shard in world.shards()] == [0.0] * len(world.shards())
    assert world.registered() == []
    world.start_worker()
    world.check()
