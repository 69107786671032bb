"""Event sinks of whole stacks: who is told, of what, in which order, and what failures and crashes do to that."""

from typing import Any

import pytest

from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected, Transient
from homeostat.notifications import delivery
from homeostat.notifications.delivery import Deliverer
from homeostat.notifications.sinks import Sinks
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.builtin import event_sinks
from homeostat.store.builtin.event_sinks import TAKEN_S
from tests.component.running import PROJECT, Service, double, group, template

QUEUE = {"type": "zaqar-queue", "target": "news"}
NEWS = {"type": "OS::Zaqar::Queue", "properties": {"name": "news"}}
Body = dict[str, Any]


class Listener:
    """A kind of sink that keeps what it is told, or fails."""

    name = "listener"

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.fault: Exception | None = None
        self.tries = 0

    def check(self, project: str, settings: Any) -> None:
        """Anything is right."""

    def post(self, project: str, settings: Any, body: Any) -> None:
        self.tries += 1
        if self.fault is not None:
            raise self.fault
        self.bodies.append(body)


class Crash(BaseException):
    """The end of a worker."""


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def service(listener: Listener) -> Service:
    return Service(installed=[listener])


LISTENING: Any = {"event_sinks": [{"type": "listener"}]}


def story(bodies: list[Body]) -> list[str]:
    """As `Service.story` tells it."""
    return [
        f"{each['resource_name']} {each['resource_action']}_{each['resource_status']}"
        for each in (body["payload"] for body in bodies)
    ]


def failures(service: Service) -> list[Any]:
    with service.db.read() as tx:
        return event_sinks.failing(tx)


def test_a_sink_gets_all_events_in_order(service: Service, listener: Listener) -> None:
    stack_id = service.create({"a": double(), "b": double()}, environment=LISTENING)
    service.live(1.0)
    service.delete(stack_id)
    service.live(1.0)
    assert story(listener.bodies) == service.story(stack_id)
    assert story(listener.bodies)[-1] == "web DELETE_COMPLETE"
    assert len({body["id"] for body in listener.bodies}) == len(listener.bodies)
    with service.db.read() as tx:
        assert not event_sinks.any_due(tx, service.clock.now()), "there is nobody left to be told"


def test_a_message_has_these_fields(service: Service, listener: Listener) -> None:
    stack_id = service.create({"a": double(value="x")}, environment=LISTENING)
    service.live(1.0)
    (body,) = [each for each in listener.bodies if story([each]) == ["a CREATE_COMPLETE"]]
    payload = body.pop("payload")
    assert body == {
        "timestamp": "1970-01-12T13:46:40Z",
        "version": "0.1",
        "type": "os.heat.event",
        "id": f"{stack_id[:-12]}{3:012x}",
    }
    assert payload == {
        "resource_name": "a",
        "physical_resource_id": service.row(stack_id, "a").handle,
        "stack_id": stack_id,
        "resource_action": "CREATE",
        "resource_status": "COMPLETE",
        "resource_status_reason": payload["resource_status_reason"],
        "requested_by": None,
        "request_id": None,
        "resource_type": "OS::Heat::TestResource",
        "resource_properties": payload["resource_properties"],
        "version": "0.1",
    }
    assert payload["resource_properties"]["value"] == "x"


def test_events_of_nested_stacks_go_to_the_sink_of_their_root(service: Service, listener: Listener) -> None:
    stack_id = service.create({"g": group(2, double())}, environment=LISTENING)
    service.rest()
    service.live(1.0)
    child = service.child().id
    for each in (stack_id, child):
        mine = [body for body in listener.bodies if body["payload"]["stack_id"] == each]
        assert story(mine) == service.story(each)


def test_a_sink_that_fails_is_tried_again_and_holds_up_nothing(service: Service, listener: Listener) -> None:
    listener.fault = Transient("nobody is at home")
    stack_id = service.create({"a": double()}, environment=LISTENING)
    service.live(30.0)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert listener.tries == 5, "after 1, 2, 4 and 8 seconds"
    (row,) = failures(service)
    assert (row.stack, row.reason) == ("web", "nobody is at home")
    listener.fault = None
    service.live(60.0)
    assert story(listener.bodies) == service.story(stack_id)
    assert failures(service) == []


def test_a_sink_with_a_mistake_of_its_own_hinders_no_other(service: Service, listener: Listener) -> None:
    listener.fault = ZeroDivisionError("of the package")
    both = {"event_sinks": [{"type": "listener"}, QUEUE]}
    stack_id = service.create({"news": NEWS}, environment=both)
    service.live(60.0)
    delivered = [message["body"] for message in service.cloud.messages["news"]]
    assert story(delivered) == service.story(stack_id)
    assert [row.reason for row in failures(service)] == ["of the package"]


def test_what_a_crash_interrupts_is_delivered_again(service: Service, listener: Listener) -> None:
    stack_id = service.create({"a": double()}, environment=LISTENING)
    before = Deliverer(service.db, DyingSinks(listener, delivered=2), service.clock)
    with pytest.raises(Crash):
        before.round()
    assert story(listener.bodies) == service.story(stack_id)[:2]
    service.live(TAKEN_S - 1)
    assert len(listener.bodies) == 2, "it is still the other worker's"
    service.live(2.0)
    assert story(listener.bodies) == [*service.story(stack_id)[:2], *service.story(stack_id)]


