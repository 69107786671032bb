"""Rollouts of a new definition: members that die, report early, read metadata, are scaled, or come in another order."""

from typing import Any
from unittest.mock import patch

import pytest

from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.desired import members as desired_members
from homeostat.store import schema
from tests.component.test_definition_rollouts import Fleet, resources


def test_one_after_the_other() -> None:
    fleet = Fleet(pattern="rolling")
    fleet.change("b")
    seen = [fleet.images()]
    for number in range(4):
        fleet.report(number)
        seen.append(fleet.images())
    assert seen == ["baaa", "bbaa", "bbba", "bbbb", "bbbb"]
    fleet.rest()
    assert fleet.state(fleet.id) == "UPDATE_COMPLETE"


def test_an_alarm_does_not_wait_for_the_members_of_the_step() -> None:
    fleet = Fleet(gated=True, steps=["2", "100%"], alarms=["handle"])
    fleet.cloud.behaviour.build_s = 50
    fleet.change("b", 10)
    assert "a" in fleet.images()
    fleet.signal(fleet.id, "handle", {"current": "alarm", "previous": "ok", "alarm_name": "load"})
    fleet.live(1)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_FAILED")
    assert "load" in fleet.group_row.reason


@pytest.mark.parametrize(("applies_to", "metadata"), [("definition", "2"), ("both", "1")])
def test_new_metadata_come_with_the_new_definition_or_at_once(applies_to: str, metadata: str) -> None:
    fleet = Fleet(steps=["1", "100%"], metadata="1", applies_to=applies_to)
    fleet.change("b", metadata="2")
    assert fleet.images() == "baaa"
    assert fleet.values() == "2" + 3 * metadata
    fleet.report(0)
    for number in range(1, 4):
        fleet.report(number)
    fleet.rest()
    assert (fleet.images(), fleet.values(), fleet.state(fleet.id)) == ("bbbb", "2222", "UPDATE_COMPLETE")


def test_both_go_back_together() -> None:
    fleet = Fleet(steps=["2", "100%"], metadata="1", applies_to="both")
    fleet.change("b", metadata="2")
    assert (fleet.images(), fleet.values()) == ("bbaa", "2211")
    fleet.report(0, "FAILURE", "no")
    fleet.rest()
    assert (fleet.images(), fleet.values(), fleet.state(fleet.id)) == ("aaaa", "1111", "UPDATE_FAILED")


def test_both_need_not_change_together() -> None:
    fleet = Fleet(steps=["2", "100%"], metadata="1", applies_to="both", gated=False, approval=True)
    fleet.change("a", metadata="2")
    assert (fleet.images(), fleet.values()) == ("aaaa", "2211")
    fleet.steer("approve")
    fleet.rest()
    fleet.change("b", metadata="2")
    assert (fleet.images(), fleet.values()) == ("bbaa", "2222")
    fleet.steer("approve")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbbb", "UPDATE_COMPLETE")


def test_a_canary_that_dies_is_made_again_and_has_to_report() -> None:
    fleet = Fleet(steps=["1", "100%"])
    fleet.change("b")
    first = fleet.members()[0].handle
    fleet.cloud.vanish(first)
    fleet.live(120)
    assert (fleet.images(), fleet.members()[0].handle != first) == ("baaa", True)
    fleet.report(0)
    assert fleet.images() == "bbbb"


def test_canaries_in_several_shards_that_die_are_made_again_and_have_to_report() -> None:
    with patch.object(desired_members, "MEMBERS_PER_SHARD", 2):
        fleet = Fleet(count=5, steps=["1", "3", "100%"])
        assert fleet.stack(fleet.child().id).shards == 3
        fleet.change("b")
        fleet.report(0)
        assert fleet.images() == "bbbaa"
        fleet.cloud.vanish(fleet.members()[2].handle)
        fleet.report(1, seconds=120)
        assert fleet.images() == "bbbaa"
        fleet.report(2)
        assert fleet.images() == "bbbbb"


def test_a_convergence_reaches_members_that_all_seem_to_be_gone() -> None:
    fleet = Fleet(steps=["1", "100%"], progress_deadline=86400)
    fleet.change("b")
    gone = {each.handle for each in fleet.members()}
    for each in gone:
        fleet.cloud.vanish(each)
    fleet.live(90)
    assert {each.handle for each in fleet.members()} == gone
    fleet.actions.converge(fleet.id)
    fleet.live(60)
    assert not gone & {each.handle for each in fleet.members()}
    fleet.report(0)
    assert fleet.images() == "bbbb"


