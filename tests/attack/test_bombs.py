"""Templates that grow: a sender harms only themselves.

Each is refused, or its stack fails or is made within bounds; no process dies or fills the memory, a neighbour goes on,
and the stack can be deleted. `HOMEOSTAT_QUIET_MACHINE=1` asserts the times that are promised; `-s` prints the figures.
"""

import time

import pytest

from tests.attack import bombs
from tests.attack.bombs import Bomb
from tests.attack.frame import Outcome, withstood
from tests.attack.service import DELETED_S, Attacked, Neighbour, create, delete, ended
from tests.waiting import until


@pytest.mark.timeout(900)
def test_bombs_are_refused_or_bounded(attacked: Attacked) -> None:
    withstood(attacked, [*bombs.AT_THE_DOOR, *bombs.LATER, *bombs.RUN_TIME], _thrown)


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
    assert colleague.errors == []
    assert seconds <= DELETED_S


def _thrown(attacked: Attacked, bomb: Bomb) -> Outcome:
    found = Outcome()
    with attacked.client("attacker") as http:
        made = create(http, "bomb-" + bomb.name.replace(" ", "-"), bomb.template, **bomb.more)
        found.figures = made.text[:300]
        if made.status_code == 400 and bomb.refused in made.text:
            pass
        elif bomb.refused or made.status_code != 201:
            found.wrong.append(f"{made.status_code} {found.figures}")
        if made.status_code == 201:
            stack_id = made.json()["stack"]["id"]
            began = time.monotonic()
            reason = ended(http, stack_id)["stack_status_reason"]
            rested_s = time.monotonic() - began
            deleted_s = delete(http, stack_id)
            found.figures = f"{reason[:200]}; at rest after {rested_s:.1f} s; deleted in {deleted_s:.2f} s"
            if deleted_s > DELETED_S:
                found.wrong.append(f"deleted in {deleted_s:.1f} s")
    return found
