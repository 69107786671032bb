"""The simulation ring over a few seeds, and over worlds with two sorts of trouble each. `make seeds` plays many more; a
failing seed says how to replay it."""

import pytest

from tests.simulation.keeping import KeepingAtRest
from tests.simulation.playing import MAIN, RING, Ring, seeds_to_play
from tests.simulation.trouble import troubled

SEEDS = seeds_to_play(2)
AT_ONCE = 5
"""Seeds of one test."""


@pytest.mark.parametrize("start", SEEDS[::AT_ONCE], ids=lambda start: f"seeds {start}")
@pytest.mark.shows("CV6", "CV18")
def test_everything_converges_and_nothing_leaks_or_is_made_twice(start: int) -> None:
    """CV2, CV5, CV6, CV8, CV10, CV11, CV12, CV18, CV19 under crashes, freezes, faults and outages."""
    for seed in range(start, min(start + AT_ONCE, SEEDS.stop)):
        RING.played(seed)


def test_the_clock_of_the_database_may_be_set_in_the_middle_of_everything() -> None:
    """By up to an hour, forwards and backwards, again and again: the invariants about times hold as in other worlds."""
    RING.play_until(range(20, 32), {"clock steps": 11}, stepped=True)


def test_a_seed_replays_itself() -> None:
    """The same seed tells the same story, to the letter."""
    assert RING.played(3).lines == RING.play(3).lines


def test_the_ring_really_makes_trouble() -> None:
    """Over some seeds workers die, stale owners are refused, things are deleted, and users change their minds."""
    RING.play_until(range(20), {"kills": 21, "superseded": 4, "deletions": 51})


def test_nothing_goes_without_its_snapshot_and_no_snapshot_of_a_stack_is_lost_or_leaked() -> None:
    """CV12: users are careful, and the watcher judges each deletion; here some had to wait. Snapshots of whole stacks
    are taken, restored and deleted, whatever else happens."""
    RING.play_until(range(205, 230), {"copied first": 4}, careful=True, snapshots=True)


def test_stacks_at_rest_go_back_to_their_snapshots() -> None:
    keeping = Ring(MAIN, lambda seed: troubled(seed, KeepingAtRest()))
    keeping.play_until(range(5, 15), {"restored": 4})


def test_hooks_hold_until_they_are_cleared_and_healing_acts_on_a_share_at_a_time() -> None:
    """Something stops at hooks, or is restricted, or belongs to others, and is not touched then. Users say how much may
    be healed at a time, and what only with their consent; the watcher judges whatever is begun to be healed, and what a
    user has agreed to goes on."""
    enough = {"cleared": 9, "healed.begun": 7, "healed.full": 4, "healed.consent_needed": 1, "healed.released": 1}
    RING.play_until(range(602, 622), enough, held=True, governed=True)


def test_what_is_lost_together_or_marked_again_and_again_is_healed_once() -> None:
    """MU: users and their programs mark resources, one of them the same over and over, while workers die; things that
    depend on each other, or all of a kind, vanish in one moment. The watcher counts. Nothing that is well goes, nothing
    stays FAILED whose requirements are well, no stack says better than it is."""
    enough = {"renewed": 9, "losses": 21, "repeated marks": 9}
    RING.play_until(range(602, 622), enough, marked=True, lossy=True)


def test_a_doubt_ends_by_itself() -> None:
    RING.play_until(range(320, 340), {"proved": 1}, lossy=True)


def test_what_a_cloud_does_not_keep_is_not_sent_again_and_again() -> None:
    """It accepts a value and keeps another one: at rest nothing more is sent, and the resource says so."""
    RING.play_until(range(64, 84), {"unkept": 4}, unkept=True)


def test_stacks_are_abandoned_and_adopted_locked_and_suspended_amid_all_that() -> None:
    """CV16: what a document names is not deleted, or made twice, and a stack that has taken it over converges. LK: the
    watcher judges each row of a locked stack while workers die; in the end nothing is left locked or suspended."""
    enough = {"adopted": 7, "maintained": 7, "judged while locked": 11}
    RING.play_until(range(600, 620), enough, moving=True, maintained=True)
