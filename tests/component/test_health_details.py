"""What the policies of the retired service could not do, or did wrongly: one test for each."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

from homeostat.clouds.port import Answer, ChangeNotice, Operation
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.health_checks.rounds import HealthRounds
from homeostat.model.node_health import Finding
from homeostat.model.observed import Observation
from homeostat.model.status import Action
from homeostat.services.actions import ConvergenceSettings
from homeostat.store.shards import health
from tests.component.checked import EVENTS, HOST, STATUS, Checked, actions, policy, recoveries
from tests.component.running import Service, group


@pytest.mark.shows("HS14")
def test_the_parameters_of_an_action_reach_the_cloud() -> None:
    soft = {"name": "REBOOT", "params": {"type": "soft"}}
    service = Checked(1, policy(STATUS, actions=actions(soft)))
    sent: list[Operation] = []
    operate = service.cloud.operate

    def watched(kind: str, operations: Sequence[Operation]) -> list[Answer]:
        sent.extend(operations)
        return operate(kind, operations)

    with patch.object(service.cloud, "operate", watched):
        service.stop_server(0)
        service.live(30.0)
    assert [(each.verb, dict(each.arguments)) for each in sent] == [("reboot", {"type": "SOFT"})]


@pytest.mark.shows("HS21")
def test_one_look_serves_all_nodes_of_a_project() -> None:
    service = Checked(40, policy(STATUS))
    looks: list[int] = []
    observe = service.cloud.observe

    def counted(kind: str, handles: Sequence[str]) -> list[Observation]:
        looks.append(len(handles))
        return observe(kind, handles)

    shards = {(service.group, row.shard) for row in service.rows(service.group)}
    with service.db.write() as tx:
        health.request_look(tx, shards, tx.now())
    with patch.object(service.cloud, "observe", counted):
        assert service.health.round() >= 1
    assert looks == [40]


@pytest.mark.shows("HS27")
def test_events_and_polling_together_find_at_once_what_events_report() -> None:
    service = Checked(2, policy(EVENTS, STATUS, detection={"interval": 600}))
    before = service.handle(0)
    service.stop_server(0)
    service.observer.notice([ChangeNotice("server", before)])
    service.live(10.0)
    assert service.handle(0) != before


@pytest.mark.shows("HP10", "HS19")
def test_a_node_that_leaves_is_no_case_for_its_policy() -> None:
    service = Checked(3, policy(STATUS), behaviour=CloudBehaviour(delete_s=100.0))
    service.update(service.id, service._wanted(2), internal_types={"Homeostat::NodeGroup"})
    service.live(15.0)
    (leaving,) = [row for row in service.rows(service.group) if row.action == "DELETE"]
    service.cloud.change(leaving.handle, status="error")
    service.live(200.0)
    assert service.recoveries() == []
    assert len(service.servers()) == 2


@pytest.mark.shows("HP11", "HS22", "HS33")
def test_the_checks_of_a_worker_that_died_are_done_by_another_one() -> None:
    service = Checked(2, policy(STATUS))
    service.stop_server(0)
    service.clock.time += 15.0
    with patch.object(HealthRounds, "_store", side_effect=SystemExit), pytest.raises(SystemExit):
        service.health.round()
    service.live(health.TAKEN_S + 15.0)
    assert service.recoveries() == ["RECREATE"]


@pytest.mark.shows("HS2")
@pytest.mark.parametrize(("inside_first", "acts"), [(True, ["CONVERGE"]), (False, ["RECREATE"])])
def test_a_member_that_is_a_stack_is_unhealthy_when_its_stack_has_failed(inside_first: bool, acts: list[str]) -> None:
    """It is converged, though that is switched off in it, or made again."""
    service = Service()
    watched: dict[str, Any] = {
        "type": "Homeostat::HealthPolicy",
        "properties": {
            "target": {"get_resource": "nodes"},
            "detection": {"interval": 60, "node_update_timeout": 0, "detection_modes": [STATUS]},
            "recovery": {"actions": [{"name": "RECREATE"}], "inside_first": inside_first},
        },
    }
    stack_id = service.begin({"nodes": group(2, group(1)), "health": watched})
    service.rest()
    nodes = service.row(stack_id, "nodes").handle
    before = {row.name: row.handle for row in service.rows(nodes)}
    service.actions.switch(before["0"], ConvergenceSettings({"converge": False}))
    (inner,) = service.rows(before["0"])
    service.cloud.change(inner.handle, status="error", fault="disk")
    service.actions.begin(before["0"], Action.CHECK)
    service.live(150.0)
    after = {row.name: row.handle for row in service.rows(nodes)}
    assert (after["1"], after["0"] == before["0"]) == (before["1"], inside_first)
    assert recoveries(service) == acts
    assert len(service.servers()) == 2
    assert inner.handle not in service.cloud.things("server")


def test_a_member_that_was_made_again_is_looked_at_at_once() -> None:
    wanted = policy(EVENTS, detection={"interval": 3600}, by_hint=False)
    service = Checked(3, wanted)
    before = service.handle(0)
    service.stop_server(0)
    service.observer.notice([ChangeNotice("server", before)])
    service.live(60.0)
    assert service.handle(0) != before
    assert service.health_of(0).finding is Finding.HEALTHY


def test_a_server_that_was_powered_off_is_started_when_another_policy_finds_it_well() -> None:
    """Found by the simulation (seed 5192 of health): by its host it was well, and it stayed off."""
    behaviour = CloudBehaviour(faults=Faults(fence=1.0))
    service = Checked(3, policy(STATUS, fencing=["COMPUTE", "NETWORK"]), behaviour=behaviour)
    handle = service.handle(0)
    service.cloud.change(handle, status="error")
    service.live(30.0)
    assert service.cloud.things("server")[handle]["status"] == "stopped", "it is cut off, but that is not confirmed"
    service.detach()
    service.live(5.0)
    service.attach(policy(HOST))
    service.cloud.behaviour = CloudBehaviour()
    service.live(90.0)
    assert service.handle(0) == handle
    assert service.cloud.things("server")[handle]["status"] == "active"
    assert service.row(service.group, "0").marks is None
