"""The simulation ring over many seeds. `HOMEOSTAT_SEEDS=1000` plays more; a failing seed says how to replay it."""

import os

import pytest

from tests.simulation.trouble import TroubledWorld

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "40"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
REGRESSIONS: tuple[int, ...] = (
    20012,  # an input that changed while its reader was in progress was not read again
    20052,  # what was given up, and the cloud refused to delete just when its time was over, leaked
    20055,  # a server being built, whose start was refused, was made again in the same row
)
"""Seeds that failed once, each with a word on what it was."""


def play(seed: int, *, careful: bool = False) -> TroubledWorld:
    """Fails: AssertionError with what happened and how to replay it."""
    world = TroubledWorld(seed, careful=careful)
    try:
        world.run()
    except Exception as error:
        told = "\n".join(world.story.lines)
        replay = f"HOMEOSTAT_FIRST_SEED={seed} HOMEOSTAT_SEEDS=1 python -m pytest tests/simulation/test_ring.py"
        raise AssertionError(f"seed {seed}: {error}\n{told}\nreplay: {replay}") from error
    return world


@pytest.mark.parametrize("start", range(FIRST, FIRST + SEEDS, 20))
def test_everything_converges_and_nothing_leaks_or_is_made_twice(start: int) -> None:
    """CV2, CV5, CV6, CV8, CV10, CV11, CV12, CV18, CV19 under crashes, freezes, faults and outages."""
    for seed in range(start, min(start + 20, FIRST + SEEDS)):
        play(seed)


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_a_seed_that_failed_once(seed: int) -> None:
    play(seed)


def test_a_seed_replays_itself() -> None:
    """The same seed tells the same story, to the letter."""
    assert play(3).story.lines == play(3).story.lines


def test_the_ring_really_makes_trouble() -> None:
    """Over some seeds workers die, stale owners are refused, things are deleted, and users change their minds."""
    worlds = [play(seed) for seed in range(10)]
    assert sum(world.kills for world in worlds) > 10
    assert sum(world.superseded for world in worlds) > 0
    assert sum(world.watcher.deletions for world in worlds) > 50


def test_nothing_goes_without_its_snapshot_where_users_are_careful() -> None:
    """CV12: the watcher judges each deletion; here some had to wait."""
    worlds = [play(seed, careful=True) for seed in range(10)]
    assert sum(world.watcher.snapshots for world in worlds) > 3
