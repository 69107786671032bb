"""Groups of instances: what stands still in a rolling update, and a creation that waits for signals."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from tests.component.fleets import AWS, HEAT, Fleet, cfn, creation
from tests.component.running import PROJECT, Service

# -- what stands still -------------------------------------------------------------------------------------------------


def test_alarms_are_ignored_while_their_process_is_suspended() -> None:
    fleet = Fleet(SuspendProcesses=["AlarmNotification", "Launch"])
    fleet.change("two")
    fleet.signal(fleet.id, "grow")
    said = [each.reason for each in fleet.events(fleet.id, "grow") if each.action == "SIGNAL"]
    assert said == ["Signal ignored: a rolling update has suspended AlarmNotification"]
    for number in (2, 1, 0):
        fleet.say(number)
    assert (fleet.status, fleet.images()) == ("UPDATE_COMPLETE", "ttt")
    fleet.signal(fleet.id, "grow")
    fleet.live(10)
    assert fleet.images() == "tttt"


@pytest.mark.parametrize("process", ["HealthCheck", "ReplaceUnhealthy"])
def test_members_are_healed_after_the_update_while_that_is_suspended(process: str) -> None:
    fleet = Fleet(SuspendProcesses=[process])
    fleet.change("two")
    gone = fleet.handle(0)
    fleet.cloud.vanish(gone)
    fleet.live(70)
    assert fleet.handle(0) == gone, "nobody has made another one"
    fleet.say(2)
    assert fleet.images() == "tot", "the next batch takes it first, since it is away, and makes it anew"
    assert fleet.handle(0) != gone
    fleet.say(0)
    fleet.say(1)
    assert fleet.status == "UPDATE_COMPLETE"


def test_what_broke_and_was_changed_before_is_healed_in_the_end() -> None:
    fleet = Fleet(SuspendProcesses=["ReplaceUnhealthy"])
    fleet.change("two")
    fleet.say(2)
    gone = fleet.handle(2)
    fleet.cloud.vanish(gone)
    fleet.live(60)
    fleet.say(1)
    fleet.say(0)
    fleet.live(70)
    assert fleet.status == "UPDATE_COMPLETE"
    assert fleet.handle(2) != gone
    assert len(fleet.servers()) == 3


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"SuspendProcesses": ["Everything"]}, "'Everything' is not an allowed value .*AlarmNotification.*Terminate"),
        ({"MinSuccessfulInstancesPercent": 101}, "out of range"),
        ({"PauseTime": "PT2H"}, "more than an hour"),
        ({"PauseTime": "PT0S"}, "give more than PT0S"),
        ({"WaitOnResourceSignals": "perhaps"}, "WaitOnResourceSignals"),
    ],
)
def test_wrong_update_policies_are_refused(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected, match=message) as caught:
        Fleet(**policy)
    assert caught.value.path[:4] == ("Resources", "group", "UpdatePolicy", "AutoScalingRollingUpdate")


# -- creation ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AWS, HEAT])
def test_a_group_is_complete_once_so_many_members_have_signalled(kind: str) -> None:
    fleet = Fleet(kind=kind, creation=creation())
    fleet.live(300)
    assert fleet.status == "CREATE_IN_PROGRESS"
    fleet.say(1)
    fleet.say(1)
    assert fleet.status == "CREATE_IN_PROGRESS", "it counts once"
    fleet.say(0)
    assert fleet.status == "CREATE_COMPLETE"
    fleet.actions.converge(fleet.id)
    fleet.rest()
    assert fleet.status == "UPDATE_COMPLETE"


def test_one_signal_within_five_minutes_is_the_default() -> None:
    fleet = Fleet(creation={"ResourceSignal": {}})
    fleet.live(330)
    assert fleet.status == "CREATE_FAILED"
    assert "Received 0 SUCCESS signal(s) out of 1." in fleet.reason
    fleet = Fleet(creation={"ResourceSignal": {}})
    fleet.say(2)
    assert fleet.status == "CREATE_COMPLETE"


def test_too_many_failures_end_a_creation() -> None:
    fleet = Fleet(4, creation=creation(4, percent=75))
    fleet.say(3, "FAILURE", "disk is full")
    assert fleet.status == "CREATE_IN_PROGRESS"
    fleet.say(2, "FAILURE", "disk is full, too")
    assert fleet.status == "CREATE_FAILED"
    assert "needs 3: 2 failed: disk is full, too; 3 failed: disk is full" in fleet.reason


def test_a_share_of_the_signals_is_enough_at_the_end_of_the_time() -> None:
    fleet = Fleet(4, creation=creation(4, "PT5M", 50))
    fleet.say(0)
    fleet.say(1)
    assert fleet.status == "CREATE_IN_PROGRESS"
    fleet.live(330)
    assert fleet.status == "CREATE_COMPLETE"


def test_a_failed_creation_is_mended_by_an_update() -> None:
    fleet = Fleet(1, creation=creation(1, "PT1M"))
    fleet.live(100)
    assert fleet.status == "CREATE_FAILED"
    fleet.change("two")
    fleet.say(0)
    assert fleet.status == "UPDATE_COMPLETE"


def test_a_group_that_is_scaled_in_the_middle_of_its_creation_waits_on() -> None:
    fleet = Fleet(2, creation=creation(2), grows="group")
    fleet.say(0)
    fleet.signal(fleet.id, "grow")
    fleet.live(10)
    assert (fleet.images(), fleet.status) == ("ooo", "CREATE_IN_PROGRESS")
    fleet.say(2)
    assert fleet.status == "CREATE_COMPLETE", "what was said before counts"


def test_a_creation_policy_that_asks_nothing_waits_for_nothing() -> None:
    assert Fleet(creation={}).status == "CREATE_COMPLETE"


def test_no_property_stands_for_the_section() -> None:
    template = cfn("one", 1)
    template["Resources"]["group"]["Properties"]["(creation policy)"] = "text"
    with pytest.raises(Rejected, match="Unknown Property"):
        Service().stack_service.create(PROJECT, None, "web", StackRequest(template))


@pytest.mark.parametrize("value", ["text", ["text"], 1, {"Ref": "launch"}])
@pytest.mark.parametrize(
    ("name", "section"), [("(update policy)", "update_policy"), ("(creation policy)", "CreationPolicy")]
)
def test_internal_properties_are_refused_with_what_to_write_instead(name: str, section: str, value: Any) -> None:
    template = cfn("one", 2)
    del template["Resources"]["group"]["UpdatePolicy"]
    template["Resources"]["group"]["Properties"][name] = value
    with pytest.raises(
        Rejected, match=f"Unknown Property .{name[1:-1]}.: give the group a section {section}"
    ) as caught:
        Service().stack_service.create(PROJECT, None, "web", StackRequest(template))
    assert caught.value.path[:2] == ("Resources", "group")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (creation(0), "out of range"),
        (creation("many"), "Count"),
        (creation(timeout="PT13H"), "more than 12 hours"),
        (creation(timeout="soon"), "is no time such as"),
        (creation(timeout="PT0S"), "give more than PT0S"),
        (creation(percent=-1), "out of range"),
        ({"ResourceSignals": {}}, "Unknown Property ResourceSignals"),
        ({"ResourceSignal": {"Count": {"Fn::GetAtt": ["group", "InstanceList"]}}}, "known before any resource"),
    ],
)
def test_wrong_creation_policies_are_refused(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected, match=message) as caught:
        Fleet(creation=policy)
    assert caught.value.path[:3] == ("Resources", "group", "CreationPolicy")
