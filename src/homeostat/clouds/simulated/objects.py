"""Objects of simulated kinds: the fields that a cloud adds to the requested ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeostat.clouds.simulated import services
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.model.plan import DELETE_WITH_PARTS, snapshots_of

READY_STATUS: Mapping[str, str] = {
    "server": "active",
    "network": "active",
    "port": "active",
    "router": "active",
    "floating_ip": "active",
    "volume": "available",
    "volume_attachment": "attached",
    "load_balancer": "active",
    "listener": "active",
    "pool": "active",
    "pool_member": "active",
    "health_monitor": "active",
    "remote_stack": "complete",
    **services.READY_STATUS,
    "trunk": "active",
    "vpn_service": "active",
    "ipsec_site_connection": "active",
    "firewall": "active",
    "tap_service": "active",
    "tap_flow": "active",
    "l7_policy": "active",
    "l7_rule": "active",
}
"""Kind -> status of a ready object; kinds not listed have no status."""

BUILDING_STATUS: Mapping[str, str] = {
    "server": "building",
    "volume": "creating",
    "remote_stack": "in_progress",
    **services.BUILDING_STATUS,
}
"""Kind -> status of an object that is building; objects of other kinds are ready at once."""
_STATUS_AFTER: Mapping[str, str] = {
    "stop": "stopped",
    "pause": "paused",
    "suspend": "suspended",
    "rescue": "rescue",
    **dict.fromkeys(("start", "unpause", "resume", "reboot", "rebuild", "unrescue", "restore"), ""),
}
"""Operation -> status of the object after the operation; "" for the status of a ready object."""
ID_FIELDS: Mapping[str, str] = {name: kind.id_field for name, kind in CLOUD_KINDS.items() if kind.id_field}
"""Kind -> field of the request that becomes the id, if set."""
REPORTS_ACTION = frozenset(name for name, kind in CLOUD_KINDS.items() if "action" in kind.reported)
"""Kinds whose field `action` reports the last operation."""
SNAPSHOTS = {snapshots_of(name): name for name, kind in CLOUD_KINDS.items() if kind.snapshot_field}
"""Kind of snapshots -> kind of their sources."""

PART_OF: Mapping[str, Mapping[str, str]] = {
    "listener": {"loadbalancer": "load_balancer"},
    "pool": {"loadbalancer": "load_balancer", "listener": "listener"},
    "pool_member": {"pool": "pool"},
    "health_monitor": {"pool": "pool"},
    "l7_policy": {"listener": "listener"},
    "l7_rule": {"l7policy": "l7_policy"},
}
"""Kind of parts -> field that refers to the parent -> kind of the parent."""

HOSTS = ("host-1", "host-2", "host-3")
"""Names of the hosts of servers."""
Fields = dict[str, Any]


def is_supported(kind: str, operation: str) -> bool:
    """Return whether objects of a kind have an operation."""
    if operation == "snapshot":
        return kind in SNAPSHOTS.values()
    if operation == "run":
        return kind == "workflow"
    if operation == "post":
        return kind == "queue"
    if operation == DELETE_WITH_PARTS:
        return kind in CLOUD_KINDS and bool(CLOUD_KINDS[kind].parts)
    if operation in CLOUD_KINDS["server"].operations and kind == "server":
        return True
    return operation in ("adopt", "lock", "unlock") or operation in _STATUS_AFTER


def fields_after(kind: str, operation: str) -> Mapping[str, Any]:
    """Return the fields that an operation changes."""
    if operation == "adopt":
        return {}
    if operation in ("lock", "unlock"):
        return {"locked": operation == "lock"}
    if kind in REPORTS_ACTION and operation in ("suspend", "resume"):
        return {"action": operation.upper()}
    return {"status": _STATUS_AFTER[operation] or READY_STATUS.get(kind)}


def _server(spec: Fields, number: int) -> Fields:
    """Return the addresses of a server: on each of its networks, by the named port or a port of its own.

    The entries are already completed from ports and networks, see `on_network`.
    """
    addresses: dict[str, list[Fields]] = {}
    for place, entry in enumerate(spec.get("networks") or [{}]):
        if entry.get("allocate_network") == "none":
            continue
        name = str(entry.get("network_name") or entry.get("network") or entry.get("port") or "private")
        own = number + place * _PLACES
        port = {
            "addr": entry.get("fixed_ip") or _address(own),
            "version": 4,
            "port": entry.get("port") or f"port-{number}" + (f"-{place}" if place else ""),
            "mac": entry.get("mac") or f"fa:16:3e:{number % 65536 // 256:02x}:{number % 256:02x}:{place % 256:02x}",
            **({"network": entry["network_id"]} if entry.get("network_id") else {}),
        }
        addresses.setdefault(name, []).append(port)
    first = next((entry["addr"] for group in addresses.values() for entry in group), None)
    devices = spec.get("block_device_mapping") or ()
    volumes = [
        {"id": device["volume_id"], "delete_on_termination": bool(device.get("delete_on_termination"))}
        for device in devices
        if device.get("volume_id")
    ]
    fields = {"address": first, "addresses": addresses, "ports": ports_of(addresses)}
    return {**fields, "volumes": volumes, "host": HOSTS[number % len(HOSTS)]}


def ports_of(addresses: Mapping[str, Sequence[Fields]]) -> list[Fields]:
    """Return the ports of a server by its addresses."""
    return [{"id": entry["port"], "name": entry["port"]} for group in addresses.values() for entry in group]


def on_network(entry: Fields, port: Fields | None, network: Fields | None) -> Fields:
    """Complete an entry of a server's networks from its port and its network, if they exist.

    A server has the addresses of its ports, listed under the name of the network.
    """
    known: Fields = {}
    if port is not None:
        fixed = port.get("fixed_ips") or [{}]
        known = {"fixed_ip": fixed[0].get("ip_address"), "mac": port.get("mac_address")}
        known["network_name"] = port.get("network_id")
    if network is not None:
        known |= {"network_id": network["id"], "network_name": network.get("name") or network["id"]}
    return {**entry, **{name: value for name, value in known.items() if value}}


def _port(spec: Fields, number: int) -> Fields:
    fixed = [
        {
            "subnet_id": entry.get("subnet") or entry.get("subnet_id"),
            "ip_address": entry.get("ip_address") or _address(number),
        }
        for entry in spec.get("fixed_ips") or [{}]
    ]
    mac = f"fa:16:3e:00:{number % 65536 // 256:02x}:{number % 256:02x}"
    return {
        "fixed_ips": fixed,
        "mac_address": spec.get("mac_address") or mac,
        "network_id": spec.get("network_id") or spec.get("network"),
    }


def _keypair(spec: Fields, number: int) -> Fields:
    return {
        "public_key": spec.get("public_key") or f"ssh-ed25519 AAAA{number}",
        "fingerprint": f"{number:032x}",
    }


def _balancer(spec: Fields, number: int) -> Fields:
    return {"vip_address": spec.get("vip_address") or _address(number), "vip_port_id": f"port-{number}"}


def _floating(spec: Fields, number: int) -> Fields:
    address = spec.get("floating_ip_address") or f"203.0.{number // 250 % 250}.{number % 250 + 1}"
    network = spec.get("floating_network_id") or spec.get("floating_network") or "public"
    port = spec.get("port_id") or (f"port-of-{spec['server']}" if spec.get("server") else None)
    return {"floating_ip_address": address, "floating_network_id": network, "port_id": port}


def _subnet(spec: Fields, number: int) -> Fields:
    return {
        "network_id": spec.get("network_id") or spec.get("network"),
        "cidr": spec.get("cidr") or f"10.{number % 250}.0.0/24",
    }


def _association(spec: Fields, number: int) -> Fields:
    return {"port_id": spec.get("port_id") or f"port-of-{spec.get('server')}"}


def _rule_of_group(spec: Fields, number: int) -> Fields:
    return {"direction": spec.get("direction") or "ingress", "ethertype": spec.get("ethertype") or "IPv4"}


def _connection(spec: Fields, number: int) -> Fields:
    return {"auth_mode": "psk", "route_mode": "static"}


_PLACES = 1_000_000
"""Distance of a server's addresses on different networks, too large to collide with addresses of further servers."""


