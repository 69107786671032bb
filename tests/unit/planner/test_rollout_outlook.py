"""Where rollouts of metadata stand: what they wait for, until when, and what users can do."""

from dataclasses import replace
from typing import Any

import pytest

from homeostat.model.rollout import PROGRESS_S, Rollout, RolloutSettings, RolloutState, Steering, WaitGate
from homeostat.planner.report.rollouts import Awaited, extent, outlook

NOW = 1000.0
GATED = RolloutSettings(bake_s=30.0, gates=(WaitGate("c", "h", 60.0),))
STEP = Rollout("k", "s", 0, "grp", "m", "running", GATED, step=2, total=10, active=4, target=4, step_at=NOW - 20)
ENDINGS = ("promote", "abort", "roll-back")


def steered(approval: bool = True, **changed: Any) -> Rollout:
    return replace(STEP, settings=replace(GATED, approval=approval), reported_at=NOW - 40, **changed)


@pytest.mark.parametrize(
    ("rollout", "awaits", "due_s"),
    [
        (replace(STEP, step=0, active=0, target=0), Awaited.WORKER, None),
        (replace(STEP, active=3), Awaited.WORKER, None),
        (STEP, Awaited.REPORTS, 40.0),
        (replace(STEP, subject=3, giving=7), Awaited.MEMBERS, None),
        (replace(STEP, step_at=NOW - 60), Awaited.WORKER, None),
        (replace(STEP, settings=RolloutSettings()), Awaited.WORKER, None),
        (replace(STEP, reported_at=NOW - 10), Awaited.BAKE_TIME, 20.0),
        (replace(STEP, reported_at=NOW - 30), Awaited.WORKER, None),
        (steered(), Awaited.APPROVAL, None),
        (steered(approved=2), Awaited.WORKER, None),
        (steered(active=10, target=10), Awaited.WORKER, None),
        (replace(STEP, state=RolloutState.PAUSED), Awaited.USER, None),
        (replace(STEP, state=RolloutState.HELD), Awaited.USER, None),
        (replace(STEP, state=RolloutState.ABORTED), Awaited.NOTHING, None),
    ],
)
def test_what_a_rollout_waits_for(rollout: Rollout, awaits: Awaited, due_s: float | None) -> None:
    found = outlook(rollout, NOW)
    assert (found.awaits, None if found.due_at is None else found.due_at - NOW) == (awaits, due_s)
    assert bool(found.released_by) == (awaits is not Awaited.NOTHING)


def test_a_stack_that_is_held_is_waited_for_unless_a_user_is() -> None:
    assert outlook(STEP, NOW, frozen=True).awaits is Awaited.STACK
    assert outlook(replace(STEP, state=RolloutState.PAUSED), NOW, frozen=True).awaits is Awaited.USER


@pytest.mark.parametrize(
    ("gated", "reported", "awaits"),
    [(True, False, Awaited.REPORTS), (True, True, Awaited.CHECKS), (False, False, Awaited.CHECKS)],
)
def test_urls_are_waited_for_once_the_members_have_reported(gated: bool, reported: bool, awaits: Awaited) -> None:
    settings = replace(GATED, gates=GATED.gates if gated else (), checks=("http://192.0.2.1/",))
    found = outlook(replace(STEP, settings=settings), NOW, reported=reported)
    assert found.awaits is awaits
    assert found.due_at == NOW - 20 + (60 if gated else PROGRESS_S)


@pytest.mark.parametrize(
    ("rollout", "commands"),
    [
        (STEP, ("pause", *ENDINGS)),
        (steered(), ("approve", "pause", *ENDINGS)),
        (steered(approved=2), ("pause", *ENDINGS)),
        (replace(STEP, state=RolloutState.PAUSED), ("resume", *ENDINGS)),
        (replace(STEP, state=RolloutState.HELD), ("resume", *ENDINGS)),
        (replace(STEP, state=RolloutState.SUCCEEDED), ()),
    ],
)
def test_what_a_user_can_do(rollout: Rollout, commands: tuple[str, ...]) -> None:
    found = outlook(rollout, NOW)
    assert tuple(each.command for each in found.steering) == commands


def test_every_way_of_steering_is_possible_in_some_state() -> None:
    assert all(set(each.states) <= set(RolloutState) and each.states for each in Steering)
    assert {each for each in Steering if each.goes_forward} == {Steering.APPROVE, Steering.RESUME, Steering.PROMOTE}


def test_how_far_it_is() -> None:
    assert extent(STEP) == "4 of 10 members have the new metadata"
    assert extent(replace(STEP, active=12)) == "12 of 12 members have the new metadata"


@pytest.mark.parametrize(
    ("steps", "active", "found"),
    [
        ((), 1, [2, 3, 4]),
        (("1", "1%", "5%", "100%"), 0, [1, 5, 100]),
        (("2",), 2, [100]),
        ((), 100, []),
    ],
)
def test_the_steps_to_come_are_known_ahead(steps: tuple[str, ...], active: int, found: list[int]) -> None:
    assert RolloutSettings(steps=steps).targets(active, 100, 3) == found
