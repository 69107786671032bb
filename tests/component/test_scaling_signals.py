"""Signals to scaling policies: in any state, by all ways, within bounds and cooldowns, and none of them lost."""

from datetime import datetime
from typing import Any

import pytest

from homeostat.builtin.signals import metadata_of
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.resources.scaling_adjustments import Adjustment, AdjustmentType, adjusted
from homeostat.store import schema
from tests.component.maintained import lock, unlock
from tests.component.marked import OFF, mark
from tests.component.running import Service, server

CHANGE, EXACT, PERCENT = AdjustmentType.CHANGE, AdjustmentType.EXACT, AdjustmentType.PERCENT


@pytest.mark.parametrize(
    ("size", "type", "amount", "step", "wanted"),
    [
        (3, CHANGE, 1, 0, 4),
        (3, CHANGE, -2, 0, 1),
        (3, CHANGE, 100, 0, 10),
        (3, CHANGE, -100, 0, 1),
        (3, EXACT, 7, 0, 7),
        (3, EXACT, 0, 0, 1),
        (4, PERCENT, 50, 0, 6),
        (5, PERCENT, 30, 0, 6),
        (5, PERCENT, -30, 0, 4),
        (2, PERCENT, 10, 0, 3),
        (2, PERCENT, -10, 0, 1),
        (9, PERCENT, 0, 0, 9),
        (4, PERCENT, 25, 3, 7),
        (8, PERCENT, -25, 3, 5),
        (8, PERCENT, 50, 3, 10),
    ],
)
def test_sizes(size: int, type: AdjustmentType, amount: float, step: int, wanted: int) -> None:
    assert adjusted(size, Adjustment("group", type, amount, step), 1, 10) == wanted


def resources(
    amount: float = 1, low: int = 1, high: int = 5, group: dict[str, Any] | None = None, **policy: Any
) -> dict[str, Any]:
    bounds = {"min_size": low, "max_size": high, "resource": server(), **(group or {})}
    given = {"auto_scaling_group_id": {"get_resource": "group"}, "scaling_adjustment": amount}
    return {
        "group": {"type": "OS::Heat::AutoScalingGroup", "properties": bounds},
        "policy": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {**given, "adjustment_type": "change_in_capacity", **policy},
        },
    }


def scaled(amount: float = 1, **more: Any) -> tuple[Service, str]:
    """A group of servers at rest, with a policy."""
    service = Service()
    stack_id = service.create(resources(amount, **more))
    service.rest()
    return service, stack_id


def signals_of(service: Service) -> list[str]:
    with service.db.read() as tx:
        rows = tx.execute(schema.event.select().where(schema.event.c.action == "SIGNAL"))
        return [each.reason for each in rows]


def test_a_signal_makes_the_group_larger_and_another_smaller() -> None:
    service, stack_id = scaled(2)
    alarm = {"current": "alarm", "previous": "ok", "reason": "it is hot"}
    assert service.signal(stack_id, "policy", alarm).name == "policy"
    service.rest()
    assert len(service.servers()) == 3
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert signals_of(service) == ["Signal: alarm state changed from ok to alarm (it is hot)"]
    service.update(stack_id, resources(-1))
    service.rest()
    service.put(service.attribute(stack_id, "policy", "alarm_url"), None, "POST")
    service.rest()
    assert len(service.servers()) == 2


def test_signals_that_come_together_all_count() -> None:
    service, stack_id = scaled(1)
    for _ in range(3):
        service.signals.native("p", "scaling_policy", service.row(stack_id, "policy").handle, None)
    service.rest()
    assert len(service.servers()) == 4


def test_a_group_keeps_to_its_bounds() -> None:
    service, stack_id = scaled(10)
    for _ in range(2):
        service.signal(stack_id, "policy")
        service.rest()
        assert len(service.servers()) == 5
    assert len(signals_of(service)) == 1, "a signal that changes nothing leaves no event"


def test_the_cooldown_of_a_policy_holds_for_the_group_and_ends() -> None:
    service, stack_id = scaled(1, cooldown=60)
    service.signal(stack_id, "policy")
    service.live(30)
    service.signal(stack_id, "policy")
    service.live(10)
    assert len(service.servers()) == 2
    service.live(21)
    service.signal(stack_id, "policy")
    service.live(10)
    assert len(service.servers()) == 3


def test_what_the_template_says_of_the_size_starts_the_groups_cooldown() -> None:
    service, stack_id = scaled(1, group={"cooldown": 100})
    service.signal(stack_id, "policy")
    service.live(5)
    assert len(service.servers()) == 1, "it was created just now"
    service.live(100)
    service.signal(stack_id, "policy")
    service.live(5)
    assert len(service.servers()) == 2


def test_the_metadata_of_a_group_say_until_when_it_cools_down() -> None:
    service, stack_id = scaled(1, group={"cooldown": 100})
    with service.db.read() as tx:
        metadata = metadata_of(tx, "p", service.row(stack_id, "group"), None)
    ((end, reason),) = metadata["cooldown_end"].items()
    at = datetime.strptime(f"{end}+0000", "%Y-%m-%dT%H:%M:%S.%f%z")  # a fraction is asked for by those that read it
    assert at.timestamp() == pytest.approx(service.clock.time + 100, abs=5)
    assert reason == "exact_capacity : 1"


def test_a_policy_without_a_cooldown_has_that_of_its_group_and_one_with_zero_none() -> None:
    service, stack_id = scaled(1, group={"cooldown": 100}, cooldown=0)
    service.live(100)
    for size in (2, 3):
        service.signal(stack_id, "policy")
        service.live(5)
        assert len(service.servers()) == size


