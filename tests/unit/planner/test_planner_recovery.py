"""When it is decided again about a member that waits for its recovery (`planner.lifecycle.recovery`)."""

from dataclasses import replace

import pytest
from tests.unit.planner.test_planner_decide import AT_REST
from tests.unit.planner.test_planner_explain import ill, policy_of
from tests.unit.planner.test_planner_frontier import play
from tests.unit.planner.worlds import LONG_AGO, NOW, SERVER, decide, row, seen, wanted, world

from homeostat.model.marks import Marks, RecoveryMark, UnhealthyMark
from homeostat.model.waiting import Waiting, Why
from homeostat.planner.lifecycle.recovery_state import REPORTER
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


def test_a_mark_goes_with_the_fence_if_no_policy_holds_any_more() -> None:
    """Found by the simulation: the policy was detached, and nothing woke the shard after the fence was undone."""
    mark = UnhealthyMark("stopped", LONG_AGO, reporter=REPORTER)
    recovery = RecoveryMark(LONG_AGO, acted_at=LONG_AGO, fenced=("NETWORK",))
    marked = row("a", state="UPDATE_FAILED", marks=Marks(unhealthy=mark, recovery=recovery))
    of = world([wanted("a")], [marked], {"a1": seen()}, **AT_REST)
    frontier, story = play(of)
    assert story == ["operate a1"]
    assert of.rows["a1"].marks is None
    assert frontier.at_rest