def test_what_a_new_member_says_before_its_id_is_known_counts() -> None:
    fleet = Fleet(steps=["1", "100%"])
    fleet.cloud.behaviour.build_s = 30
    fleet.change("b", 5)
    (new,) = sorted({*fleet.cloud.things("server")} - {row.handle for row in fleet.members()[1:]})[-1:]
    with fleet.db.write() as tx:  # as if it had come before the row of the member was stored
        tx.execute(schema.active_metadata_updates.delete())
    fleet.signal(fleet.id, "handle", {"status": "FAILURE", "reason": "too early", "data": new})
    fleet.live(60)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_FAILED")
    assert "too early" in fleet.group_row.reason


def test_a_worker_that_dies_between_the_step_and_its_members_loses_nothing() -> None:
    fleet = Fleet(steps=["2", "100%"])
    fleet.update(fleet.id, resources("b", **fleet.more))
    fleet.rollouts.round()
    assert fleet.images() == "aaaa"
    fleet.rollouts = RolloutEngine(fleet.db)  # another process
    fleet.live(30)
    assert fleet.images() == "bbaa"


def scaled(image: str, count: int = 4, **policy: Any) -> dict[str, Any]:
    """A group that scales, with a policy that adds two."""
    group_ = {"get_resource": "group"}
    return {
        "config": {
            "type": "AWS::AutoScaling::LaunchConfiguration",
            "properties": {"ImageId": image, "InstanceType": "small"},
        },
        "group": {
            "type": "AWS::AutoScaling::AutoScalingGroup",
            "properties": {
                "AvailabilityZones": ["nova"],
                "LaunchConfigurationName": {"get_resource": "config"},
                "MinSize": 1,
                "MaxSize": 9,
                "DesiredCapacity": count,
                "Cooldown": 1,
                "MetadataUpdatePattern": "canary",
            },
            "update_policy": {"rollout": {"applies_to": "definition", **policy}},
        },
        "more": {
            "type": "AWS::AutoScaling::ScalingPolicy",
            "properties": {
                "AutoScalingGroupName": group_,
                "AdjustmentType": "ChangeInCapacity",
                "ScalingAdjustment": "2",
                "Cooldown": "1",
            },
        },
    }


def test_instances_get_another_launch_configuration_step_by_step_while_signals_scale_them() -> None:
    fleet = Fleet(scaled, count=3, steps=["1", "50%", "100%"], approval=True)
    fleet.change("b")
    assert fleet.images() == "baa"
    fleet.signal(fleet.id, "more")
    fleet.live(60)
    assert fleet.images() == "baaaa"
    fleet.steer("approve")
    assert fleet.images() == "bbbaa"
    fleet.steer("approve")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbbbb", "UPDATE_COMPLETE")
    fleet.change("c")
    fleet.steer("roll_back")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbb", "UPDATE_FAILED"), "the size of the template"


def test_a_canary_that_is_removed_before_it_reports_is_followed_by_another_one() -> None:
    fleet = Fleet(made=shrinking, gated=True, steps=["1", "100%"])
    fleet.change("b")
    assert fleet.images() == "baaa"
    fleet.change("b", 60, count=3, removed=["0"])
    assert fleet.images() == "baa"
    fleet.report(0)
    assert fleet.images() == "bbb"


def shrinking(image: str, removed: list[str] | None = None, **more: Any) -> dict[str, Any]:
    made = resources(image, **more)
    made["group"]["properties"]["removal_policies"] = [{"resource_list": removed or []}]
    return made


def test_a_locked_stack_whose_rollout_has_been_ended_is_locked_and_members_go_back_once_it_is_not() -> None:
    fleet = Fleet(steps=["1", "100%"], on_failure="hold")
    fleet.change("b")
    fleet.report(0, "FAILURE", "no")
    assert fleet.images() == "baaa"
    fleet.stack_service.cancel(fleet.id, roll_back=False)
    lock = {"level": "all", "owner": "ann", "owner_id": None, "reason": "disks", "at": 0.0, "expires_at": None}
    fleet.actions.lock(fleet.id, lock, lambda _: True)
    fleet.live(60)
    assert (fleet.images(), fleet.state(fleet.id)) == ("baaa", "LOCK_COMPLETE")
    fleet.actions.unlock(fleet.id, lambda _: True)
    fleet.live(60)
    fleet.rest()
    assert fleet.images() == "aaaa"
