"""The ring with health policies: servers fail in all ways, observers are cut off, users interfere, workers die.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import os
from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from tests.simulation.checking import CheckedWorld
from tests.simulation.playing import replay, with_story

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "10"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))


class Checked(NamedTuple):
    """What one seed gave: the story, and how often each story of a recovery happened."""

    lines: list[str]
    happened: Counter[str]


def play(seed: int) -> Checked:
    with with_story(CheckedWorld(seed), seed, replay(seed, "health")) as world:
        world.run()
    return Checked(world.story.lines, world.invariants.happened)


played = cache(play)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_groups_with_health_policies_come_to_rest_and_no_invariant_is_broken(seed: int) -> None:
    played(seed)
