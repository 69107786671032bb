"""What is sent about groups that signals resize, in the form of Heat's notifications."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Transient
from homeostat.notifications.stack_notifications import StackNotifier
from homeostat.store import schema
from homeostat.store.operation import purge
from tests.component.running import Service
from tests.component.test_scaling import AWS, instances
from tests.component.test_scaling_signals import resources
from tests.component.test_stack_notifications import Bus, finished

SCALING = "orchestration.autoscaling."


class Heard:
    """A service, and what it sends about scaling."""

    def __init__(self, template: dict[str, Any], behaviour: CloudBehaviour | None = None) -> None:
        self.service, self.bus = Service(behaviour), Bus()
        self.stack_id = self.service.create(template)
        self.service.rest()
        self.group = self.service.child()
        self.notifier = StackNotifier(self.service.db, self.bus.send, self.service.clock)
        assert self.notifier.round() == 0, "what happens from now on is sent"

    def signal(self, name: str = "policy") -> None:
        self.service.signal(self.stack_id, name)

    def notes(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Phase, priority and payload of each."""
        finished(self.notifier, self.service)
        sent = ((kind, priority, payload) for kind, priority, payload in self.bus.sent if kind.startswith(SCALING))
        return [(kind.removeprefix(SCALING), priority, payload) for kind, priority, payload in sent]

    def heard(self) -> list[tuple[str, int]]:
        return [(phase, payload["capacity"]) for phase, _, payload in self.notes()]


def test_they_have_the_form_of_heats() -> None:
    heard = Heard(resources(2))
    heard.signal()
    heard.service.rest()
    (start, priority, payload), (end, priority_then, then) = heard.notes()
    stack = heard.service.stack(heard.stack_id)
    assert (start, priority, end, priority_then) == ("start", "info", "end", "info")
    assert {name: payload[name] for name in ("stack_identity", "stack_name", "state", "tenant_id")} == {
        "stack_identity": heard.stack_id,
        "stack_name": stack.name,
        "state": "CREATE_COMPLETE",
        "tenant_id": stack.project,
    }
    own = ("adjustment", "adjustment_type", "capacity", "groupname", "message")
    assert {name: payload[name] for name in own} == {
        "adjustment": 2,
        "adjustment_type": "change_in_capacity",
        "capacity": 1,
        "groupname": heard.group.id,
        "message": f"Start resizing the group {heard.group.id}",
    }
    assert (then["capacity"], then["message"]) == (3, f"End resizing the group {heard.group.id}")
    changed = {"capacity", "message"}
    assert {name: value for name, value in then.items() if name not in changed} == {
        name: value for name, value in payload.items() if name not in changed
    }


def test_they_come_in_the_order_in_which_things_happen() -> None:
    heard = Heard(resources())
    heard.signal()
    heard.service.rest()
    heard.notes()
    kinds = [kind.removeprefix("orchestration.") for kind, _, _ in heard.bus.sent]
    assert kinds == ["autoscaling.start", "stack.update.start", "stack.update.end", "autoscaling.end"]


def test_the_words_of_an_aws_policy_are_kept() -> None:
    given = {"AutoScalingGroupName": {"get_resource": "group"}, "ScalingAdjustment": 50}
    policy = {**given, "AdjustmentType": "PercentChangeInCapacity"}
    group = instances(AWS, MinSize=2, MaxSize=9)
    heard = Heard({**group, "policy": {"type": "AWS::AutoScaling::ScalingPolicy", "properties": policy}})
    heard.signal()
    heard.service.rest()
    words = {(payload["adjustment_type"], payload["adjustment"]) for _, _, payload in heard.notes()}
    assert words == {("PercentChangeInCapacity", 50)}


def test_a_signal_that_changes_nothing_sends_nothing() -> None:
    heard = Heard(resources(high=1))
    heard.signal()
    heard.service.rest()
    assert heard.notes() == []


def test_each_signal_in_one_action_begins_and_ends() -> None:
    heard = Heard(resources(), CloudBehaviour(build_s=10.0))
    heard.signal()
    heard.service.live(2)
    heard.signal()
    heard.service.rest()
    assert heard.heard() == [("start", 1), ("start", 2), ("end", 2), ("end", 3)]
    heard.signal()
    heard.service.rest()
    assert heard.heard()[4:] == [("start", 3), ("end", 4)], "what ended before does not end again"


def test_a_signal_that_waits_for_a_snapshot_is_reported_when_it_is_applied() -> None:
    heard = Heard(resources(), CloudBehaviour(snapshot_s=20.0))
    heard.service.snapshots.take(heard.stack_id, "before")
    heard.service.live(5)
    heard.signal()
    heard.service.live(2)
    assert heard.heard() == []
    heard.service.rest()
    heard.service.live(5)
    assert heard.heard() == [("start", 1), ("end", 2)]


def test_a_failure_has_its_reason_and_the_members_that_there_are() -> None:
    broken = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    heard = Heard(resources(2, low=0, group={"resource": broken}))
    heard.signal()
    heard.service.rest()
    (start, (phase, priority, payload)) = heard.notes()
    assert (start[0], phase, priority) == ("start", "error", "error")
    assert payload["capacity"] == 0
    assert "Resource CREATE failed" in payload["message"]


def test_a_group_that_is_deleted_meanwhile_was_not_resized() -> None:
    heard = Heard(resources(), CloudBehaviour(build_s=60.0))
    heard.signal()
    heard.service.live(2)
    heard.service.delete(heard.stack_id)
    heard.service.rest()
    assert heard.heard() == [("start", 1), ("error", 0)]


@pytest.mark.parametrize("lost", [1, 3])
def test_what_the_bus_lost_comes_again_as_a_whole(lost: int) -> None:
    heard = Heard(resources())
    heard.signal()
    heard.service.rest()

    class Failing(Bus):
        def send(self, event_type: str, priority: str, payload: Mapping[str, Any]) -> None:
            if len(self.sent) == lost and self.fault is not None:
                fault, self.fault = self.fault, None
                raise fault
            self.sent.append((event_type, priority, payload))

    bus = Failing()
    bus.fault = Transient("the bus is away")
    heard.bus, heard.notifier = bus, StackNotifier(heard.service.db, bus.send, heard.service.clock)
    heard.notifier.round()
    heard.service.clock.time += 60
    assert heard.heard() == [("start", 1), ("end", 2)]


@pytest.mark.parametrize("deleted", [False, True], ids=["events", "stack"])
def test_what_is_kept_of_them_goes_with_the_events_and_with_the_stack(deleted: bool) -> None:
    heard = Heard(resources())
    heard.signal()
    heard.service.rest()

    def kept() -> int:
        with heard.service.db.read() as tx:
            return len(tx.execute(select(schema.resize)).all())

    assert kept() == 1
    rules = purge.Rules(0.0, events_max=0)
    if deleted:
        heard.service.delete(heard.stack_id)
        heard.service.rest()
        rules = purge.Rules(heard.service.clock.now() + 1, events_max=1000)
    purge.purge(heard.service.db, rules)
    assert kept() == 0
