"""Floating addresses of servers as Networking has them: Compute notices changes some seconds later. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.server_ports import COMPUTE
from homeostat.clouds.openstack.service import Wire

TYPE, MAC = "OS-EXT-IPS:type", "OS-EXT-IPS-MAC:mac_addr"
FLOATING = "floating"


def servers_led_to(floating: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the servers that floating IPs lead to, if Networking shows the owners of the ports."""
    ports = (floating_ip.get("port_details") or {} for floating_ip in floating)
    return {str(port["device_id"]) for port in ports if str(port.get("device_owner", "")).startswith(COMPUTE)}


def with_floating(thing: Wire, floating: Sequence[Mapping[str, Any]]) -> Wire:
    """Return a server, which has its `_ports`, with the addresses of the given floating IPs instead of its own."""
    ports = {mac: port["id"] for mac, port in (thing.get("_ports") or {}).items()}
    groups = (thing.get("addresses") or {}).items()
    return {**thing, "addresses": {name: _with_floating(group, ports, floating) for name, group in groups}}


def _with_floating(
    group: Sequence[Wire], ports: Mapping[str, str], floating: Sequence[Mapping[str, Any]]
) -> list[Wire]:
    fixed = [address for address in group if address.get(TYPE) != FLOATING]
    led = [
        {**address, "addr": floating_ip["floating_ip_address"], "version": 4, TYPE: FLOATING}
        for address in fixed
        for floating_ip in floating
        if floating_ip["port_id"] == ports.get(address.get(MAC, ""))
        and floating_ip["fixed_ip_address"] == address["addr"]
    ]
    return [*fixed, *led]
