"""Side effects by kind: attributes of related objects that are stale after a creation, update or deletion (ADR 0099).

Creating a volume attachment turns the volume `in-use`, without any act on the volume. The service that creates the
attachment therefore observes the volume again before anything reads its attributes.
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
    """A change in a related object, caused by an object of some kind.

    Attributes:
        kind: Kind of the related object.
        paths: Fields that name the related object, in the request or in the observation.
        changes: Fields of the related object that change.
        through: Kind of an intermediate object: the paths name the intermediate object, which in turn holds the
            related object according to `EFFECTS`; "" if the paths name the related object itself.
    """

    kind: str
    paths: tuple[Path, ...]
    changes: tuple[str, ...]
    through: str = ""

    def named(self, object: Object) -> set[str]:
        """Return the ids or names by which an object refers to related objects."""
        return {str(name) for path in self.paths for name in _at(object, path) if name}

    def touched_by(self, fields: Collection[str]) -> bool:
        """Return whether a change of these fields may alter which related objects are named."""
        return any(path[0] in fields for path in self.paths)


@dataclass(frozen=True, slots=True)
class Named:
    """A related object that is changed.

    Attributes:
        kind: Kind of the related object.
        name: Id or any name of the related object.
        through: Kind of the intermediate object that `name` refers to, see `Effect`.
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
"""Kind -> changes caused in related objects; changes invisible to templates are left out."""


def changed_by(kind: str, objects: Sequence[Object], fields: Collection[str] | None = None) -> list[Named]:
    """Return the related objects that an object changes, without duplicates.

    Args:
        objects: The object as requested, and as observed before and after.
        fields: Changed fields; None for a creation or a deletion.
    """
    named = dict[Named, None]()
    for effect in EFFECTS.get(kind, ()):
        if fields is None or effect.touched_by(fields):
            names = sorted(set().union(*(effect.named(object) for object in objects)))
            named |= {Named(effect.kind, name, effect.through): None for name in names}
    return list(named)


def held_things(kind: str, held: str, objects: Sequence[Object]) -> set[str]:
    """Return the ids or names of the objects of kind `held` that an object holds according to `EFFECTS`."""
    effects = (effect for effect in EFFECTS.get(kind, ()) if effect.kind == held and not effect.through)
    return set().union(*(effect.named(object) for effect in effects for object in objects))


def _at(value: Any, path: Path) -> Iterator[Any]:
    """Yield the values at a path; nothing if the path does not exist."""
    if not path:
        yield value
    elif path[0] != "*":
        if isinstance(value, Mapping) and path[0] in value:
            yield from _at(value[path[0]], path[1:])
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _at(item, path[1:])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _at(item, path[1:])
