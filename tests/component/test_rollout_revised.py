"""A newer revision that changes how a rollout proceeds, or takes its gates away, holds at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from homeostat.model.rollout import Rollout, RolloutState
from homeostat.store.stacks import rollouts
from tests.component.running import Service
from tests.component.test_definition_rollouts import Fleet
from tests.component.test_metadata_rollouts import Group
from tests.component.test_metadata_rollouts import resources as metadata_resources

Body = dict[str, Any]


class Metadata:
    """Members get new metadata."""

    def __init__(self, **more: Any) -> None:
        self.service: Any = Group(**{"count": 4, **more})

    def change(self, value: str, **more: Any) -> None:
        self.service.change(value, **more)
        self.service.live(20)

    def update(self, value: str, change: Callable[[Body], object]) -> None:
        """The same with a template that is changed by hand."""
        found = metadata_resources(value, **self.service.more)
        change(found)
        self.service.update(self.service.id, found)
        self.service.live(20)

    def reached(self) -> int:
        return int(self.service.values().count("2"))


class Definition(Metadata):
    """Members get a new definition."""

    names = {"1": "a", "2": "b"}

    def __init__(self, **more: Any) -> None:
        self.service = Fleet(**{"count": 4, "pattern": "rolling", **more})

    def change(self, value: str, **more: Any) -> None:
        self.service.change(self.names[value], **more)

    def update(self, value: str, change: Callable[[Body], object]) -> None:
        found = self.service.made(self.names[value], **self.service.more)
        change(found)
        self.service.update(self.service.id, found)
        self.service.live(30)

    def reached(self) -> int:
        return int(self.service.images().count("b"))


Kind = type[Metadata]
both = pytest.mark.parametrize("kind", [Metadata, Definition])


def rollout(service: Service, id: str) -> Rollout:
    with service.db.read() as tx:
        (found,) = rollouts.of_stack(tx, id).values()
    return found


def rollout_state(group: Metadata) -> str | None:
    """None where the rollout has ended, and its row is gone."""
    with group.service.db.read() as tx:
        return next((each.state for each in rollouts.of_stack(tx, group.service.id).values()), None)


def ended(group: Metadata) -> str:
    group.service.rest()
    return str(group.service.state(group.service.id))


def no_gate(found: Body) -> None:
    del found["wait"]


@both
def test_a_gate_that_is_taken_away_is_not_waited_for(kind: Kind) -> None:
    group = kind()
    group.change("2")
    assert group.reached() == 1
    group.update("2", no_gate)
    assert group.reached() == 4
    assert ended(group) == "UPDATE_COMPLETE"


@both
def test_a_gate_that_is_taken_away_with_its_handle_is_not_waited_for(kind: Kind) -> None:
    group = kind()
    group.change("2")

    def bare(found: Body) -> None:
        del found["wait"], found["handle"]

    group.update("2", bare)
    assert group.reached() == 4
    assert ended(group) == "UPDATE_COMPLETE"


@both
def test_a_condition_that_does_not_depend_on_the_group_any_more_is_no_gate(kind: Kind) -> None:
    group = kind()
    group.change("2")
    group.update("2", lambda found: found["wait"].pop("depends_on"))
    assert group.reached() == 4


@both
def test_a_shorter_time_holds_from_then_on(kind: Kind) -> None:
    group = kind()
    group.change("2", progress_deadline=3000)
    group.service.live(100)
    assert group.reached() == 1
    group.update("2", lambda found: found["group"]["update_policy"]["rollout"].update(progress_deadline=120))
    group.service.live(60)
    assert group.reached() == 1
    group.service.live(90)
    assert group.reached() == 0
    assert ended(group) == "UPDATE_FAILED"
    assert "within 120 s" in group.service.group_row.reason


@both
def test_a_shorter_time_of_the_condition_holds_from_then_on(kind: Kind) -> None:
    group = kind()
    group.change("2")
    group.update("2", lambda found: found["wait"]["properties"].update(timeout=40))
    group.service.live(30)
    assert group.reached() == 0
    assert ended(group) == "UPDATE_FAILED"
    assert "within 40 s" in group.service.group_row.reason


@both
def test_other_steps_hold_from_the_next_one_on(kind: Kind) -> None:
    group = kind()
    group.change("2")
    group.service.report(0)
    group.service.live(20)
    assert group.reached() == 2
    group.update("2", lambda found: found["group"].update(update_policy=_policy(found, steps=["1", "100%"])))
    group.service.report(1)
    group.service.live(30)
    assert group.reached() == 4


def _policy(found: Body, **more: Any) -> Body:
    return {"rollout": {**(found["group"].get("update_policy") or {}).get("rollout", {}), **more}}


@both
def test_an_approval_that_is_not_asked_for_any_more_is_not_waited_for(kind: Kind) -> None:
    group = kind(approval=True)
    group.change("2")
    group.service.report(0)
    group.service.live(20)
    assert group.reached() == 1
    group.update("2", lambda found: found["group"]["update_policy"]["rollout"].update(approval=False))
    assert group.reached() == 2


@both
def test_a_bake_time_that_is_taken_away_is_over(kind: Kind) -> None:
    group = kind(bake_time=3000)
    group.change("2")
    group.service.report(0)
    assert group.reached() == 1
    group.update("2", lambda found: found["group"]["update_policy"]["rollout"].update(bake_time=0))
    assert group.reached() == 2


@both
def test_more_failures_may_be_allowed_in_the_middle(kind: Kind) -> None:
    group = kind()
    group.change("2")
    group.update("2", lambda found: found["group"].update(update_policy=_policy(found, max_failures=1)))
    group.service.report(0, "FAILURE")
    group.service.live(20)
    assert group.reached() == 2


@both
def test_all_at_once_ends_the_steps(kind: Kind) -> None:
    group = kind()
    group.change("2")

    def at_once(found: Body) -> None:
        found["group"]["properties"]["metadata_update_pattern"] = "immediate"
        found["group"].pop("update_policy", None)

    group.update("2", at_once)
    assert group.reached() == 4
    assert ended(group) == "UPDATE_COMPLETE"


@both
def test_a_gate_that_comes_in_the_middle_is_one(kind: Kind) -> None:
    group = kind(gated=False, approval=True)
    group.change("2")
    assert group.reached() == 1
    group.service.more |= {"gated": True, "approval": False}
    group.update("2", lambda _: None)
    assert group.reached() == 1
    group.service.report(0)
    group.service.live(20)
    assert group.reached() == 2


@both
def test_another_size_leaves_the_time_of_the_step_as_it_is(kind: Kind) -> None:
    group = kind()
    group.change("2")
    before = rollout(group.service, group.service.id).step_at
    group.update("2", lambda found: found["wait"]["properties"].update(count=2))
    found = rollout(group.service, group.service.id)
    assert found.step_at == before
    assert [each.count for each in found.settings.gates] == [2]


@both
def test_a_rollout_that_is_held_goes_on_as_the_newest_revision_has_it(kind: Kind) -> None:
    group = kind(on_failure="hold")
    group.change("2")
    group.service.report(0, "FAILURE")
    group.update("2", no_gate)
    assert group.reached() == 1
    group.service.rollouts.resume(group.service.group_row.key)
    group.service.live(60)
    assert group.reached() == 4


@pytest.mark.heavy
@pytest.mark.parametrize(("before_s", "after_s", "fails"), [(3000, 120, True), (120, 3000, False)])
def test_another_time_holds_at_once_for_members_that_are_being_given_the_definition(
    before_s: int, after_s: int, fails: bool
) -> None:
    """The first member takes long to be made: its time counts from the newest update."""
    group = Definition()
    group.service.cloud.behaviour = replace(group.service.cloud.behaviour, build_s=400.0)
    group.change("2", progress_deadline=before_s)
    group.service.live(50)
    group.update("2", lambda found: found["group"]["update_policy"]["rollout"].update(progress_deadline=after_s))
    group.service.live(130)
    assert ("timed out" in group.service.group_row.reason.lower()) == fails
    assert (rollout_state(group) == RolloutState.RUNNING) != fails
