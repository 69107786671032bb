"""What is taken out of a template goes back to what the service gives a new thing, and what is taken away is missed."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from homeostat.clouds.port import Change, Creation
from homeostat.model.observed import Condition
from homeostat.resources.registry import type_of
from tests.openstack import test_servers as servers
from tests.openstack.one_thing import present
from tests.openstack.test_servers import Server, World

world = servers.world
SUBNET = type_of("OS::Neutron::Subnet")
POOL = [{"start": "10.76.0.20", "end": "10.76.0.30"}]


@pytest.mark.parametrize(
    "first",
    [{"gateway_ip": "10.76.0.9"}, {"gateway_ip": ""}, {"allocation_pools": POOL, "gateway_ip": "10.76.0.9"}],
    ids=["gateway", "no gateway", "gateway and pools"],
)
def test_a_subnet_goes_back_to_its_defaults(world: World, first: Mapping[str, Any]) -> None:
    network = world.user.network.create_network(name="defaults").id
    base = {"network": network, "cidr": "10.76.0.0/24"}
    kind = SUBNET.kind

    def spec(**values: Any) -> dict[str, Any]:
        return SUBNET.spec(SUBNET.complete(SUBNET.check({**base, **values})), "s")

    def made(**values: Any) -> str:
        return present(world.cloud.create(kind, [Creation(f"{uuid.uuid4().hex[:12]}-1", spec(**values))])[0]).handle

    def fields(handle: str) -> tuple[Any, Any]:
        (seen,) = world.cloud.observe(kind, [handle])
        return seen.properties["gateway_ip"], seen.properties["allocation_pools"]

    plain = made()
    wanted = fields(plain)
    world.cloud.delete(kind, [plain])
    subnet = made(**first)
    assert fields(subnet) != wanted
    present(world.cloud.update(kind, [Change(subnet, spec(), tuple(sorted(first)))])[0])
    assert fields(subnet) == wanted
    present(world.cloud.update(kind, [Change(subnet, spec(**first), tuple(sorted(first)))])[0])
    assert fields(subnet) != wanted


def test_a_detached_interface_is_missed_and_attached_again(world: World) -> None:
    server = Server(world, world.spec()).built()
    assert server.settled().present
    (port,) = world.user.network.ports(device_id=server.handle)
    world.user.compute.delete_server_interface(port.id, server=server.handle)
    seen = server.until(Condition.DRIFTED)
    assert server.verdict(seen).drifted == ("networks",)
    server.change(networks=[{"network": world.network}])
    assert len([*world.user.network.ports(device_id=server.handle)]) == 1
    server.delete()
