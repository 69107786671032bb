"""Networks and floating addresses of the local cloud."""

import os
import signal
from typing import Any

from tests.contract.local_things import WEB, got, made, operated, seen, server
from tests.waiting import until

from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation

# -- networks --------------------------------------------------------------------------------------


def test_a_subnet_of_loopback_addresses_is_used_as_it_is(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net")
    cidr = f"127.250.{os.getpid() % 250}.0/24"
    subnet = made(cloud, "subnet", network_id=network.handle, cidr=cidr, gateway_ip=None)
    assert subnet.properties["loopback_cidr"] == cidr
    port = made(cloud, "port", network_id=network.handle)
    assert port.properties["fixed_ips"][0]["ip_address"] == cidr.replace("0/24", "1")
    (refused,) = cloud.create("subnet", [Creation("again", {"network_id": network.handle, "cidr": cidr})])
    assert isinstance(refused, Terminal)


def test_other_addresses_keep_their_place_in_a_loopback_block(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net").handle
    pools = [{"start": "10.1.0.100", "end": "10.1.0.101"}]
    made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24", allocation_pools=pools)
    fixed = made(cloud, "port", "fixed", network_id=network, fixed_ips=[{"ip_address": "10.1.0.9"}])
    address = fixed.properties["fixed_ips"][0]["ip_address"]
    assert address.startswith("127.")
    assert address.endswith(".9")
    free = [made(cloud, "port", f"p{i}", network_id=network).properties["fixed_ips"][0]["ip_address"] for i in (0, 1)]
    assert [address.rpartition(".")[2] for address in free] == ["100", "101"]
    asked = [{"ip_address": "10.1.0.9"}], [{"ip_address": "10.2.0.1"}], None
    answers = cloud.create(
        "port", [Creation(f"q{i}", {"network_id": network, "fixed_ips": each}) for i, each in enumerate(asked)]
    )
    assert [type(answer) for answer in answers] == [Transient, Terminal, Transient]


def test_a_server_moves_to_another_network_in_place(cloud: LocalCloud) -> None:
    web = server(cloud)
    network = made(cloud, "network", name="net").handle
    made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24")
    both = [{"network": "private"}, {"network": network}]
    cloud.update("server", [Change(web.handle, {"networks": both}, ("networks",))])
    assert set(seen(cloud, "server", web.handle)["addresses"]) == {"private", "net"}
    cloud.update("server", [Change(web.handle, {"networks": [{"network": network}]}, ("networks",))])
    moved = seen(cloud, "server", web.handle)
    assert set(moved["addresses"]) == {"net"}
    assert (moved["status"], moved["pid"]) == ("active", web.properties["pid"])
    assert len(cloud.handles("port")) == 1


def test_what_a_server_has_already_it_keeps_however_it_is_asked_for(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net").handle
    subnet = made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24").handle

    def plugged(*entries: dict[str, Any]) -> list[dict[str, Any]]:
        (answer,) = cloud.update("server", [Change(web.handle, {"networks": list(entries)}, ("networks",))])
        assert isinstance(answer, Observation), repr(answer)
        return list(answer.properties["addresses"]["net"])

    web = server(cloud, networks=[{"network": "net"}])
    (first,) = web.properties["addresses"]["net"]
    for same in (
        {"network": "net", "fixed_ip": first["addr"]},
        {"subnet": subnet},
        {"network": network},
        {"subnet": subnet, "fixed_ip": first["addr"]},
    ):
        assert plugged(same) == [first], "the same port, and nobody waits for its own address"
    other, same = plugged({"network": "net"}, {"network": "net", "fixed_ip": first["addr"]})
    assert same == first
    assert plugged({"network": "net", "fixed_ip": other["addr"]}, {"subnet": subnet}) == [other, first]
    assert len(cloud.handles("port")) == 2
    (moved,) = plugged({"network": "net", "fixed_ip": "10.1.0.77"})
    assert moved["addr"].endswith(".77")
    assert cloud.handles("port") == [moved["port"]]


def test_a_subnet_without_pools_hands_out_all_but_the_gateway(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net").handle
    own = [{"start": "10.1.0.10", "end": "10.1.0.20"}]
    subnet = made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24", gateway_ip="10.1.0.5", allocation_pools=own)
    assert subnet.properties["allocation_pools"] == own
    nothing: tuple[Any, ...] = (None, [])
    for none in nothing:
        cloud.update("subnet", [Change(subnet.handle, {"allocation_pools": none}, ("allocation_pools",))])
        assert seen(cloud, "subnet", subnet.handle)["allocation_pools"] == [
            {"start": "10.1.0.1", "end": "10.1.0.4"},
            {"start": "10.1.0.6", "end": "10.1.0.254"},
        ]


def test_a_floating_address_serves_what_its_port_serves(cloud: LocalCloud) -> None:
    port = made(cloud, "port", network_id="private")
    server(cloud, "web", WEB, networks=[{"port": port.handle}])
    floating = made(cloud, "floating_ip", floating_network_id="public").properties
    association = made(cloud, "floating_ip_association", floatingip_id=floating["id"], port_id=port.handle)
    address = floating["floating_ip_address"]
    assert until(lambda: got(address)) == "web"
    os.kill(seen(cloud, "floating_ip", floating["id"])["pid"], signal.SIGKILL)
    until(lambda: seen(cloud, "floating_ip", floating["id"])["status"] == "stopped")
    operated(cloud, "floating_ip", floating["id"], "start")
    assert until(lambda: got(address)) == "web"
    cloud.delete("floating_ip_association", [association.handle])
    assert got(address) == ""
    assert seen(cloud, "floating_ip", floating["id"])["status"] == "down"
