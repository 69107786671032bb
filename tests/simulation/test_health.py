"""The ring with health policies: servers fail in all ways, observers are cut off, users interfere, workers die.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import pytest

from tests.simulation.checking import checked
from tests.simulation.playing import Ring, seeds_to_play

pytestmark = pytest.mark.heavy

RING = Ring("health", checked)


@pytest.mark.parametrize("seed", seeds_to_play(10))
def test_groups_with_health_policies_come_to_rest_and_no_invariant_is_broken(seed: int) -> None:
    RING.played(seed)