def test_a_signal_is_taken_in_the_middle_of_a_creation() -> None:
    service = Service()
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 20}}
    stack_id = service.create(resources(1, group={"resource": slow}))
    policy = {**resources()["policy"]["properties"], "auto_scaling_group_id": "group"}
    beside = {**resources(1, group={"resource": slow}), "policy": {**resources()["policy"], "properties": policy}}
    service.update(stack_id, beside)
    service.live(3)
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    service.signal(stack_id, "policy")
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert list(service.states(service.child().id).values()) == ["CREATE_COMPLETE"] * 2


def test_a_signal_in_the_middle_of_a_rolling_update_lets_it_go_on() -> None:
    service = Service()
    slow = {"type": "OS::Heat::TestResource", "properties": {"value": "one", "wait_secs": 5}}
    stack_id = service.create(resources(1, 3, group={"resource": slow}))
    service.rest()
    changed = {**slow, "properties": {"value": "two", "wait_secs": 5}}
    service.update(stack_id, resources(1, 3, group={"resource": changed}))
    service.live(2)
    service.signal(stack_id, "policy")
    service.rest()
    rows = service.rows(service.child().id)
    assert [row.properties["value"] for row in rows] == ["two"] * 4
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_a_signal_in_the_middle_of_a_snapshot_waits_for_its_end() -> None:
    service = Service(CloudBehaviour(snapshot_s=20.0))
    stack_id = service.create(resources())
    service.rest()
    id = str(service.snapshots.take(stack_id, "before").id)
    service.live(5)
    assert service.child().action == "SNAPSHOT"
    for _ in range(2):
        service.signal(stack_id, "policy")
    service.live(5)
    assert (waiting(service), len(service.servers())) == (2, 1)
    service.rest()
    service.live(5)
    assert (waiting(service), len(service.servers())) == (0, 3)
    with service.db.read() as tx:
        assert tx.execute(schema.snapshot.select().where(schema.snapshot.c.id == id)).one().status == "COMPLETE"
    assert len(signals_of(service)) == 2


def test_signals_that_wait_are_counted_and_refused_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.convergence.members.scaling.DEFERRED_MAX", 2)
    service = Service(CloudBehaviour(snapshot_s=20.0))
    stack_id = service.create(resources())
    service.rest()
    service.snapshots.take(stack_id, "before")
    service.live(5)
    for _ in range(2):
        service.signal(stack_id, "policy")
    with pytest.raises(Rejected, match="2 signals wait until SNAPSHOT of the group ends"):
        service.signal(stack_id, "policy")
    service.delete(stack_id)
    service.rest()
    service.live(5)
    assert waiting(service) == 0


def waiting(service: Service) -> int:
    with service.db.read() as tx:
        return len(tx.execute(schema.deferred_signal.select()).all())


def test_a_locked_stack_ignores_signals_and_a_suspended_one_refuses_them() -> None:
    service, stack_id = scaled(1)
    lock(service, stack_id, "stacks")
    service.signal(stack_id, "policy")
    service.rest()
    assert len(service.servers()) == 1
    assert "Signal ignored: the stack is locked" in signals_of(service)[0]
    unlock(service, stack_id)
    service.rest()
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    with pytest.raises(Rejected, match="during SUSPEND is not supported"):
        service.signal(stack_id, "policy")
    last = service.events(stack_id, "policy")[-1]
    assert (last.action, last.status, last.reason) == ("SUSPEND", "COMPLETE", "Cannot signal resource during SUSPEND")


def test_what_is_gone_cannot_be_scaled() -> None:
    service, stack_id = scaled(1)
    handle = service.row(stack_id, "policy").handle
    service.delete(stack_id)
    with pytest.raises(Rejected, match=r"not available|not supported"):
        service.signals.native("p", "scaling_policy", handle, None)


def test_a_tree_that_would_be_too_large_is_refused_with_the_number() -> None:
    service, stack_id = scaled(1000, high=10_000_000)
    service.scaling._trees.resources_max = 500
    with pytest.raises(Rejected, match=r"would have .* resources, at most 500"):
        service.signal(stack_id, "policy")
    service.rest()
    assert len(service.servers()) == 1


def test_a_group_of_servers_by_aws_scales() -> None:
    service = Service()
    launch = {"ImageId": "debian", "InstanceType": "small"}
    group = {"AvailabilityZones": ["nova"], "LaunchConfigurationName": {"get_resource": "launch"}}
    given = {"AutoScalingGroupName": {"get_resource": "group"}, "ScalingAdjustment": 50}
    stack_id = service.create(
        {
            "launch": {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": launch},
            "group": {
                "type": "AWS::AutoScaling::AutoScalingGroup",
                "properties": {**group, "MinSize": 2, "MaxSize": 9, "DesiredCapacity": 4},
            },
            "policy": {
                "type": "AWS::AutoScaling::ScalingPolicy",
                "properties": {**given, "AdjustmentType": "PercentChangeInCapacity"},
            },
        }
    )
    service.rest()
    service.put(service.attribute(stack_id, "policy", "AlarmUrl"), None, "POST")
    service.rest()
    assert len(service.servers()) == 6


def test_a_group_of_fixed_size_is_not_scaled_by_signals() -> None:
    service = Service()
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": server()}}
    stack_id = service.create({**resources(), "group": group})
    service.rest()
    with pytest.raises(Rejected, match="no group that signals scale: use an AutoScalingGroup"):
        service.signal(stack_id, "policy")


def test_failed_members_do_not_count_and_go_first() -> None:
    service = Service()
    stack_id = service.create(resources(-1, group={"desired_capacity": 4}))
    service.rest()
    service.actions.switch(stack_id, OFF)
    mark(service, service.child().id, "2")
    service.signal(stack_id, "policy")
    service.rest()
    assert sorted(service.states(service.child().id)) == ["1", "3"], "of three, the oldest went, and the FAILED one"
