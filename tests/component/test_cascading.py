"""Load balancers of whole stacks: they go in one request together with their parts, and with nothing of others."""

from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Creation, Operation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.errors import Transient, Uncertain
from homeostat.model.observed import Observation
from homeostat.model.plan import DELETE_WITH_PARTS
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.stacks import deletion
from tests.component.running import Service, template
from tests.simulation.actors import VirtualClock

PARTS = ("listener", "pool", "pool_member", "health_monitor")


class BalancingCloud(SimulatedCloud):
    """As Octavia: parts of a load balancer in ERROR are immutable. It notes what is deleted, and may break off.

    lost — how many answers to cascades are lost; dies — the worker dies right after the next cascade.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock.now, CloudBehaviour(delete_s=1.0))
        self.deletions: list[str] = []
        self.looks: list[tuple[str, int]] = []
        self.lost, self.dies = 0, False

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        self.looks.append((kind, len(handles)))
        return super().observe(kind, handles)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        self.deletions += [kind] * len(handles)
        broken = [each for each in self.things("load_balancer").values() if each["status"] == "error"]
        if kind in PARTS and broken:
            return [Transient("load balancer is in ERROR", 30.0)] * len(handles)
        return super().delete(kind, handles)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        answers = super().operate(kind, operations)
        if operations[0].verb != DELETE_WITH_PARTS:
            return answers
        self.deletions.append("all")
        if self.dies:
            self.dies = False
            raise KeyboardInterrupt
        if self.lost:
            self.lost -= 1
            return [Uncertain("no answer")] * len(answers)
        return answers

    def add_listener(self, port: int = 7000) -> str:
        """Another client adds a listener to the load balancer."""
        (balancer,) = self.things("load_balancer")
        spec = {"loadbalancer": balancer, "protocol": "TCP", "protocol_port": port}
        (made,) = self.create("listener", [Creation(f"by hand {port}", spec)])
        assert isinstance(made, Observation)
        return made.handle


def balanced(members: int = 5) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "lb": ("LoadBalancer", {"vip_subnet": "sub"}),
        "listener": (
            "Listener",
            {"loadbalancer": {"get_resource": "lb"}, "protocol": "HTTP", "protocol_port": 80},
        ),
        "pool": (
            "Pool",
            {"listener": {"get_resource": "listener"}, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"},
        ),
        "monitor": (
            "HealthMonitor",
            {"pool": {"get_resource": "pool"}, "type": "TCP", "delay": 5, "timeout": 2, "max_retries": 3},
        ),
    }
    for number in range(members):
        place = {"pool": {"get_resource": "pool"}, "address": f"10.0.0.{number}", "protocol_port": 80}
        resources[f"m{number}"] = ("PoolMember", place)
    return {name: {"type": f"OS::Octavia::{kind}", "properties": each} for name, (kind, each) in resources.items()}


@pytest.fixture
def service() -> Service:
    return Service(cloud=BalancingCloud)


def made(service: Service, resources: dict[str, Any] | None = None) -> tuple[str, BalancingCloud]:
    stack_id = service.create(resources or balanced())
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    assert isinstance(service.cloud, BalancingCloud)
    service.cloud.deletions.clear()
    service.cloud.looks.clear()
    return stack_id, service.cloud


def test_a_stack_is_deleted_with_one_request_for_its_balancer_and_all_parts(service: Service) -> None:
    stack_id, cloud = made(service)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.deletions == ["all"]
    assert cloud.things() == {}
    assert ("pool_member", 5) in cloud.looks, "one look for all of a kind"


def test_an_update_that_drops_them_all_does_the_same(service: Service) -> None:
    stack_id, cloud = made(service)
    service.update(stack_id, {"r": {"type": "OS::Heat::TestResource"}})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert cloud.deletions == ["all"]
    assert cloud.things() == {}


def test_a_balancer_that_is_replaced_takes_its_old_parts_along(service: Service) -> None:
    stack_id, cloud = made(service)
    before = set(cloud.things())
    changed = balanced()
    changed["lb"]["properties"]["vip_subnet"] = "other"
    service.update(stack_id, changed)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.states(stack_id)
    assert not before & cloud.things().keys()
    assert "all" in cloud.deletions
    assert len(cloud.things()) == len(before)


def test_members_that_go_while_the_balancer_stays_are_deleted_one_by_one(service: Service) -> None:
    stack_id, cloud = made(service)
    service.update(stack_id, balanced(2))
    service.rest()
    assert cloud.deletions == ["pool_member"] * 3


def test_the_deletion_of_a_stack_whose_balancer_is_in_error_ends_by_itself(service: Service) -> None:
    stack_id, cloud = made(service)
    (balancer,) = cloud.things("load_balancer")
    cloud.change(balancer, status="error", fault="no host")
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.deletions == ["all"]
    assert cloud.things() == {}


def test_what_others_have_added_stays_and_the_rest_goes_one_by_one(service: Service) -> None:
    stack_id, cloud = made(service)
    (balancer,) = cloud.things("load_balancer")
    theirs = cloud.add_listener()
    service.delete(stack_id)
    service.live(30)
    assert set(cloud.things()) == {balancer, theirs}
    assert cloud.deletions.count("all") == 1
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    reason = service.row(stack_id, "lb").reason
    assert reason == f"load_balancer {balancer} is in use by listener {theirs}"
    cloud.vanish(theirs)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.things() == {}


def test_it_is_said_why_the_parts_go_one_by_one(service: Service) -> None:
    stack_id, cloud = made(service)
    theirs = cloud.add_listener()
    service.delete(stack_id)
    row = service.row(stack_id, "lb")
    assert row.status == "IN_PROGRESS"
    assert row.reason.startswith("its parts are deleted first, one by one: ")
    assert theirs in row.reason


def test_a_part_that_is_retained_stays_with_its_balancer(service: Service) -> None:
    resources = balanced()
    resources["listener"]["deletion_policy"] = "Retain"
    stack_id, cloud = made(service, resources)
    kept = {*cloud.things("load_balancer"), *cloud.things("listener")}
    service.delete(stack_id)
    service.live(30)
    assert cloud.deletions[0] != "all"
    assert set(cloud.things()) == kept


def test_answers_that_are_lost_leave_nothing_behind(service: Service) -> None:
    stack_id, cloud = made(service)
    cloud.lost = 3
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert set(cloud.deletions) == {"all"}
    assert cloud.things() == {}


def test_a_worker_that_dies_after_the_request_leaves_nothing_behind(service: Service) -> None:
    stack_id, cloud = made(service)
    cloud.dies = True
    with pytest.raises(KeyboardInterrupt):
        service.delete(stack_id)
    service.clock.time += 600.0
    service.rest(3600.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.things() == {}
    assert set(cloud.deletions) == {"all"}


def test_a_composed_balancer_goes_in_one_request(service: Service) -> None:
    listeners = [{"LoadBalancerPort": port, "InstancePort": port, "Protocol": "TCP"} for port in (80, 81)]
    elb = {"AvailabilityZones": ["nova"], "Listeners": listeners}
    stack_id, cloud = made(service, {"elb": {"type": "AWS::ElasticLoadBalancing::LoadBalancer", "properties": elb}})
    assert len(cloud.things("listener")) == 2
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.deletions == ["all"]
    assert cloud.things() == {}


MEMBER = """
heat_template_version: 2021-04-16
parameters:
  pool: {type: string}
