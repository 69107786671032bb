"""Workflows and webhooks as actions of recoveries: when they are called, with what, and what follows from answers."""

import json
from typing import Any

import pytest

from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.execution.recovery_calls import Request
from homeostat.model.observed import Observation
from homeostat.model.status import joined
from homeostat.observability.prometheus import METERS
from homeostat.store.operation.health import members_by_health
from tests.component.checked import STATUS, Checked, actions, policy

HOOK = "http://hook.example/{clustername}/{nodename}"


def hook(**more: Any) -> dict[str, Any]:
    params = {"url": HOOK, **more.pop("params", {})}
    return {"name": "page", "type": "WEBHOOK", "params": params, **more}


def workflow(**more: Any) -> dict[str, Any]:
    return {"name": "mend", "type": "MISTRAL_WORKFLOW", **more}


def made_well(service: Checked, number: int = 0) -> None:
    service.cloud.change(service.handle(number), status="active")


def with_workflow(service: Checked, **fields: Any) -> Checked:
    (made,) = service.cloud.create("workflow", [Creation("w", {"name": "mend", "tasks": []})])
    assert isinstance(made, Observation)
    service.cloud.change(made.handle, **fields)
    return service


def executions(service: Checked) -> list[dict[str, Any]]:
    (found,) = service.cloud.things("workflow").values()
    return list(found["executions"])


@pytest.mark.shows("HS31")
def test_a_webhook_is_called_with_what_is_known_of_the_node() -> None:
    service = Checked(2, policy(STATUS, actions=actions(hook(), "RECREATE")))
    handle = service.handle(0)

    def answered(_: Request) -> tuple[int, str]:
        made_well(service)
        return 204, ""

    service.hook = answered
    service.stop_server(0)
    service.live(40.0)
    (request,) = service.called
    said = json.loads(request.body)
    assert (request.method, request.url, request.timeout_s) == ("POST", "http://hook.example/nodes/n-001", 30.0)
    assert said["node"] == {
        "id": said["node"]["id"],
        "name": "n-001",
        "physical_id": handle,
        "address": said["node"]["address"],
    }
    assert (said["action"], said["cluster"]["name"]) == ("page", "nodes")
    assert "stopped" in said["reason"]
    assert service.recoveries() == ["page"]
    assert service.handle(0) == handle
    row = service.row(service.group, "0")
    assert (joined(row.action, row.status), row.marks) == ("CHECK_COMPLETE", None)


def test_a_webhook_is_called_as_its_policy_says() -> None:
    params = {"method": "put", "headers": {"X-Node": "{{ node.name }}"}, "body": {"who": "{nodename}", "n": 1}}
    service = Checked(1, policy(STATUS, actions=actions(hook(params=params))))
    service.stop_server(0)
    service.live(15.0)
    (request,) = service.called
    assert (request.method, request.headers["X-Node"]) == ("PUT", "n-001")
    assert json.loads(request.body) == {"who": "n-001", "n": 1}


def test_nothing_of_what_a_webhook_is_called_with_is_stored_with_the_node() -> None:
    params = {"headers": {"Authorization": "Bearer do-not-tell"}}
    service = Checked(1, policy(STATUS, actions=actions(hook(params=params))))
    service.hook = lambda _: (503, "later")
    service.stop_server(0)
    service.live(15.0)
    assert service.called[0].headers["Authorization"] == "Bearer do-not-tell"
    assert "do-not-tell" not in str(service.row(service.group, "0"))


def test_a_webhook_that_fails_is_called_again_as_the_same_call_until_its_time_is_over() -> None:
    service = Checked(1, policy(STATUS, actions=actions(hook(timeout=30), "RECREATE")))
    before = service.handle(0)
    service.hook = lambda _: (0, "refused")
    service.stop_server(0)
    service.live(25.0)
    assert len(service.called) > 2
    assert len({each.headers["Idempotency-Key"] for each in service.called}) == 1
    assert service.handle(0) == before
    service.live(60.0)
    assert service.recoveries() == ["page", "RECREATE"]
    assert service.handle(0) != before


def test_a_webhook_that_refuses_is_not_called_again_and_the_next_action_follows() -> None:
    service = Checked(1, policy(STATUS, actions=actions(hook(), "REBOOT")))
    service.hook = lambda _: (410, "no such hook")
    service.stop_server(0)
    service.live(30.0)
    assert len(service.called) == 1
    assert service.recoveries() == ["page", "REBOOT"]


def test_a_webhook_that_has_succeeded_is_not_called_again_where_the_cloud_is_away_then() -> None:
    service = Checked(1, policy(STATUS, actions=actions(hook())))

    def answered(_: Request) -> tuple[int, str]:
        made_well(service)
        service.cloud.behaviour = CloudBehaviour(faults=Faults(unreachable=1.0))
        return 200, ""

    service.hook = answered
    service.stop_server(0)
    service.live(30.0)
    service.cloud.behaviour = CloudBehaviour()
    service.live(60.0)
    assert len(service.called) == 1
    assert service.row(service.group, "0").marks is None


