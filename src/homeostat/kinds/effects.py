"""What things change of others, by kind: attributes that are old once another thing was made or deleted (ADR 0099).

A volume is `in-use` once it is attached, without any act on the volume. The service that makes the attachment
looks at the volume before anything reads it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]
"""A cloud object as it is requested or observed."""
Path = tuple[str, ...]
"""Names of fields from the object down; `*` stands for every entry of a list, and every value of a map."""


@dataclass(frozen=True, slots=True)
class Effect:
    """That things of a kind change another thing.

    Attributes:
        kind: Kind of the other thing.
        paths: Where the object names the other thing, as it is requested or as it is observed.
        changes: What changes of the other thing: fields that it reports.
        through: Kind of what the paths name where that is not the other thing, but something that this holds by the
            table; "" where they name the thing itself.
    """

    kind: str
    paths: tuple[Path, ...]
    changes: tuple[str, ...]
    through: str = ""

    def named(self, object: Object) -> set[str]:
        """Return the ids or names by which an object names others."""
        return {str(each) for path in self.paths for each in _at(object, path) if each}

    def touched_by(self, fields: Collection[str]) -> bool:
        """Return whether a change of these fields may name others than before."""
        return any(path[0] in fields for path in self.paths)


@dataclass(frozen=True, slots=True)
class Named:
    """Another thing that something changes.

    Attributes:
        kind: Its kind.
        name: Its id, or a name of it.
        through: See `Effect`: the kind of what `name` names, which the thing holds.
    """

    kind: str
    name: str
    through: str = ""


def _on(kind: str, field: str, *changes: str) -> Effect:
    return Effect(kind, ((field,),), changes)


_ADDRESSES = ("address", "addresses")
_SERVERS = (_on("server", "server", *_ADDRESSES), Effect("server", (("port_id",),), _ADDRESSES, through="port"))
_DEVICE = ("device_id", "device_owner", "status")
_LEADS_TO = ("port_id", "fixed_ip_address", "router_id", "status")
_USED = ("status", "attachments")
_QOS_RULE = (_on("qos_policy", "policy", "rules"),)

EFFECTS: Mapping[str, tuple[Effect, ...]] = {
    "server": (
        Effect("port", (("networks", "*", "port"), ("addresses", "*", "*", "port")), _DEVICE),
        Effect("floating_ip", (("networks", "*", "floating_ip"),), _LEADS_TO),
        Effect("volume", (("block_device_mapping", "*", "volume_id"), ("volumes", "*", "id")), _USED),
        Effect("server_group", (("scheduler_hints", "group"),), ("members",)),
    ),
    "volume_attachment": (
        _on("volume", "volume_id", *_USED),
        _on("server", "instance_uuid", "volumes"),
    ),
    "subnet": (_on("network", "network_id", "subnets"),),
    "rbac_policy": (_on("network", "object_id", "shared", "router:external"),),
    "router_interface": (_on("port", "port_id", *_DEVICE, "fixed_ips"),),
    "router_gateway": (_on("router", "router_id", "external_gateway_info"),),
    "extra_route_set": (_on("router", "router_id", "routes"),),
    "trunk": (Effect("port", (("port_id",), ("sub_ports", "*", "port_id")), (*_DEVICE, "trunk_details")),),
    "floating_ip": _SERVERS,
    "floating_ip_association": (
        _on("floating_ip", "floatingip_id", *_LEADS_TO),
        *_SERVERS,
    ),
    "floating_ip_port_forward": (_on("floating_ip", "floatingip_id", "router_id", "status", "port_forwardings"),),
    "qos_bandwidth_limit_rule": _QOS_RULE,
    "qos_dscp_marking_rule": _QOS_RULE,
    "qos_minimum_bandwidth_rule": _QOS_RULE,
    "qos_minimum_packet_rate_rule": _QOS_RULE,
    "firewall_policy": (Effect("firewall_rule", (("firewall_rules", "*"),), ("firewall_policy_id", "position")),),
    "ipsec_site_connection": (_on("vpn_service", "vpnservice_id", "status"),),
    "listener": (_on("load_balancer", "loadbalancer", "status", "listeners"),),
    "pool": (
        _on("load_balancer", "loadbalancer", "status", "pools"),
        _on("listener", "listener", "default_pool", "status"),
    ),
    "pool_member": (_on("pool", "pool", "members", "status"),),
    "health_monitor": (_on("pool", "pool", "healthmonitor_id", "status"),),
    "l7_policy": (_on("listener", "listener", "status"),),
    "l7_rule": (_on("l7_policy", "l7policy", "rules", "status"),),
    "dns_record_set": (_on("dns_zone", "zone_id", "serial", "status"),),
}
"""Kind -> what its things change of others. What they change of things that no template reads is not among it."""


def changed_by(kind: str, objects: Sequence[Object], fields: Collection[str] | None = None) -> list[Named]:
    """Return the other things that a thing changes, each once.

    Args:
        kind: Its kind.
        objects: What was requested of it, and what was seen of it before and after.
        fields: Names of its fields that have changed; None where it was made or deleted.
    """
    found = dict[Named, None]()
    for effect in EFFECTS.get(kind, ()):
        if fields is None or effect.touched_by(fields):
            names = sorted(set().union(*(effect.named(each) for each in objects)))
            found |= {Named(effect.kind, name, effect.through): None for name in names}
    return list(found)


def held_things(kind: str, held: str, objects: Sequence[Object]) -> set[str]:
    """Return the ids or names of things of the kind `held` that a thing holds by the table."""
    effects = (each for each in EFFECTS.get(kind, ()) if each.kind == held and not each.through)
    return set().union(*(effect.named(each) for effect in effects for each in objects))


def _at(value: Any, path: Path) -> Iterator[Any]:
    """Yield the values at a path; none where it leads nowhere."""
    if not path:
        yield value
    elif path[0] != "*":
        if isinstance(value, Mapping) and path[0] in value:
            yield from _at(value[path[0]], path[1:])
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _at(each, path[1:])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _at(each, path[1:])
