"""The ring in worlds whose servers hold ports, addresses and volumes, which one thing at a time can have: whatever
happens while they go from one generation to the next, in the end each is where it belongs (ADR 0094).
`HOMEOSTAT_SEEDS=1000` plays more."""

import os

import pytest

from tests.simulation.holding import HoldingWorld
from tests.simulation.playing import play_until, replay, with_story

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "10"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))


def played(seed: int) -> HoldingWorld:
    with with_story(HoldingWorld(seed), seed, replay(seed, "holding")) as world:
        world.run()
    return world


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_each_thing_has_what_is_its_own_in_the_end(seed: int) -> None:
    played(seed)


def test_some_hold_something() -> None:
    play_until(played, range(100, 130), {"held": 3})
