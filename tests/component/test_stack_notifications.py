"""What is sent about stacks: to whom listens to Heat's notifications, and what failures and crashes do to that."""

from collections.abc import Mapping
from typing import Any

import pytest

from homeostat.model.errors import Transient
from homeostat.notifications import stack_notifications
from homeostat.notifications.delivery import DROP_S
from homeostat.notifications.stack_notifications import StackNotifier
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.operation import message_bus
from homeostat.store.operation.message_bus import TAKEN_S
from tests.component.running import PROJECT, Service, group, server, template


class Crash(BaseException):
    """The end of a worker."""


class Bus:
    """A message bus that keeps what it gets, or fails."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Mapping[str, Any]]] = []
        self.fault: BaseException | None = None
        self.takes = True

    def send(self, event_type: str, priority: str, payload: Mapping[str, Any]) -> None:
        if self.fault is not None and not self.takes:
            raise self.fault
        self.sent.append((event_type, priority, payload))
        if self.fault is not None:
            raise self.fault

    @property
    def types(self) -> list[str]:
        return [event_type.removeprefix("orchestration.stack.") for event_type, _, _ in self.sent]


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def notifier(service: Service, bus: Bus) -> StackNotifier:
    """One that has begun: what happens from now on is sent."""
    made = StackNotifier(service.db, bus.send, service.clock)
    assert made.round() == 0
    return made


def finished(notifier: StackNotifier, service: Service) -> None:
    """Send until nothing is left."""
    while notifier.round():
        service.clock.time += 1


def test_they_have_the_form_of_heats(service: Service, bus: Bus, notifier: StackNotifier) -> None:
    asked = StackRequest({**template({"a": server()}), "description": "a shop"}, tags=["blue"])
    stack_id = service.stack_service.create(PROJECT, "alice", "web", asked)
    service.rest()
    finished(notifier, service)
    (_, priority, payload), (_, _, at_the_end) = bus.sent
    assert bus.types == ["create.start", "create.end"]
    assert priority == "info"
    times = {name: payload[name] for name in ("create_at", "updated_at")}
    assert payload == {
        "tenant_id": PROJECT,
        "user_id": "alice",
        "username": "alice",
        "user_identity": None,
        "stack_identity": stack_id,
        "stack_name": "web",
        "state": "CREATE_IN_PROGRESS",
        "state_reason": "Stack CREATE started",
        "description": "a shop",
        "tags": ["blue"],
        **times,
    }
    assert str(times["create_at"]).endswith("Z")
    assert times["updated_at"] is None
    assert (at_the_end["state"], at_the_end["state_reason"]) == (
        "CREATE_COMPLETE",
        "Stack CREATE completed successfully",
    )


def test_what_is_heard_after_the_deletion_has_the_description_from_before(
    service: Service, bus: Bus, notifier: StackNotifier
) -> None:
    asked = StackRequest({**template({"a": server()}), "description": "a shop"})
    stack_id = service.stack_service.create(PROJECT, "alice", "web", asked)
    service.rest()
    service.delete(stack_id)
    service.rest()
    finished(notifier, service)
    assert [payload["description"] for _, _, payload in bus.sent] == ["a shop"] * 4


def test_stacks_in_stacks_are_reported_and_resources_are_not(
    service: Service, bus: Bus, notifier: StackNotifier
) -> None:
    service.create({"many": group(3)})
    service.rest()
    finished(notifier, service)
    assert sorted(bus.types) == ["create.end", "create.end", "create.start", "create.start"]
    assert len({payload["stack_identity"] for _, _, payload in bus.sent}) == 2


def test_a_failure_has_the_priority_error(service: Service, bus: Bus, notifier: StackNotifier) -> None:
    service.create({"a": {"type": "OS::Heat::TestResource", "properties": {"fail": True}}})
    service.rest()
    finished(notifier, service)
    event_type, priority, payload = bus.sent[-1]
    assert (event_type, priority) == ("orchestration.stack.create.error", "error")
    assert payload["state"] == "CREATE_FAILED"
    assert "a" in payload["state_reason"]


def test_what_the_bus_does_not_take_waits_and_keeps_its_order(
    service: Service, bus: Bus, notifier: StackNotifier
) -> None:
    bus.fault, bus.takes = Transient("the bus is away"), False
    stack_id = service.create({"a": server()})
    service.rest()
    assert notifier.round() == 0
    with service.db.read() as tx:
        found = message_bus.failing(tx)
    assert found is not None
    assert found[1] == "the bus is away"
    service.delete(stack_id)
    service.rest()
    bus.fault = None
    assert notifier.round() == 0, "it is not asked again at once"
    service.clock.time += 60
    finished(notifier, service)
    assert bus.types == ["create.start", "create.end", "delete.start", "delete.end"]
    with service.db.read() as tx:
        assert message_bus.failing(tx) is None


def test_what_was_sent_before_a_crash_is_sent_again(service: Service, bus: Bus, notifier: StackNotifier) -> None:
    service.create({"a": server()})
    service.rest()
    bus.fault = Crash()
    with pytest.raises(Crash):
        notifier.round()
    bus.fault = None
    other = StackNotifier(service.db, bus.send, service.clock)
    assert other.round() == 0, "the bus is taken"
    service.clock.time += TAKEN_S + 1
    finished(other, service)
    assert bus.types == ["create.start", "create.start", "create.end"]


def test_a_worker_that_comes_late_stores_nothing(service: Service, bus: Bus, notifier: StackNotifier) -> None:
    service.create({"a": server()})
    service.rest()
    with service.db.write() as tx:
        late = message_bus.take(tx, service.clock.now())
    assert late is not None
    service.clock.time += TAKEN_S + 1
    finished(notifier, service)
    with service.db.write() as tx:
        message_bus.release(tx, late, 0, service.clock.now())
    finished(notifier, service)
    assert bus.types == ["create.start", "create.end"]


def test_what_waited_for_a_day_is_dropped(service: Service, bus: Bus, notifier: StackNotifier) -> None:
    stack_id = service.create({"a": server()})
    service.rest()
    service.clock.time += DROP_S + 1
    service.delete(stack_id)
    service.rest()
    finished(notifier, service)
    assert bus.types == ["delete.start", "delete.end"]


def test_many_are_sent_in_several_turns(
    service: Service, bus: Bus, notifier: StackNotifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_notifications, "EVENTS_MAX", 1)
    service.create({"a": server()})
    service.rest()
    assert [notifier.round(), notifier.round(), notifier.round()] == [1, 1, 0]
    assert bus.types == ["create.start", "create.end"]


def test_at_rest_nothing_is_stored(service: Service, bus: Bus, notifier: StackNotifier) -> None:
    service.create({"a": server()})
    service.rest()
    finished(notifier, service)
    service.clock.time += 1
    with service.db.read() as tx:
        assert not message_bus.is_due(tx, service.clock.now())
