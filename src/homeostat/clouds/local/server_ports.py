"""Ports of a server: named by its `networks`, or created for the entries that name none."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clouds.local import networks
from homeostat.clouds.local.addresses import reached_as
from homeostat.clouds.local.tree import ThingRecord
from homeostat.clouds.local.tree_snapshot import TreeSnapshot

Entries = list[Mapping[str, Any]]


def entries_of(record: ThingRecord) -> Entries:
    entries = record.spec.get("networks") or [{"allocate_network": "auto"}]
    return [entry for entry in entries if entry.get("allocate_network") != "none"]


def own_port(look: TreeSnapshot, record: ThingRecord, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of the port created for an entry of `networks` without a port."""
    subnet = look.resolve("subnet", entry["subnet"]) if entry.get("subnet") else None
    network = entry.get("network") or (subnet.facts["network_id"] if subnet else networks.BUILT_IN[0][0])
    fixed = {"subnet": subnet.id if subnet else None, "ip_address": entry.get("fixed_ip")}
    wanted = {name: value for name, value in fixed.items() if value}
    return {
        **(entry.get("port_extra_properties") or {}),
        "network": network,
        "fixed_ips": [wanted] if wanted else None,
        "security_groups": record.spec.get("security_groups") or [],
    }


def retained_ports(
    look: TreeSnapshot, record: ThingRecord, wanted: Sequence[Mapping[str, Any] | None]
) -> list[ThingRecord | None]:
    """Return a fitting existing port of the server for each wanted port, or None.

    `wanted` has None for entries with a named port.
    """
    # Wanted ports with an address choose first, since any wanted port fits a port with an address.
    free = [port for port in look.referring("port", "device_id", record.id) if port.facts.get("own")]
    retained: list[ThingRecord | None] = [None] * len(wanted)
    for number in sorted(range(len(wanted)), key=lambda at: not _wants_address(wanted[at])):
        spec = wanted[number]
        fitting = [port for port in free if spec is not None and _fits(look, port, spec)]
        if fitting:
            port = retained[number] = next((port for port in fitting if port.spec == spec), fitting[0])
            free.remove(port)
    return retained


def _wants_address(spec: Mapping[str, Any] | None) -> bool:
    return any(fixed.get("ip_address") for fixed in (spec or {}).get("fixed_ips") or ())


def _fits(look: TreeSnapshot, port: ThingRecord, spec: Mapping[str, Any]) -> bool:
    """Return whether a port has the network, addresses and subnets of a spec, and otherwise equals the spec."""
    if port.facts["network_id"] != look.resolve("network", spec["network"]).id:
        return False
    for requested in spec["fixed_ips"] or ():
        if not any(_is_at(look, fixed, requested) for fixed in port.facts["fixed_ips"]):
            return False
    compared = {"network", "fixed_ips", "security_groups"}
    return {name: port.spec[name] for name in port.spec.keys() - compared} == {
        name: spec[name] for name in spec.keys() - compared
    }


def _is_at(look: TreeSnapshot, fixed: Mapping[str, Any], requested: Mapping[str, Any]) -> bool:
    subnet = look.get("subnet", fixed["subnet_id"])
    address = requested.get("ip_address")
    right = not address or (subnet is not None and reached_as(subnet.facts, address) == fixed["ip_address"])
    return right and requested.get("subnet") in (None, fixed["subnet_id"])


def free_token(look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any]) -> str:
    """Return the token of a new port, derived from its request, so that a retry after a crash gets the same port."""
    taken = {port.token for port in look.referring("port", "device_id", record.id)}
    tokens = (f"{record.id} {spec['network']} {spec['fixed_ips']} {number}" for number in itertools.count(1))
    return next(token for token in tokens if token not in taken)
