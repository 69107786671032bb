"""Templates that grow: whoever sends one harms himself alone.

Each is refused, or its stack fails or is made within bounds; no process dies or fills the memory, a neighbour goes on,
and the stack can be deleted. `HOMEOSTAT_QUIET_MACHINE=1` asserts the times that are promised; `-s` prints the figures.
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

ALL = [*bombs.AT_THE_DOOR, *bombs.LATER, *bombs.RUN_TIME]
SMALL_STACKS = 3


@pytest.mark.timeout(900)
def test_bombs_are_refused_or_bounded(attacked: Attacked) -> None:
    """One service meets them all, one after the other: whatever one has left behind, the next one finds."""
    with Neighbour(attacked).living() as neighbour:
        failures = [told for bomb in ALL for told in _thrown(attacked, bomb)]
        until(lambda: len(neighbour.stacks) >= SMALL_STACKS, "some small stacks of the neighbour")
    assert failures == []
    reads, stacks = (neighbour.percentile(times, 99) for times in (neighbour.reads, neighbour.stacks))
    print(f"{len(neighbour.reads)} reads: {reads * 1000:.0f} ms; {len(neighbour.stacks)} small stacks: {stacks:.1f} s")
    assert neighbour.complaints == []
    assert reads <= READ_S
    assert stacks <= SMALL_STACK_S


def test_a_deletion_overtakes_the_creation_of_half_a_million(attacked: Attacked) -> None:
    with attacked.client("attacker") as http:
        made = create(http, "endless", bombs.ENDLESS.template)
        assert made.status_code == 201, made.text
        stack_id = made.json()["stack"]["id"]
        group = f"{made.json()['stack']['links'][0]['href']}/resources/group"
        until(lambda: http.get(group).json().get("resource", {}).get("resource_status") == "CREATE_IN_PROGRESS")
        with Neighbour(attacked, project="attacker").living() as colleague:  # the same project has its turns, too
            until(lambda: colleague.stacks, "a small stack of the same project")
        seconds = delete(http, stack_id)
    print(f"small stack beside it: {colleague.stacks[0]:.1f} s; deleted in {seconds:.2f} s")
    assert colleague.complaints == []
    assert seconds <= DELETED_S


def _thrown(attacked: Attacked, bomb: Bomb) -> list[str]:
    """What went wrong."""
    attacked.forget_peaks()
    before = attacked.pids()
    found = []
    with attacked.client("attacker") as http:
        made = create(http, "bomb-" + bomb.name.replace(" ", "-"), bomb.template, **bomb.more)
        told = made.text[:300]
        if made.status_code == 400 and bomb.refused in made.text:
            pass
        elif bomb.refused or made.status_code != 201:
            found.append(f"{bomb.name}: {made.status_code} {told}")
        if made.status_code == 201:
            stack_id = made.json()["stack"]["id"]
            told = ended(http, stack_id)["stack_status_reason"]
            seconds = delete(http, stack_id)
            told = f"{told[:200]}; deleted in {seconds:.2f} s"
            if seconds > DELETED_S:
                found.append(f"{bomb.name}: deleted in {seconds:.1f} s")
    if attacked.pids() != before:
        return [*found, f"{bomb.name}: a process has died"]
    peaks = attacked.peaks_mb()
    print(f"{bomb.name}: {', '.join(f'{name} {peak:.0f} MB' for name, peak in peaks.items())}; {told}")
    heavy = max(peaks.values()) > MEMORY_MAX_MB
    return [*found, f"{bomb.name}: {peaks}"] if heavy else found
