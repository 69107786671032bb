"""What is left of stacks whose newest revision has failed, and of what could not be made in them."""

from dataclasses import replace
from typing import Any

from tests.unit.planner.worlds import SERVER, TEST, absent, first_steps, row, seen, until_an_act, wanted, world

from homeostat.model.rollout import Rollout, RolloutSettings, RolloutState

GROUP = "OS::Heat::ResourceGroup"

HALTED: dict[str, Any] = {"revision": 2, "action": "UPDATE", "status": "FAILED", "settled_revision": 1}


def test_nothing_is_made_in_a_failed_stack_that_requires_what_could_not_be_made() -> None:
    """Found by the simulation: a replacement would have been made with an id that is none, by which pass came first."""
    rows = [
        row("a", revision=3, state="CREATE_FAILED", handle=""),
        row("b", key="b2", revision=2, state="INIT_COMPLETE", handle="", replaces="b1", born=2),
    ]
    assert first_steps(world([wanted("a"), wanted("b", SERVER, "a")], rows, **{**HALTED, "revision": 3})) == {}


def test_what_is_lost_in_a_failed_stack_and_cannot_be_made_again_says_so() -> None:
    """Found by the simulation: it was COMPLETE, with the id of nothing, for as long as what it requires failed."""
    rows = [row("a", revision=2, state="CREATE_FAILED", handle=""), row("b", handle="gone")]
    of = world(
        [wanted("a"), wanted("b", SERVER, "a")],
        rows,
        {"b1": absent()},
        **HALTED,
        converge=True,
        looked={"b1"},
    )
    assert until_an_act(of) == ["b1: record CHECK_FAILED"]


def test_what_follows_a_broken_thing_is_made_when_that_is_gone_though_another_failed() -> None:
    """Found by the simulation: it was blocked by what had failed, and nothing queued it when its predecessor went."""
    rows = [
        row("a", revision=3, state="CREATE_FAILED"),
        row("b", state="DELETE_IN_PROGRESS", reason="broken"),
        row("b", key="b2", state="INIT_COMPLETE", handle="", replaces="b1", born=2),
    ]
    of = world([wanted("a"), wanted("b", SERVER, "a")], rows, {"b1": absent()}, **{**HALTED, "revision": 3})
    assert until_an_act(of) == ["b1: removed", "b2: create"]


def test_no_rollout_follows_one_that_has_ended_in_a_failed_stack() -> None:
    """Found by the simulation: its group was begun and complete, again and again, in a pass without an end."""
    of_group: dict[str, Any] = {"count": 4, "resource_def": {"type": SERVER}}
    group = replace(wanted("a", TEST), type=GROUP, properties=of_group)
    rollout = Rollout("a1", "s1", 0, "a", "h", RolloutState.ROLLED_BACK, RolloutSettings(), subject=2)
    of = world(
        [group],
        [row("a", GROUP, "UPDATE_COMPLETE", properties=of_group, revision=2)],
        {"a1": seen("complete", staged=5)},
        **HALTED,
        rollouts={"a1": rollout},
    )
    assert first_steps(of) == {}
