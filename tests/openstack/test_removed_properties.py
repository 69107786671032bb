"""What is taken out of a template goes back to what the service gives a new thing, and what is taken away is missed."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from homeostat.clouds.port import Change, Creation
from homeostat.model.observed import Condition
from homeostat.resources.base import Thing
from homeostat.resources.registry import type_of
from tests.openstack import test_servers as servers
from tests.openstack.one_thing import present
from tests.openstack.running import eventually
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


@pytest.mark.parametrize("has_address", [True, False], ids=["with an address", "without one"])
def test_a_detached_port_that_was_named_is_missed_and_attached_again(world: World, has_address: bool) -> None:
    fixed: dict[str, Any] = {} if has_address else {"fixed_ips": []}
    port = world.user.network.create_port(network_id=world.network, name=f"own-{uuid.uuid4()}", **fixed)
    networks = [{"network": world.network}, {"port": port.id}]
    server = Server(world, world.spec(networks=networks)).built()
    assert server.settled().present
    world.user.compute.delete_server_interface(port.id, server=server.handle)
    if not has_address:  # of which a server shows nothing: only who asks anew sees that
        eventually(lambda: not world.user.network.get_port(port.id).device_id or None, "the port to be free")
        assert server.verdict(server.look()).condition is Condition.READY
    else:
        assert server.verdict(server.until(Condition.DRIFTED)).drifted == ("networks",)
    server.change(networks=networks)
    assert world.user.network.get_port(port.id).device_id == server.handle
    assert server.verdict(server.look()).condition is Condition.READY
    server.delete()
    world.user.network.delete_port(port.id)


NET = type_of("OS::Neutron::Net")


def test_a_further_field_that_was_changed_is_missed_and_set_again(world: World) -> None:
    specs = {"description": "Some Words", "mtu": "1400"}
    values = NET.complete(NET.check({"name": "further", "value_specs": specs}))
    spec = NET.spec(values, "further")
    made = present(world.cloud.create("network", [Creation(f"{uuid.uuid4().hex[:12]}-1", spec)])[0])

    def drift() -> tuple[str, ...]:
        (seen,) = world.cloud.observe("network", [made.handle])
        return NET.drift(Thing("k", "it", "further", values, seen, made.handle))

    assert drift() == ()
    world.user.network.update_network(made.handle, mtu=1300)
    assert drift() == ("value_specs",)
    fields = NET.fields_of("value_specs", values)
    present(world.cloud.update("network", [Change(made.handle, spec, fields)])[0])
    assert drift() == ()
    assert world.user.network.get_network(made.handle).mtu == 1400
    world.cloud.delete("network", [made.handle])
