"""What a look at the members of quiet pools of a real Octavia costs; a change by hand is seen all the same."""

import contextlib
from collections.abc import Iterator

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.model.observed import Observation
from tests.openstack.adapter import adapter, rest
from tests.openstack.calls import Calls
from tests.openstack.lives import make
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = pytest.mark.services("octavia")
POOLS, MEMBERS = 2, 2


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def members(cloud: OpenStackCloud) -> list[str]:
    """The handles of the members of some pools."""
    network = make(cloud, "OS::Neutron::Net", {"name": "net"})
    make(cloud, "OS::Neutron::Subnet", {"name": "sub", "network": network, "cidr": "10.31.0.0/24"})
    make(cloud, "OS::Octavia::LoadBalancer", {"name": "web", "vip_subnet": "sub"})
    found = []
    for i in range(POOLS):
        pool = {"name": f"pool{i}", "loadbalancer": "web", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
        make(cloud, "OS::Octavia::Pool", pool)
        for j in range(MEMBERS):
            member = {"pool": f"pool{i}", "address": f"10.31.0.{10 + j}", "protocol_port": 80}
            found.append(make(cloud, "OS::Octavia::PoolMember", member))
    return found


@pytest.fixture
def user(project: Project) -> Iterator[Connection]:
    with contextlib.closing(project.connection()) as found:
        yield found


@pytest.mark.shows("CV7")
def test_a_look_at_the_members_of_quiet_pools_is_one_list(
    cloud: OpenStackCloud, members: list[str], user: Connection
) -> None:
    def looks() -> list[Observation]:
        return cloud.observe("pool_member", members)

    def cost() -> dict[str, int]:
        with Calls() as calls:
            assert all(each.present for each in looks())
        return dict(calls.reading)

    def is_quiet() -> bool:
        return cost() == {"GET /lbaas/pools": 1}

    until(is_quiet, "the pools to be quiet", rest)
    pool, _, id = members[0].rpartition("/")
    user.load_balancer.update_member(id, pool, weight=7)
    until(lambda: looks()[0].properties["weight"] == 7, "the change to be seen", rest)
    assert [each.properties["weight"] for each in looks()] == [7, 1, 1, 1]
    until(is_quiet, "the pools to be quiet again", rest)
    until(lambda: is_deleted(user, id, pool), "the load balancer to take the deletion", rest)
    until(lambda: not looks()[0].present, "the deletion to be seen", rest)
    assert [each.present for each in looks()] == [False, True, True, True]


def is_deleted(user: Connection, id: str, pool: str) -> bool:
    answer = user.load_balancer.delete(f"/lbaas/pools/{pool}/members/{id}")
    return bool(answer.status_code in (204, 404))