class DyingSinks(Sinks):
    """Tell so many events, and then the worker dies."""

    def __init__(self, listener: Listener, delivered: int) -> None:
        super().__init__(installed=[listener])
        self._left = delivered

    def post(self, project: str, settings: Any, body: Any) -> None:
        if not self._left:
            raise Crash
        self._left -= 1
        super().post(project, settings, body)


def test_events_that_could_not_be_delivered_for_long_are_given_up(
    service: Service, listener: Listener, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DROP_S", 3600.0)
    listener.fault = Transient("nobody is at home")
    stack_id = service.create({"a": double()}, environment=LISTENING)
    count = len(service.story(stack_id))
    service.live(3600.0 + 120.0)
    assert f"{count} events are dropped" in caplog.text
    listener.fault = None
    service.delete(stack_id)
    service.live(120.0)
    assert story(listener.bodies) == service.story(stack_id)[count:], "what came later is told"


def test_a_queue_that_the_stack_makes_itself_gets_the_events_of_its_own_creation() -> None:
    service = Service()
    stack_id = service.create({"news": NEWS}, environment={"event_sinks": [{**QUEUE, "ttl": 100}]})
    service.live(60.0)
    messages = service.cloud.messages["news"]
    assert story([each["body"] for each in messages]) == service.story(stack_id)
    assert {each["ttl"] for each in messages} == {100}


def test_the_first_event_makes_a_queue_that_stays() -> None:
    service = Service()
    stack_id = service.create({"a": double()}, environment={"event_sinks": [QUEUE]})
    service.live(1.0)
    messages = service.cloud.messages["news"]
    assert story([each["body"] for each in messages]) == service.story(stack_id)
    service.delete(stack_id)
    service.live(60.0)
    assert story([each["body"] for each in messages]) == service.story(stack_id)


def test_no_event_brings_back_a_queue_that_goes_with_its_stack() -> None:
    service = Service()
    stack_id = service.create({"news": NEWS}, environment={"event_sinks": [QUEUE]})
    service.live(1.0)
    assert service.cloud.messages["news"]
    service.delete(stack_id)
    service.live(60.0)
    assert "news" not in service.cloud.messages
    (failure,) = failures(service)
    assert failure.reason == "there is no queue news"


def test_an_update_adds_and_removes_sinks(service: Service, listener: Listener) -> None:
    stack_id = service.create({"a": double()})
    before = service.story(stack_id)
    service.update(stack_id, {"a": double()}, environment=LISTENING)
    service.live(1.0)
    assert story(listener.bodies) == service.story(stack_id)[len(before) :] != []
    heard = len(listener.bodies)
    service.stack_service.update(stack_id, StackRequest(parameters={}), patch=True)
    service.work()
    service.live(1.0)
    assert len(listener.bodies) > heard, "a patch leaves alone what it does not name"
    heard = len(listener.bodies)
    service.update(stack_id, {"a": double()})
    service.live(1.0)
    assert len(listener.bodies) == heard


WRONG = [
    ([7], r"event_sinks\[0\]: a map with a type is needed"),
    ([QUEUE, {"type": "pigeon"}], r"event_sinks\[1\]: .*'pigeon'; there are: listener, webhook, zaqar-queue"),
    ([{"type": "zaqar-queue"}], "target: a text is needed"),
    ([{**QUEUE, "ttl": 10}], "ttl: a number of seconds, 60 at least"),
    ([{**QUEUE, "colour": "red"}], "no setting 'colour'; there are: target, ttl"),
    ([{"type": "webhook"}], r"event_sinks\[0\]: url: a text is needed"),
    ([{"type": "webhook", "url": "ftp://example.com/"}], "url: only http and https"),
    ([{"type": "webhook", "url": "http://10.0.0.1/"}], "url: 10.0.0.1 is not on the public internet.*--fetch-from"),
    ([{"type": "webhook", "url": "http://me:word@example.com/"}], "url: it holds a user or password"),
    ([{"type": "webhook", "url": "https://example.com/", "secret": "******"}], "enter the secret itself"),
    ([{"type": "listener", "number": n} for n in range(11)], "event_sinks: a stack has at most 10"),
]


@pytest.mark.parametrize(("given", "problem"), WRONG)
def test_what_is_wrong_with_a_sink_is_reported(service: Service, given: list[Any], problem: str) -> None:
    with pytest.raises(Rejected, match=problem):
        service.begin({}, environment={"event_sinks": given})


def test_a_cloud_without_queues_refuses_sinks_that_need_one() -> None:
    class Bare(SimulatedCloud):
        kinds = SimulatedCloud.kinds - {"queue"}

    service = Service(cloud=lambda clock: Bare(clock.now))
    with pytest.raises(Rejected, match=r"environment.event_sinks\[0\]: the cloud .* has no queues") as refused:
        service.stack_service.create(
            PROJECT, None, "web", StackRequest(template({}), environment={"event_sinks": [QUEUE]})
        )
    assert refused.value.fault == "ResourceTypeUnavailable"
