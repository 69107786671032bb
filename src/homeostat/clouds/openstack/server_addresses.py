"""Floating addresses of servers, as Networking has them: Compute takes note of a change some seconds later. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.server_ports import COMPUTE
from homeostat.clouds.openstack.service import Wire

TYPE, MAC = "OS-EXT-IPS:type", "OS-EXT-IPS-MAC:mac_addr"
FLOATING = "floating"


def servers_led_to(floating: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the servers that floating IPs lead to, where Networking tells whose their ports are."""
    ports = (each.get("port_details") or {} for each in floating)
    return {str(each["device_id"]) for each in ports if str(each.get("device_owner", "")).startswith(COMPUTE)}


def with_floating(thing: Wire, floating: Sequence[Mapping[str, Any]]) -> Wire:
    """Return a server, which has its `_ports`, with the addresses of these floating IPs in place of those it shows."""
    ports = {mac: port["id"] for mac, port in (thing.get("_ports") or {}).items()}
    groups = (thing.get("addresses") or {}).items()
    return {**thing, "addresses": {name: _with_floating(group, ports, floating) for name, group in groups}}


def _with_floating(
    group: Sequence[Wire], ports: Mapping[str, str], floating: Sequence[Mapping[str, Any]]
) -> list[Wire]:
    fixed = [each for each in group if each.get(TYPE) != FLOATING]
    led = [
        {**each, "addr": one["floating_ip_address"], "version": 4, TYPE: FLOATING}
        for each in fixed
        for one in floating
        if one["port_id"] == ports.get(each.get(MAC, "")) and one["fixed_ip_address"] == each["addr"]
    ]
    return [*fixed, *led]
