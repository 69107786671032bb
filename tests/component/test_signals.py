"""Wait conditions from end to end: signals come by all ways, early, late, twice, wrong, or not at all."""

import json
from typing import Any

import pytest

from homeostat.model.errors import Rejected
from tests.component.running import URL, Service, condition, double, handle, server


def waiting(**properties: Any) -> dict[str, Any]:
    return {"handle": handle(), "wait": condition(**properties), "after": {**double(), "depends_on": "wait"}}


def test_a_condition_is_complete_once_it_was_signalled_and_dependants_go_on() -> None:
    service = Service()
    stack_id = service.create(waiting())
    service.live(5)
    assert service.states(stack_id) == {"handle": "CREATE_COMPLETE", "wait": "CREATE_IN_PROGRESS"}
    answer = service.signal(stack_id, "handle", data="ready", id="one", reason="up")
    assert answer.name == "handle"
    assert answer.metadata == {"one": {"status": "SUCCESS", "reason": "up", "data": "ready"}}
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.states(stack_id)["after"] == "CREATE_COMPLETE"
    assert json.loads(service.attribute(stack_id, "wait", "data")) == {"one": "ready"}


def test_signals_are_counted_by_their_ids() -> None:
    service = Service()
    stack_id = service.create(waiting(count=3))
    service.live(2)
    for body in (None, {"id": "x"}, {"id": "x", "data": 2}):
        service.live(1)
        service.signal(stack_id, "handle", body)
    assert service.states(stack_id)["wait"] == "CREATE_IN_PROGRESS"
    service.live(1)
    answer = service.signal(stack_id, "handle")
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert answer.metadata["3"] == {"status": "SUCCESS", "reason": "Signal 3 received", "data": None}
    assert json.loads(service.attribute(stack_id, "wait", "data")) == {"1": None, "x": 2, "3": None}


def test_what_comes_before_the_condition_is_made_counts() -> None:
    service = Service()
    resources = {"handle": handle(), "slow": double(wait_secs=10), "wait": {**condition(), "depends_on": "slow"}}
    stack_id = service.create(resources)
    service.signal(stack_id, "handle")
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_failure_fails_the_condition_with_its_reason() -> None:
    service = Service()
    stack_id = service.create(waiting(count=2))
    service.live(1)
    service.signal(stack_id, "handle")
    service.live(1)
    service.signal(stack_id, "handle", status="FAILURE", reason="no disk")
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.row(stack_id, "wait").reason == "ResourceInError: resources.wait: no disk"


def test_a_condition_without_signals_times_out() -> None:
    service = Service()
    stack_id = service.create(waiting(count=2, timeout=30))
    service.live(10)
    service.signal(stack_id, "handle", reason="one is up")
    service.live(19)
    assert service.states(stack_id)["wait"] == "CREATE_IN_PROGRESS"
    service.live(2)
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "WaitConditionTimeout: 1 of 2 received - one is up" in service.row(stack_id, "wait").reason


def test_what_comes_late_changes_nothing_that_was_complete() -> None:
    service = Service()
    stack_id = service.create(waiting())
    service.live(1)
    service.signal(stack_id, "handle")
    service.live(100)
    answer = service.signal(stack_id, "handle", status="FAILURE")
    service.live(200)
    assert answer.metadata["2"]["status"] == "FAILURE"
    assert service.states(stack_id)["wait"] == "CREATE_COMPLETE"


def test_a_greater_count_waits_again_and_counts_what_came() -> None:
    service = Service()
    stack_id = service.create(waiting())
    service.live(1)
    service.signal(stack_id, "handle")
    service.live(100)
    service.update(stack_id, waiting(count=2))
    service.live(5)
    assert service.states(stack_id)["wait"] == "UPDATE_IN_PROGRESS"
    service.signal(stack_id, "handle")
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_a_signal_is_an_event_of_the_handle() -> None:
    service = Service()
    stack_id = service.create(waiting())
    service.live(1)
    service.signal(stack_id, "handle")
    assert service.story(stack_id, "handle")[-1] == "handle SIGNAL_COMPLETE"


def test_events_of_signals_show_the_type_in_the_template() -> None:
    service = Service()
    mapped = {"handle": {**handle(), "type": "My::Handle"}}
    registry = {"My::Handle": handle()["type"]}
    stack_id = service.create(mapped, environment={"resource_registry": registry})
    service.signal(stack_id, "handle")
    assert {each.type for each in service.events(stack_id, "handle")} == {"My::Handle"}


@pytest.mark.parametrize("body", [{"status": "FINE"}, {"status": "SUCCESS", "colour": "red"}])
def test_a_wrong_signal_is_refused_and_not_kept(body: dict[str, str]) -> None:
    service = Service()
    stack_id = service.create(waiting())
    service.live(1)
    with pytest.raises(Rejected, match="Metadata format invalid"):
        service.signal(stack_id, "handle", body)
    assert service.signal(stack_id, "handle").metadata.keys() == {"1"}


def test_deleting_leaves_nothing() -> None:
    service = Service()
    stack_id = service.create(waiting())
    service.live(1)
    service.signal(stack_id, "handle")
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert not service.records_of("signal_handle")
    assert not service.records_of("wait_condition")


# -- transports --------------------------------------------------------------------------------------------------------


