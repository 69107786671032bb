"""Actions of a stack that take the place of what was known of its resources, or are overtaken by a newer one."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.planner.worlds import (
    LONG_AGO,
    NOW,
    TEST,
    absent,
    decide,
    described,
    keys,
    row,
    seen,
    unanswered,
    until_an_act,
    wanted,
    world,
)

from homeostat.model.intent import LeftAlone, left_alone_for
from homeostat.model.marks import Marks, UnhealthyMark
from homeostat.model.plan import OBSERVE, Settled, Step, StepOutcome
from homeostat.planner import Frontier, outcome

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


@pytest.mark.parametrize("action", ["LOCK", "SUSPEND", "SNAPSHOT"])
def test_what_was_left_alone_is_judged_again_after_an_action_took_the_place_of_that_note(action: str) -> None:
    """Else nobody would heal it: an action that is overtaken before it is requested judges nothing."""
    mine = row("a", intent=LeftAlone("it broke"), judged_observation=2)
    of = world([wanted("a")], [mine], {"a1": seen("error", 2)}, action=action, revision=2, lock={"level": "all"})
    step = decide(of, wanted("a"))
    assert isinstance(step, Step)
    assert (step.row.busy, left_alone_for(step.row.intent), step.row.judged_observation) == (True, "", outcome.UNJUDGED)


def test_a_check_does_not_make_well_what_had_failed_before_a_mark_whose_time_is_over() -> None:
    mark = UnhealthyMark("by hand", LONG_AGO, expires_at=NOW, before=("CREATE", "it failed"))
    mine = row("a", TEST, "CHECK_FAILED", marks=Marks(mark))
    step = decide(world([wanted("a", TEST)], [mine], revision=2, action="CHECK", settled_revision=1), wanted("a", TEST))
    assert described(step) == "record CREATE_FAILED"


def test_what_is_passed_over_since_the_old_one_came_back_counts_no_more_as_healed() -> None:
    """Found by the simulation (seed 41023443): it had to stay, and held back the healing of all others."""
    old = row("a", marks=Marks(lost_at=LONG_AGO), replaced_by="a2", judged_observation=1)
    new = row("a", state="CREATE_IN_PROGRESS", key="a2", replaces="a1", born=1, handle="", marks=Marks(healing=True))
    of = world([wanted("a")], [old, new], {"a1": seen("active", 2)}, status="COMPLETE", settled_revision=1)
    step = decide(of, wanted("a"))
    assert (described(step), new.replaced_by, new.marks) == ("record CREATE_COMPLETE", "a1", None)


@pytest.mark.parametrize("state", ["CHECK_FAILED", "CHECK_COMPLETE"])
def test_what_is_there_again_and_stands_for_its_resource_was_not_lost(state: str) -> None:
    """Found by the simulation (seed 50007587): replaced one day, it would have been kept for having been absent."""
    mine = row("a", state=state, marks=Marks(lost_at=LONG_AGO), judged_observation=1)
    of = world([wanted("a")], [mine], {"a1": seen("active", 2)}, status="COMPLETE", settled_revision=1)
    decided = decide(of, wanted("a"))
    assert mine.marks is None
    assert isinstance(decided, Settled | Step)


@pytest.mark.parametrize(
    ("facts", "decided"),
    [({"status": "FAILED"}, "waits: locked"), ({"status": "IN_PROGRESS", "action": "LOCK"}, "settled")],
    ids=["locked", "being locked"],
)
def test_a_creation_that_made_nothing_waits_for_the_end_of_the_lock(facts: dict[str, Any], decided: str) -> None:
    mine = unanswered("a", token="")
    of = world([wanted("a")], [mine], **{"revision": 2, "lock": {"level": "all"}, **facts})
    assert described(decide(of, wanted("a"))) == decided


def test_a_second_look_is_judged_although_the_row_has_judged_a_look_of_its_number() -> None:
    """Found by the simulation (seed 41040836): an observer had missed it before the answer to its update was stored,
    which was not, so the second look had the number of that answer; what was gone was never made again."""
    mine = row("a", judged_observation=4)
    of = world([wanted("a")], [mine], {"a1": absent(3)}, revision=1)
    frontier = Frontier(of, keys())
    (look,) = frontier.steps(NOW, 1)
    assert look.act is OBSERVE
    frontier.apply(look, outcome.conclude(of, look, absent().observation, NOW))
    of.looked.clear()  # the worker died before it acted on what it saw
    assert [described(step) for step in Frontier(of, keys()).steps(NOW, 1)] != []


def test_what_a_look_has_changed_is_read_by_none_while_it_waits() -> None:
    """Found by the simulation: each pass over a failed stack found it anew, and recorded those that read it."""
    mine, reader = row("a", revision=1), row("b", TEST, revision=2, requires=["a1"], resolved=1)
    rows = {"a1": seen(number=2, flavor="small", image="i")}
    halted: dict[str, Any] = {"revision": 2, "action": "UPDATE", "status": "FAILED", "settled_revision": 1}
    definitions = [wanted("a", flavor="large"), wanted("b", TEST, "a")]
    of = world(definitions, [mine, reader], rows, **halted)
    assert until_an_act(of) == []
    assert (mine.judged_observation, mine.changed, reader.resolved) == (1, 0, 1)
