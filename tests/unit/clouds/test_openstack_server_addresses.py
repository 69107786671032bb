"""Floating addresses of servers, as Networking has them."""

from typing import Any

import pytest

from homeostat.clouds.openstack.server_addresses import MAC, TYPE, servers_led_to, with_floating
from homeostat.clouds.openstack.service import Wire

FIXED = {"addr": "10.0.0.2", "version": 4, TYPE: "fixed", MAC: "m"}
OTHER = {"addr": "10.0.0.3", "version": 4, TYPE: "fixed", MAC: "n"}
OLD = {"addr": "172.24.0.9", "version": 4, TYPE: "floating", MAC: "m"}
NEW = {"addr": "172.24.0.8", "version": 4, TYPE: "floating", MAC: "m"}
PORTS = {"m": {"id": "p"}, "n": {"id": "q"}}


def leads(port: str | None, to: str | None, address: str = "172.24.0.8") -> Wire:
    return {"floating_ip_address": address, "port_id": port, "fixed_ip_address": to}


CASES: dict[str, tuple[list[Wire], list[Wire], list[Wire]]] = {
    "it is added": ([FIXED, OTHER], [leads("p", "10.0.0.2")], [FIXED, OTHER, NEW]),
    "it is there already": ([FIXED, NEW], [leads("p", "10.0.0.2")], [FIXED, NEW]),
    "it has gone": ([FIXED, OLD], [], [FIXED]),
    "another one is there": ([FIXED, OLD], [leads("p", "10.0.0.2")], [FIXED, NEW]),
    "it leads to another address of the port": ([FIXED], [leads("p", "10.0.0.7")], [FIXED]),
    "it leads to another port": ([FIXED, OLD], [leads("z", "10.0.0.2")], [FIXED]),
}


@pytest.mark.parametrize(("shown", "floating", "expected"), CASES.values(), ids=CASES)
def test_floating_addresses_are_those_of_networking(
    shown: list[Wire], floating: list[Wire], expected: list[Wire]
) -> None:
    found = with_floating({"id": "s", "_ports": PORTS, "addresses": {"net": shown, "none": []}}, floating)
    assert found["addresses"] == {"net": expected, "none": []}


def test_a_server_without_addresses_stays_so() -> None:
    assert with_floating({"id": "s", "_ports": {}}, [leads("p", "10.0.0.2")])["addresses"] == {}


def test_servers_are_those_with_the_ports() -> None:
    def of(**details: Any) -> Wire:
        return {"id": "f", "port_details": details or None}

    owned = [("s", "compute:nova"), ("t", "compute:"), ("r", "network:router_interface"), ("", "")]
    assert servers_led_to([of(), {"id": "g"}, *(of(device_id=id, device_owner=by) for id, by in owned)]) == {"s", "t"}