def _address(number: int) -> str:
    return f"10.{number // 62500 % 250}.{number // 250 % 250}.{number % 250 + 1}"


FIELDS: Mapping[str, Callable[[Fields, int], Fields]] = {
    "server": _server,
    "port": _port,
    "keypair": _keypair,
    "load_balancer": _balancer,
    "floating_ip": _floating,
    "subnet": _subnet,
    "floating_ip_association": _association,
    "security_group_rule": _rule_of_group,
    "router_gateway": lambda spec, number: {"network_id": spec.get("network_id") or "public"},
    "ipsec_site_connection": _connection,
    "qos_policy": lambda spec, number: {"rules": []},
    "pool_member": lambda spec, number: {"address": spec.get("address") or _address(number)},
    "l7_policy": lambda spec, number: {"rules": [], "position": spec.get("position") or 1},
    "server_group": lambda spec, number: {"members": []},
    "firewall_rule": lambda spec, number: {"position": None, "firewall_policy_id": None},
    "network_gateway": lambda spec, number: {"default": False},
    "flavor": lambda spec, number: {"extra_specs": spec.get("extra_specs") or {}},
    "remote_stack": lambda spec, number: {"action": "CREATE", "outputs": {}},
    **services.FIELDS,
}


def creation_only_fields(kind: str, spec: Fields, number: int) -> Fields:
    """Return the fields that only the answer to a creation contains."""
    return {"private_key": f"private {number}"} if kind == "keypair" and not spec.get("public_key") else {}
