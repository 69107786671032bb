"""The ring with rollouts of metadata: members that report late, twice, out of turn or never, and users who steer.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import pytest

from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.rolling import Rollouts
from tests.simulation.trouble import troubled

pytestmark = pytest.mark.heavy

COUNTED = range(12)
"""Seeds of worlds that mostly step."""
STORIES = (
    *("reached rolling", "reached canary", "reached canary with own steps", "changed at once", "several steps"),
    *("gate: condition", "gate: conditions", "gate: checks", "gate: alarm", "gate: bake time", "gate: approval"),
    *("refused: failures", "refused: time", "refused: checks", "refused: alarm", "went on with failures"),
    *("on failure: rollback", "on failure: hold", "on failure: abort", "repaired by a corrected template"),
    *("paused", "resumed when paused", "resumed when held", "approved", "succeeded", "succeeded by a user"),
    *("aborted by a user", "cancelled", "corrected in the middle", "scaled in the middle"),
    *("a member is mute", "a member is twice", "a report of another step", "a member dies in the middle"),
    *(
        "a revision in the middle",
        "revised in the middle",
        "locked in the middle",
        "suspended in the middle",
        "killed while a rollout goes on",
    ),
)
"""What has to happen, each in one world at least; for the words see `rollout_invariants` and `rolling`."""


RING = Ring("rollouts", lambda seed: troubled(seed, Rollouts()))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_groups_whose_metadata_changes_converge_and_no_invariant_is_broken(seed: int) -> None:
    RING.played(seed)


def test_a_seed_replays_itself() -> None:
    assert RING.played(1).lines == RING.play(1).lines


def test_most_worlds_step_and_each_story_happens() -> None:
    """In some a newer revision takes gates or steps away before the first."""
    RING.play_until(range(48), dict.fromkeys(STORIES, 1))
    stepped = [any(story.startswith("reached ") for story in RING.played(seed).happened) for seed in COUNTED]
    assert sum(stepped) >= len(COUNTED) - 2
