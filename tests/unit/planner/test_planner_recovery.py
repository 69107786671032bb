"""When it is decided again about a member that waits for its recovery (`planner.lifecycle.recovery`)."""

from dataclasses import replace

import pytest
from tests.unit.planner.test_planner_explain import ill, policy_of
from tests.unit.planner.worlds import NOW, SERVER, decide, wanted

from homeostat.model.waiting import Waiting, Why
from homeostat.planner.policies.health_brake import EXAMINED_S


@pytest.mark.parametrize("looked_at", [0.0, NOW - 1000.0])
def test_what_was_found_long_ago_is_examined_again(looked_at: float) -> None:
    """Found by the simulation: the next look found the same, which wakes nobody, and the recovery never began."""
    there = ill(policy_of())
    assert there.health is not None
    nodes = {key: replace(node, since=looked_at) for key, node in there.health.nodes.items()}
    there.health = replace(there.health, looked_at=looked_at, nodes=nodes)
    waits = decide(there, wanted("a", SERVER))
    assert isinstance(waits, Waiting)
    assert (waits.why, waits.due_at) == (Why.UNSEEN, NOW + EXAMINED_S)