def test_a_token_is_for_its_own_address_alone() -> None:
    service = Service()
    stack_id = service.create({"handle": handle(), "other": handle()})
    token = service.attribute(stack_id, "handle", "token")
    endpoint = service.attribute(stack_id, "handle", "endpoint")
    assert endpoint == f"{URL}/v1/p/stacks/web/{stack_id}/resources/handle/signal"
    curl = service.attribute(stack_id, "handle", "curl_cli")
    assert curl.startswith(f"curl -i -X POST -H 'X-Auth-Token: {token}' ")
    assert curl.endswith(f"'{endpoint}'")
    path = endpoint.removeprefix(f"{URL}/v1/").split("/")
    assert service.signals.token(token, "p", path)
    assert not service.signals.token(token, "p", [*path[:-2], "other", "signal"])
    assert not service.signals.token(token, "q", path)
    assert not service.signals.token(f"{token}x", "p", path)
    assert not service.signals.token("", "p", path)


@pytest.mark.parametrize(("transport", "method"), [("CFN_SIGNAL", "POST"), ("TEMP_URL_SIGNAL", "PUT")])
def test_a_signed_address_takes_signals_and_no_other_does(transport: str, method: str) -> None:
    service = Service()
    stack_id = service.create({"handle": handle(signal_transport=transport), "wait": condition()})
    url = json.loads(service.attribute(stack_id, "handle", "signal"))["alarm_url"]
    assert url.startswith(URL)
    for wrong in (url.replace("handle?", "wait?"), url[:-1], url.split("&Signature")[0]):
        with pytest.raises(Rejected, match="signature does not fit"):
            service.put(wrong, None, method)
    with pytest.raises(Rejected):
        service.put(url, None, "DELETE")
    service.live(1)
    service.put(url, {"data": 1}, method)
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_condition_of_no_signals_has_no_data() -> None:
    service = Service()
    stack_id = service.create({"handle": handle(signal_transport="NO_SIGNAL")})
    assert service.attribute(stack_id, "handle", "signal") == "{}"
    assert service.attribute(stack_id, "handle", "token") is None


@pytest.mark.parametrize("transport", ["HEAT_SIGNAL", "ZAQAR_SIGNAL"])
def test_a_transport_that_needs_another_service_is_refused_at_once(transport: str) -> None:
    with pytest.raises(Rejected, match=r"resources.handle.properties.signal_transport: .* is not supported"):
        Service().create({"handle": handle(signal_transport=transport)})


def aws(**properties: Any) -> dict[str, Any]:
    given = {"Handle": {"get_resource": "handle"}, "Timeout": "60", **properties}
    return {
        "handle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
        "wait": {"type": "AWS::CloudFormation::WaitCondition", "properties": given},
    }


def test_the_reference_of_an_aws_handle_is_its_address() -> None:
    service = Service()
    stack_id = service.create(aws(Count=2))
    url = service.seen(stack_id, "handle")["url"]
    assert f"/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3Ap%3Astacks/web/{stack_id}/resources/handle?" in url
    assert service.row(stack_id, "wait").properties["Handle"] == url
    service.live(1)
    assert service.put(url, None).metadata == {}
    with pytest.raises(Rejected, match="missing are Data, Reason, UniqueId"):
        service.put(url, {"Status": "SUCCESS"})
    for number in ("a", "b"):
        service.live(1)
        answer = service.put(url, {"Status": "SUCCESS", "UniqueId": number, "Data": number, "Reason": "ok"})
    assert answer.metadata["b"] == {"Status": "SUCCESS", "Reason": "ok", "Data": "b"}
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert json.loads(service.attribute(stack_id, "wait", "Data")) == {"a": "a", "b": "b"}


def test_an_update_handle_is_made_anew_at_each_update() -> None:
    def resources(value: str) -> dict[str, Any]:
        return {**aws(), "handle": {"type": "OS::Heat::UpdateWaitConditionHandle"}, "other": double(value=value)}

    service = Service()
    stack_id = service.create(resources("a"))
    first = service.seen(stack_id, "handle")["url"]
    service.live(1)
    service.put(first, {"Status": "SUCCESS", "UniqueId": "1", "Data": "", "Reason": ""})
    assert service.state(stack_id) == "CREATE_COMPLETE"
    service.live(100)
    service.update(stack_id, resources("b"))
    service.live(2)
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    (url,) = {each.object["url"] for each in service.records_of("signal_handle")} - {first}
    service.put(url, {"Status": "SUCCESS", "UniqueId": "1", "Data": "", "Reason": ""})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.records_of("signal_handle")) == len(service.records_of("wait_condition")) == 1


def test_a_swift_signal_waits_at_a_signed_address() -> None:
    service = Service()
    given = {"handle": {"get_resource": "handle"}, "timeout": 60, "count": 2}
    stack_id = service.create(
        {
            "handle": {"type": "OS::Heat::SwiftSignalHandle"},
            "wait": {"type": "OS::Heat::SwiftSignal", "properties": given},
        }
    )
    url = service.attribute(stack_id, "handle", "endpoint")
    assert service.attribute(stack_id, "handle", "curl_cli").startswith("curl -i -X PUT ")
    assert service.attribute(stack_id, "handle", "token") == ""
    for _ in range(2):
        service.live(1)
        service.put(url, {"status": "SUCCESS"})
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_condition_needs_a_handle() -> None:
    with pytest.raises(Rejected, match=r"resources.wait.properties.handle: srv is no handle but OS::Nova::Server"):
        Service().create({"srv": server(), "wait": condition("srv")})
    service = Service()
    stack_id = service.create(
        {"wait": {"type": "OS::Heat::WaitCondition", "properties": {"handle": "x", "timeout": 9}}}
    )
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "x is no handle of this project" in service.row(stack_id, "wait").reason
