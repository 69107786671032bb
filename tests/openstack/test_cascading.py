"""A load balancer of a real Octavia goes in one request together with its parts, and with nothing of others."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Answer, Operation
from homeostat.model.errors import HomeostatError, Terminal, Transient
from homeostat.model.observed import Observation
from homeostat.model.plan import DELETE_WITH_PARTS
from tests.openstack import lives
from tests.openstack.calls import Calls
from tests.openstack.lives import accepted, make
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = [pytest.mark.services("octavia"), pytest.mark.slow]
MEMBERS = 4


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def subnet(cloud: OpenStackCloud) -> str:
    network = make(cloud, "OS::Neutron::Net", {"name": "net"})
    make(cloud, "OS::Neutron::Subnet", {"name": "sub", "network": network, "cidr": "10.33.0.0/24"})
    return "sub"


@pytest.fixture
def user(project: Project) -> Iterator[Connection]:
    with contextlib.closing(project.connection()) as found:
        yield found


@dataclass
class Balanced:
    """A load balancer, its name, and the handles of its parts by kind."""

    cloud: OpenStackCloud
    handle: str
    name: str
    parts: dict[str, list[str]]

    def cascade(self, **without: list[str]) -> Answer:
        """Ask for its deletion, once no other change of it is under way."""
        operation = Operation(self.handle, DELETE_WITH_PARTS, {"parts": {**self.parts, **without}})

        def ask() -> Answer | None:
            (answer,) = self.cloud.operate("load_balancer", [operation])
            return None if isinstance(answer, Transient) else answer

        found = until(ask, "an answer", rest=lives.rest)
        assert isinstance(found, Observation | HomeostatError)
        return found

    def looks(self) -> list[Observation]:
        return [look for kind, handles in self.parts.items() for look in self.cloud.observe(kind, handles)]

    def status(self) -> Any:
        (look,) = self.cloud.observe("load_balancer", [self.handle])
        return look.properties["status"] if look.present else "gone"


@pytest.fixture
def balanced(cloud: OpenStackCloud, subnet: str, request: pytest.FixtureRequest) -> Balanced:
    name = f"web-{request.node.name}"[:60]
    balancer = make(cloud, "OS::Octavia::LoadBalancer", {"name": name, "vip_subnet": subnet})
    common = {"protocol": "HTTP"}
    listener = make(cloud, "OS::Octavia::Listener", {"loadbalancer": balancer, "protocol_port": 80, **common})
    pool = make(cloud, "OS::Octavia::Pool", {"listener": listener, "lb_algorithm": "ROUND_ROBIN", **common})
    apart = make(cloud, "OS::Octavia::Pool", {"loadbalancer": balancer, "lb_algorithm": "ROUND_ROBIN", **common})
    members = [
        make(cloud, "OS::Octavia::PoolMember", {"pool": pool, "address": f"10.33.0.{10 + i}", "protocol_port": 80})
        for i in range(MEMBERS)
    ]
    check = {"type": "TCP", "delay": 5, "timeout": 2, "max_retries": 2}
    monitor = make(cloud, "OS::Octavia::HealthMonitor", {"pool": pool, **check})
    policy = make(cloud, "OS::Octavia::L7Policy", {"listener": listener, "action": "REJECT"})
    rule = make(
        cloud, "OS::Octavia::L7Rule", {"l7policy": policy, "type": "PATH", "value": "/x", "compare_type": "EQUAL_TO"}
    )
    parts = {
        "listener": [listener],
        "pool": [pool, apart],
        "pool_member": members,
        "health_monitor": [monitor],
        "l7_policy": [policy],
        "l7_rule": [rule],
    }
    return Balanced(cloud, balancer, name, parts)


def test_it_goes_in_one_request_and_its_parts_are_found_gone_by_looks(balanced: Balanced) -> None:
    with Calls() as calls:
        answer = balanced.cascade()
    assert isinstance(answer, Observation), answer
    assert sum(calls.mutating.values()) == 1
    until(lambda: balanced.status() == "gone", "the load balancer to go", rest=lives.rest)
    with Calls() as calls:
        assert not any(each.present for each in balanced.looks())
    assert not calls.mutating
    again = balanced.cascade()
    assert isinstance(again, Observation)
    assert not again.present
    assert again.not_found


@pytest.mark.parametrize("kind", ["listener", "pool", "pool_member", "health_monitor", "l7_policy", "l7_rule"])
def test_a_part_that_is_not_listed_keeps_it_all(balanced: Balanced, kind: str) -> None:
    with Calls() as calls:
        answer = balanced.cascade(**{kind: balanced.parts[kind][1:]})
    assert isinstance(answer, Terminal), answer
    assert balanced.parts[kind][0].rpartition("/")[2] in str(answer)
    assert not calls.mutating
    assert all(each.present for each in balanced.looks())
    balanced.cascade()


def test_one_in_error_takes_no_other_change_and_goes_all_the_same(balanced: Balanced, project: Project) -> None:
    with (
        contextlib.closing(project.cloud.admin()) as admin,
        project.cloud.fault("lb", op="build", name=f"^{balanced.name}$", error="oops"),
    ):
        admin.load_balancer.failover_load_balancer(balanced.handle)
        until(lambda: balanced.status() == "error", "the load balancer to go to ERROR", rest=lives.rest)
    refused = balanced.cloud.delete("listener", balanced.parts["listener"])[0]
    assert isinstance(refused, Transient)
    assert "in ERROR" in str(refused)
    accepted(lambda: [balanced.cascade()])
    until(lambda: balanced.status() == "gone", "the load balancer to go", rest=lives.rest)
    assert not any(each.present for each in balanced.looks())