resources:
  member:
    type: OS::Octavia::PoolMember
    properties: {pool: {get_param: pool}, address: 10.0.0.9, protocol_port: 80}
"""


def grouped(count: int = 3) -> dict[str, Any]:
    """Members that are resources of a group's stack, and one in a stack of its own, below another one."""
    pool = {"get_resource": "pool"}
    properties = {"pool": pool, "address": "10.0.0.%index%", "protocol_port": 80}
    group = {"count": count, "resource_def": {"type": "OS::Octavia::PoolMember", "properties": properties}}
    deep = {"count": 1, "resource_def": {"type": "member.yaml", "properties": {"pool": pool}}}
    resources = {name: each for name, each in balanced(0).items() if name != "monitor"}
    groups = {
        name: {"type": "OS::Heat::ResourceGroup", "properties": each} for name, each in (("g", group), ("d", deep))
    }
    return {**resources, **groups}


def broken(
    service: Service, resources: dict[str, Any], member: str = MEMBER, **options: Any
) -> tuple[str, BalancingCloud]:
    """A stack whose load balancer has gone to ERROR."""
    stack_id = service.create(resources, files={"member.yaml": member}, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    assert isinstance(service.cloud, BalancingCloud)
    (balancer,) = service.cloud.things("load_balancer")
    service.cloud.change(balancer, status="error", fault="no host")
    service.cloud.deletions.clear()
    return stack_id, service.cloud


def test_a_balancer_in_error_takes_along_what_nested_stacks_have_in_it(service: Service) -> None:
    stack_id, cloud = broken(service, grouped())
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.things() == {}


def test_what_a_nested_stack_retains_keeps_a_balancer_in_error(service: Service) -> None:
    retained = MEMBER.replace("    properties:", "    deletion_policy: Retain\n    properties:")
    stack_id, cloud = broken(service, grouped(), retained)
    before = set(cloud.things())
    service.delete(stack_id)
    service.live(120)
    assert set(cloud.things()) == before
    (kept,) = (each for each, it in cloud.things("pool_member").items() if it["address"] == "10.0.0.9")
    assert kept in service.row(stack_id, "lb").reason


def test_what_others_have_added_keeps_a_balancer_in_error(service: Service) -> None:
    stack_id, cloud = broken(service, grouped())
    theirs = cloud.add_listener()
    before = set(cloud.things())
    service.delete(stack_id)
    service.live(120)
    assert set(cloud.things()) == before
    assert theirs in service.row(stack_id, "lb").reason
    cloud.vanish(theirs)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.things() == {}


def test_a_deletion_that_took_too_long_ends_once_it_is_requested_again(service: Service) -> None:
    stack_id, cloud = broken(service, grouped(), timeout_mins=3)
    theirs = cloud.add_listener()
    service.delete(stack_id)
    service.live(200)
    assert service.state(stack_id) == "DELETE_FAILED"
    cloud.vanish(theirs)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.things() == {}


def test_an_update_that_drops_balancer_and_group_does_the_same(service: Service) -> None:
    stack_id, cloud = broken(service, grouped())
    service.update(stack_id, {"r": {"type": "OS::Heat::TestResource"}})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert cloud.things() == {}


def test_a_balancer_that_works_waits_for_what_nested_stacks_have_in_it(service: Service) -> None:
    stack_id, cloud = broken(service, grouped())
    (balancer,) = cloud.things("load_balancer")
    cloud.change(balancer, status="active", fault=None)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.deletions == ["pool_member"] * 4 + ["all"]


def test_a_worker_that_dies_after_such_a_request_leaves_nothing_behind(service: Service) -> None:
    stack_id, cloud = broken(service, grouped())
    theirs = cloud.add_listener()
    service.delete(stack_id)
    service.live(10)
    cloud.vanish(theirs)
    cloud.dies = True
    with pytest.raises(KeyboardInterrupt):
        service.live(120)
    assert cloud.deletions[-1] == "all"
    service.clock.time += 600.0
    service.rest(3600.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert cloud.things() == {}


@pytest.mark.heavy
def test_after_other_deletion_policies_nothing_of_nested_stacks_is_taken_along(service: Service) -> None:
    """Nested stacks read the new policies when they decide next: until then what they have stored does not count."""
    stack_id, cloud = broken(service, grouped())
    theirs = cloud.add_listener()
    service.delete(stack_id)
    service.live(30)
    members = set(cloud.things("pool_member"))
    assert going(service, stack_id) == members
    retained = MEMBER.replace("    properties:", "    deletion_policy: Retain\n    properties:")
    request = StackRequest(template(grouped()), files={"member.yaml": retained}, disable_rollback=True)
    service.stack_service.update(stack_id, request)
    assert going(service, stack_id) == set()
    before = set(cloud.things()) - {theirs}
    cloud.vanish(theirs)
    service.live(300)
    assert set(cloud.things()) == before
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"


def going(service: Service, root_id: str) -> set[str]:
    with service.db.read() as tx:
        found = deletion.deletions_below(tx, root_id, ["OS::Octavia::PoolMember"], 10)
        assert deletion.deletions_below(tx, "another", ["OS::Octavia::PoolMember"], 10) == []
        assert len(deletion.deletions_below(tx, root_id, ["OS::Octavia::PoolMember"], 1)) == min(1, len(found))
    return {handle for _, handle in found}
