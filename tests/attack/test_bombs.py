"""Templates that grow: whoever sends one harms himself alone.

Each is refused, or its stack fails or is made within bounds; nobody's process dies or fills the memory, a neighbour goes
on, and the stack can be deleted. `HOMEOSTAT_QUIET_MACHINE=1` asserts the times that are promised.
"""

import pytest

from tests.attack import bombs
from tests.attack.bombs import Bomb
from tests.attack.service import MEMORY_MAX_MB, Attacked, Neighbour, create, delete, ended

ALL = [*bombs.RUN_TIME]


@pytest.mark.parametrize("bomb", ALL, ids=lambda bomb: bomb.name)
def test_a_bomb_is_refused_or_bounded(attacked: Attacked, neighbour: Neighbour, bomb: Bomb) -> None:
    attacked.forget_peaks()
    before = attacked.pids()
    with attacked.client("attacker") as http:
        made = create(http, "bomb-" + bomb.name.replace(" ", "-"), bomb.template, files=bomb.files, environment=bomb.environment)
        if bomb.refused:
            assert made.status_code == 400, made.text[:1000]
            assert bomb.refused in made.text
        else:
            assert made.status_code == 201, made.text[:1000]
            stack_id = made.json()["stack"]["id"]
            stack = ended(http, stack_id)
            print(stack["stack_status"], stack["stack_status_reason"][:300])
            seconds = delete(http, stack_id)
            print(f"deleted in {seconds:.2f} s")
    peaks = attacked.peaks_mb()
    print(peaks)
    assert attacked.pids() == before, "no process has died"
    assert max(peaks.values()) <= MEMORY_MAX_MB
