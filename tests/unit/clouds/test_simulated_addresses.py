"""Addresses and ports of the simulated cloud's servers."""

import pytest

from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clouds.simulated.objects import FIELDS
from homeostat.model.observed import Observation


def test_a_server_has_a_port_of_its_own_in_each_network() -> None:
    networks = [{"network": "a"}, {"network": "b"}, {"network": "a"}, {"port": "port-7"}]
    found = FIELDS["server"]({"networks": networks}, 3)
    assert found["addresses"].keys() == {"a", "b", "port-7"}
    ports = [each for entries in found["addresses"].values() for each in entries]
    assert len({each["port"] for each in ports}) == len({each["addr"] for each in ports}) == len(networks)
    assert found["address"] == found["addresses"]["a"][0]["addr"]
    assert found["addresses"]["port-7"][0]["port"] == "port-7"


def test_ports_of_two_servers_differ() -> None:
    one, other = (FIELDS["server"]({}, number)["addresses"]["private"][0] for number in (1, 2))
    assert one["port"] != other["port"]
    assert one["addr"] != other["addr"]


def made(cloud: SimulatedCloud, kind: str, **spec: object) -> Observation:
    (found,) = cloud.create(kind, [Creation(f"{kind}-{spec.get('name')}", spec)])
    assert isinstance(found, Observation)
    return found


@pytest.mark.parametrize("named", ["id", "name"])
def test_a_server_on_a_port_has_its_address_under_the_network_by_name_and_id(named: str) -> None:
    cloud = SimulatedCloud(lambda: 0.0)
    net = made(cloud, "network", name="lan")
    port = made(cloud, "port", name="p", network=net.handle, fixed_ips=[{"ip_address": "10.9.9.9"}])
    server = made(cloud, "server", name="s", networks=[{"port": port.handle if named == "id" else "p"}])
    (entry,) = server.properties["addresses"]["lan"]
    assert (entry["addr"], entry["network"]) == ("10.9.9.9", net.handle)
    assert entry["mac"] == port.properties["mac_address"]
    plain = made(cloud, "server", name="t", networks=[{"network": net.handle if named == "id" else "lan"}])
    assert [each["network"] for each in plain.properties["addresses"]["lan"]] == [net.handle]
