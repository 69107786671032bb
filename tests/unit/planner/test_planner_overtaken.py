"""Maintenance of a stack that is overtaken by a newer action while its resources are at it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.planner.worlds import NOW, TEST, decide, described, keys, row, seen, wanted, world

from homeostat.model.plan import StepOutcome
from homeostat.planner import Frontier

GROUP = "OS::Heat::ResourceGroup"
UPDATED: dict[str, Any] = {"revision": 2, "action": "UPDATE", "settled_revision": 1}


@pytest.mark.parametrize(("action", "goes_on"), [("RESUME", "operate resume"), ("UPDATE", "update")])
def test_what_fails_at_an_action_that_was_overtaken_goes_on_with_the_newer_one(action: str, goes_on: str) -> None:
    """Found by the simulation (seed 39500262): the resumption failed for the suspension before it, and a nested stack
    stayed suspended."""
    definition = replace(wanted("a", TEST), type=GROUP, properties={"count": 1, "resource_def": {"type": TEST}})
    mine = row("a", GROUP, "SUSPEND_IN_PROGRESS", properties=dict(definition.properties))
    look = seen("failed", number=2, action="SUSPEND", suspended=True, failures=1, fault="it broke")
    frontier = Frontier(world([definition], [mine], {"a1": look}, **{**UPDATED, "action": action}), keys())
    (failed,) = frontier.steps(NOW, 1)
    assert (described(failed), mine.revision) == ("record SUSPEND_FAILED", 1)
    frontier.apply(failed, StepOutcome(mine))
    (step,) = frontier.steps(NOW, 1)
    assert (described(step).partition(" a")[0], mine.revision) == (goes_on, 2)


def test_what_fails_at_the_action_of_its_stack_fails_that() -> None:
    definition = replace(wanted("a", TEST), type=GROUP, properties={"count": 1, "resource_def": {"type": TEST}})
    mine = row("a", GROUP, "RESUME_IN_PROGRESS", revision=2)
    look = seen("failed", number=2, action="RESUME", failures=1, fault="it broke")
    of = world([definition], [mine], {"a1": look}, **{**UPDATED, "action": "RESUME"})
    assert (described(decide(of, definition)), mine.revision) == ("record RESUME_FAILED", 2)
