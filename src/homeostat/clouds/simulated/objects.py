"""What each kind of simulated thing looks like once it exists: the fields a cloud adds to what was asked for."""

from collections.abc import Callable, Mapping
from typing import Any

from homeostat.clouds.simulated import services

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
}
"""Status word of a thing that is ready; kinds without one have no status."""

BUILDING_STATUS: Mapping[str, str] = {
    "server": "building",
    "volume": "creating",
    "remote_stack": "in_progress",
    **services.BUILDING_STATUS,
}
OWN_ID: Mapping[str, str] = {"keypair": "name", **services.OWN_ID}
"""Kind -> field that is the id of a thing of that kind, where it is given."""
SNAPSHOT_KINDS = frozenset({"server", "volume"})
KINDS = frozenset(
    {
        *READY_STATUS,
        *services.KINDS,
        "keypair",
        "subnet",
        "router_interface",
        "floating_ip_association",
        "security_group",
    }
)

Things = Mapping[tuple[str, str], Any]
Fields = dict[str, Any]


def _server(spec: Fields, number: int) -> Fields:
    address = _address(number)
    port = {
        "addr": address,
        "version": 4,
        "port": f"port-{number}",
        "mac": f"fa:16:3e:{number % 65536 // 256:02x}:{number % 256:02x}:00",
    }
    networks = [each.get("network") or each.get("port") or "default" for each in spec.get("networks") or [{}]]
    return {"address": address, "addresses": {str(name): [port] for name in networks}}


def _port(spec: Fields, number: int) -> Fields:
    fixed = [
        {
            "subnet_id": each.get("subnet") or each.get("subnet_id"),
            "ip_address": each.get("ip_address") or _address(number),
        }
        for each in spec.get("fixed_ips") or [{}]
    ]
    mac = f"fa:16:3e:00:{number % 65536 // 256:02x}:{number % 256:02x}"
    return {
        "fixed_ips": fixed,
        "mac_address": spec.get("mac_address") or mac,
        "network_id": spec.get("network"),
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
    return {"floating_ip_address": address, "floating_network_id": spec.get("floating_network")}


def _subnet(spec: Fields, number: int) -> Fields:
    return {"network_id": spec.get("network"), "cidr": spec.get("cidr") or f"10.{number % 250}.0.0/24"}


def _address(number: int) -> str:
    return f"10.{number // 62500 % 250}.{number // 250 % 250}.{number % 250 + 1}"


FIELDS: Mapping[str, Callable[[Fields, int], Fields]] = {
    "server": _server,
    "port": _port,
    "keypair": _keypair,
    "load_balancer": _balancer,
    "floating_ip": _floating,
    "subnet": _subnet,
    "remote_stack": lambda spec, number: {"action": "CREATE", "outputs": {}},
    **services.FIELDS,
}


def told_once(kind: str, spec: Fields, number: int) -> Fields:
    """What only the answer to a creation tells."""
    return {"private_key": f"private {number}"} if kind == "keypair" and not spec.get("public_key") else {}