def test_another_round_is_another_call() -> None:
    service = Checked(1, policy(STATUS, actions=actions(hook()), verify_timeout=5))
    service.stop_server(0)
    service.live(200.0)
    keys = {each.headers["Idempotency-Key"] for each in service.called}
    assert len(keys) == len(service.called) > 1


def test_a_header_that_a_name_would_break_fails_the_action() -> None:
    calls = actions(hook(params={"headers": {"X": "{{ node.ip }}"}}), "REBOOT")
    service = Checked(1, policy(STATUS, actions=calls))
    service.cloud.change(service.handle(0), address="10.0.0.1\r\nHost: x")
    service.stop_server(0)
    service.live(30.0)
    assert service.called == []
    assert service.recoveries() == ["page", "REBOOT"]


@pytest.mark.shows("HS15")
def test_a_workflow_is_run_with_its_input_and_waited_for() -> None:
    flow = workflow(params={"server": "{{ node.physicalid }}", "of": "{clustername}"})
    service = with_workflow(Checked(1, policy(STATUS, actions=actions(flow, "RECREATE"))), ends="RUNNING")
    handle = service.handle(0)
    service.stop_server(0)
    service.live(40.0)
    (run,) = executions(service)
    assert run["input"] == {"server": handle, "of": "nodes"}
    made_well(service)
    service.cloud.change("mend", ends="SUCCESS")
    service.live(30.0)
    assert [each["id"] for each in executions(service)] == [run["id"]]
    assert service.recoveries() == ["mend"]
    assert service.handle(0) == handle


@pytest.mark.shows("HS15")
def test_a_workflow_that_does_not_end_in_time_is_cancelled_before_the_next_action() -> None:
    wanted = policy(STATUS, actions=actions(workflow(timeout=20), "RECREATE"))
    service = with_workflow(Checked(1, wanted), ends="RUNNING")
    service.stop_server(0)
    service.live(60.0)
    assert [each["state"] for each in executions(service)] == ["CANCELLED"]
    assert service.recoveries() == ["mend", "RECREATE"]


def test_a_workflow_that_fails_or_is_not_there_gives_way_to_the_next_action() -> None:
    for service in (
        with_workflow(Checked(1, policy(STATUS, actions=actions(workflow(), "REBOOT"))), ends="ERROR"),
        Checked(1, policy(STATUS, actions=actions(workflow(), "REBOOT"))),
    ):
        service.stop_server(0)
        service.live(30.0)
        assert service.recoveries() == ["mend", "REBOOT"]


def test_a_policy_that_goes_during_a_call_ends_it() -> None:
    service = Checked(1, policy(STATUS, actions=actions(hook(), "RECREATE")))
    before = service.handle(0)
    service.hook = lambda _: (503, "")
    service.stop_server(0)
    service.live(15.0)
    assert service.called
    service.detach()
    count = len(service.called)
    service.live(100.0)
    assert len(service.called) <= count + 1
    assert service.handle(0) == before
    assert service.row(service.group, "0").status != "IN_PROGRESS"


def test_a_node_that_is_gone_is_made_again_without_a_call() -> None:
    service = Checked(2, policy(STATUS, actions=actions(hook(), "RECREATE")))
    service.cloud.vanish(service.handle(0))
    service.live(40.0)
    assert service.called == []
    assert service.recoveries() == ["RECREATE"]


@pytest.mark.shows("HS32")
def test_what_an_action_has_left_broken_is_cut_off_before_another_one_is_made() -> None:
    """Its ordinary healing would replace it at once."""
    wanted = policy(STATUS, actions=actions(hook(), "RECREATE"), fencing=["NETWORK"], verify_timeout=20)
    service = Checked(1, wanted)
    service.cloud.change(service.handle(0), status="error")
    service.live(15.0)
    assert service.recoveries() == ["page"]
    service.live(60.0)
    assert service.recoveries() == ["page", "fence", "RECREATE"]


@pytest.mark.shows("HS35")
def test_recoveries_and_findings_are_counted_and_names_of_users_are_no_labels() -> None:
    def counted(name: str, **labels: str) -> float:
        return METERS.registry.get_sample_value(name, labels) or 0.0

    def total(action: str) -> float:
        return counted("homeostat_recovery_actions_total", action=action)

    before = {each: total(each) for each in ("call", "fence", "recreate", "page")}
    looks = counted("homeostat_health_checks_total")
    service = Checked(2, policy(STATUS, actions=actions(hook(), "RECREATE"), fencing=["NETWORK"], verify_timeout=5))
    service.hook = lambda _: (404, "")
    service.stop_server(0)
    service.live(30.0)
    assert service.recoveries() == ["page", "fence", "RECREATE"]
    assert {each: total(each) - before[each] for each in before} == {"call": 1, "fence": 1, "recreate": 1, "page": 0}
    assert counted("homeostat_health_checks_total") >= looks + 4
    with service.db.read() as tx:
        assert members_by_health(tx) == {"healthy": 2}
