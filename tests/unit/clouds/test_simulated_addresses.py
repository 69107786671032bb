"""Addresses and ports of the simulated cloud's servers."""

from homeostat.clouds.simulated.objects import FIELDS


def test_a_server_has_a_port_of_its_own_in_each_network() -> None:
    networks = [{"network": "a"}, {"network": "b"}, {"network": "a"}, {"port": "port-7"}]
    found = FIELDS["server"]({"networks": networks}, 3)
    assert found["addresses"].keys() == {"a", "b", "port-7"}
    ports = [each for entries in found["addresses"].values() for each in entries]
    assert len({each["port"] for each in ports}) == len({each["addr"] for each in ports}) == len(networks)
    assert found["address"] == found["addresses"]["a"][0]["addr"]
    assert found["addresses"]["port-7"][0]["port"] == "port-7"


def test_ports_of_two_servers_differ() -> None:
    one, other = (FIELDS["server"]({}, number)["addresses"]["default"][0] for number in (1, 2))
    assert one["port"] != other["port"]
    assert one["addr"] != other["addr"]
