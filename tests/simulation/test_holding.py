"""The ring in worlds whose servers hold ports, addresses and volumes, which one thing at a time can have: whatever
happens while they go from one generation to the next, in the end each is where it belongs (ADR 0094).
`HOMEOSTAT_SEEDS=1000` plays more."""

import pytest

from tests.simulation.holding import Holding
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.trouble import troubled

pytestmark = pytest.mark.heavy

RING = Ring("holding", lambda seed: troubled(seed, Holding()))


@pytest.mark.parametrize("seed", seeds_to_play(10))
def test_each_thing_has_what_is_its_own_in_the_end(seed: int) -> None:
    RING.played(seed)


def test_some_hold_something() -> None:
    RING.play_until(range(100, 130), {"holds": 3})
