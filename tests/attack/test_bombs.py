"""Templates that grow: whoever sends one harms himself alone.

Each is refused, or its stack fails or is made within bounds; no process dies or fills the memory, a neighbour goes on,
and the stack can be deleted. `HOMEOSTAT_QUIET_MACHINE=1` asserts the times that are promised.
"""

import pytest

from tests.attack import bombs
from tests.attack.bombs import Bomb
from tests.attack.service import (
    DELETED_S,
    MEMORY_MAX_MB,
    READ_S,
    SMALL_STACK_S,
    Attacked,
    Neighbour,
    create,
    delete,
    ended,
)
from tests.waiting import until

ALL = [*bombs.AT_THE_DOOR, *bombs.RUN_TIME]


@pytest.mark.parametrize("bomb", ALL, ids=lambda bomb: bomb.name)
def test_a_bomb_is_refused_or_bounded(attacked: Attacked, neighbour: Neighbour, bomb: Bomb) -> None:
    attacked.forget_peaks()
    before = attacked.pids()
    with attacked.client("attacker") as http:
        made = create(
            http, "bomb-" + bomb.name.replace(" ", "-"), bomb.template, files=bomb.files, environment=bomb.environment
        )
        if bomb.refused:
            assert made.status_code == 400, made.text[:1000]
            assert bomb.refused in made.text
        else:
            assert made.status_code == 201, made.text[:1000]
            stack_id = made.json()["stack"]["id"]
            ended(http, stack_id)
            seconds = delete(http, stack_id)
            print(f"{bomb.name}: deleted in {seconds:.2f} s")
            assert seconds <= DELETED_S
    peaks = attacked.peaks_mb()
    print(f"{bomb.name}: {', '.join(f'{name} {peak:.0f} MB' for name, peak in peaks.items())}")
    assert attacked.pids() == before, "no process has died"
    assert max(peaks.values()) <= MEMORY_MAX_MB


def test_the_neighbour_has_gone_on(neighbour: Neighbour) -> None:
    """All the time that the others attacked: runs last."""
    wait_for_some = 3
    until(lambda: len(neighbour.stacks) >= wait_for_some, "some small stacks of the neighbour")
    reads, stacks = (neighbour.percentile(times, 99) for times in (neighbour.reads, neighbour.stacks))
    print(
        f"{len(neighbour.reads)} reads, 99 % within {reads * 1000:.0f} ms; {len(neighbour.stacks)} small stacks, "
        f"99 % within {stacks:.1f} s"
    )
    assert neighbour.complaints == []
    assert reads <= READ_S
    assert stacks <= SMALL_STACK_S
