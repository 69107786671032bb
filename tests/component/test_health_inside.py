"""Nodes that are stacks: what is unwell inside is their verdict, and is converged before anything is made again."""

import json
from dataclasses import replace
from typing import Any

import pytest

from homeostat.model.node_health import Finding
from homeostat.model.status import Action
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store.shards import health
from tests.component.checked import SOURCE, STATUS, policy, recoveries
from tests.component.requested import CHECKED, Nodes
from tests.component.running import server, template

INNER = {"web": server(name="web"), "db": server(name="db")}
MEMBER = {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": "node.yaml"}}
FILES = {"node.yaml": json.dumps(template(INNER))}


class Stacks(Nodes):
    """A cluster of nodes that are stacks of two servers each, for which a health policy holds."""

    def __init__(self, count: int, spec: dict[str, Any]) -> None:
        super().__init__(count, member=MEMBER, files=FILES)
        assert self.state(self.id) == "CREATE_COMPLETE"
        with self.db.write() as tx:
            values = {"id": SOURCE, "stack_id": self.id, "name": "nodes", "members": True, "source": SOURCE}
            health.attach(tx, {**values, "spec": spec, "enabled": True}, tx.now())
        self.live(15.0)

    def node(self, number: int) -> str:
        """Id of the stack that is a node."""
        return self.member(number).handle

    def inside(self, number: int) -> dict[str, str]:
        """Name -> handle of the servers of a node."""
        return {row.name: row.handle for row in self.rows(self.node(number)) if row.replaced_by is None}

    def found(self, number: int) -> tuple[Finding, str]:
        key = self.member(number).key
        with self.db.read() as tx:
            node = health.of_rows(tx, [key])[key]
        return node.finding, node.reason

    def behaviour(self, **faults: float) -> None:
        self.cloud.behaviour = replace(self.cloud.behaviour, faults=replace(self.cloud.behaviour.faults, **faults))


@pytest.mark.parametrize("lost", [True, False])
def test_a_server_that_is_lost_inside_is_made_again_and_nothing_else(lost: bool) -> None:
    service = Stacks(2, policy(STATUS))
    nodes, before = [service.node(each) for each in range(2)], service.inside(1)
    assert service.found(1)[0] is Finding.HEALTHY
    if lost:
        service.cloud.vanish(before["web"])
    else:
        service.cloud.change(before["web"], status="error")
    service.live(90.0)
    assert recoveries(service)[:1] == ["CONVERGE"]
    after = service.inside(1)
    assert ([service.node(each) for each in range(2)], after["db"]) == (nodes, before["db"])
    assert (after["web"] != before["web"], len(service.servers())) == (True, 4)
    assert service.found(1)[0] is Finding.HEALTHY


def test_a_policy_that_only_observes_says_what_is_unwell_inside() -> None:
    service = Stacks(2, policy(STATUS, mode="observe"))
    service.cloud.vanish(service.inside(0)["db"])
    service.live(40.0)
    finding, reason = service.found(0)
    assert (finding, "db inside: it does not exist any more" in reason) == (Finding.UNHEALTHY, True)
    assert (service.found(1)[0], recoveries(service)) == (Finding.HEALTHY, [])


def test_a_policy_may_have_the_whole_stack_made_again() -> None:
    service = Stacks(2, policy(STATUS, inside_first=False))
    before = service.node(0)
    service.cloud.vanish(service.inside(0)["web"])
    service.live(90.0)
    assert recoveries(service)[:1] == ["RECREATE"]
    assert service.node(0) != before


def test_what_a_person_marks_inside_is_made_again_and_nothing_else() -> None:
    service = Stacks(2, policy(STATUS))
    nodes, before = [service.node(each) for each in range(2)], service.inside(1)
    Marks(service.db).mark(nodes[1], MarkRequest(True, "slow disk"), {"": "db"})
    service.live(90.0)
    after = service.inside(1)
    assert (service.node(1), after["web"], after["db"] != before["db"]) == (nodes[1], before["web"], True)
    assert (recoveries(service), service.found(1)[0]) == (["CONVERGE"], Finding.HEALTHY)


@pytest.mark.heavy
def test_what_cannot_be_brought_back_inside_comes_to_the_actions() -> None:
    service = Stacks(2, policy(STATUS, verify_timeout=20))
    before = service.node(0)
    service.cloud.vanish(service.inside(0)["web"])
    service.behaviour(error=1.0)
    service.live(200.0)
    service.behaviour(error=0.0)
    service.live(300.0)
    assert recoveries(service)[:2] == ["CONVERGE", "RECREATE"]
    assert service.node(0) != before
    assert (len(service.servers()), service.found(0)[0]) == (4, Finding.HEALTHY)


def test_what_is_suspended_inside_is_not_unwell() -> None:
    service = Stacks(1, policy(STATUS))
    before = service.inside(0)
    service.actions.begin(service.id, Action.SUSPEND)
    service.live(60.0)
    assert {service.cloud.things("server")[each]["status"] for each in before.values()} == {"suspended"}
    assert (service.inside(0), recoveries(service)) == (before, [])


def test_what_cannot_be_seen_inside_is_unknown() -> None:
    service = Stacks(1, policy(STATUS))
    service.behaviour(unreachable=1.0)
    service.live(60.0)
    assert (service.found(0)[0], recoveries(service)) == (Finding.UNKNOWN, [])


def test_a_check_of_a_node_says_what_is_unwell_inside() -> None:
    service = Stacks(1, policy(STATUS, mode="observe"))
    well = service.ask(CHECKED, 0)
    service.work()
    assert service.ended(well)[0] == "SUCCEEDED"
    service.cloud.vanish(service.inside(0)["db"])
    service.live(40.0)
    unwell = service.ask(CHECKED, 0)
    service.work()
    status, reason = service.ended(unwell)
    assert (status, "db inside: it does not exist any more" in reason) == ("FAILED", True)
