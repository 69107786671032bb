"""Effects of simulated objects on other objects, as in real services: an attached volume is `in-use` (ADR 0099)."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from homeostat.kinds.effects import EFFECTS, Named, changed_by, held_things

Fields = dict[str, Any]
Key = tuple[str, str]


class Effects:
    """Index of the effects between objects. Every created, changed or removed object has to be reported to it."""

    def __init__(self) -> None:
        """Start without objects."""
        self._named: dict[Key, list[Named]] = {}
        self._by: dict[Named, dict[Key, None]] = {}

    def note(self, key: Key, properties: Mapping[str, Any]) -> None:
        """Record an object in its present state."""
        self.forget(key)
        if key[0] in EFFECTS:
            self._named[key] = changed_by(key[0], [properties])
            for named in self._named[key]:
                self._by.setdefault(named, {})[key] = None

    def forget(self, key: Key) -> None:
        """Remove an object from the index."""
        for named in self._named.pop(key, ()):
            self._by[named].pop(key, None)
            if not self._by[named]:
                del self._by[named]

    def on(self, kind: str, properties: Mapping[str, Any], things: Mapping[Key, Any], now: float) -> Fields:
        """Return the properties of an object, changed by the effects of all ready objects.

        Args:
            properties: Its own properties.
            things: All objects of the project.
        """
        result = dict(properties)
        if not self._by:
            return result
        for key in list(self._of(kind, properties)):
            by, change = things.get(key), CHANGES.get((key[0], kind))
            if by is not None and change is not None and by.ready_at <= now:
                change(result, by.properties)
        return result

    def _of(self, kind: str, properties: Mapping[str, Any]) -> Iterator[Key]:
        """Yield the objects with an effect on an object, each once."""
        names = {str(name) for name in (properties["id"], properties.get("name")) if name}
        named = {Named(kind, name) for name in names}
        named |= {Named(kind, name, field) for field in _held(kind) for name in held_things(kind, field, [properties])}
        known = sorted((reference for reference in named if reference in self._by), key=str)
        yield from dict.fromkeys(key for reference in known for key in self._by[reference])


@cache
def _held(kind: str) -> frozenset[str]:
    """Return the fields through which objects of a kind are affected, without ""."""
    all_effects = (effect for effects in EFFECTS.values() for effect in effects)
    return frozenset(effect.through for effect in all_effects if effect.kind == kind) - {""}


def _uses_volume(volume: Fields, by: Fields) -> None:
    server = by.get("instance_uuid") or by["id"]
    entry = {"id": volume["id"], "volume_id": volume["id"], "server_id": server, "device": by.get("mountpoint")}
    volume["attachments"] = [*(volume.get("attachments") or ()), entry]
    if volume.get("status") == "available":
        volume["status"] = "in-use"


def _has_volume(server: Fields, attachment: Fields) -> None:
    entry = {"id": attachment["volume_id"], "delete_on_termination": False}
    server["volumes"] = [*(server.get("volumes") or ()), entry]


def _uses_port(owner: str) -> Callable[[Fields, Fields], None]:
    def change(port: Fields, by: Fields) -> None:
        port |= {"device_id": by.get("router_id") or by["id"], "device_owner": owner}

    return change


def _leads_to(floating: Fields, association: Fields) -> None:
    fields = ("port_id", "fixed_ip_address")
    floating |= {name: association[name] for name in fields if association.get(name) and not floating.get(name)}


def _has_floating(server: Fields, by: Fields) -> None:
    """Add the floating address next to the first address of its port."""
    address = by.get("floating_ip_address") or by.get("floatingip_id")
    groups = {name: list(group) for name, group in (server.get("addresses") or {}).items()}
    for group in groups.values():
        for entry in group:
            if by.get("port_id") in (entry["port"], f"port-of-{server['id']}"):
                group.append({**entry, "addr": address, "type": "floating"})
                server["addresses"] = groups
                return


def _listed(field: str, entry: Callable[[Fields], Any] = lambda by: by["id"]) -> Callable[[Fields, Fields], None]:
    """Return a function that adds an entry for an object to a list of another object."""

    def change(thing: Fields, by: Fields) -> None:
        thing[field] = [*(thing.get(field) or ()), entry(by)]

    return change


def _gateway(router: Fields, gateway: Fields) -> None:
    router["external_gateway_info"] = router.get("external_gateway_info") or {"network_id": gateway["network_id"]}


def _routes(router: Fields, routes: Fields) -> None:
    router["routes"] = [*(router.get("routes") or ()), *(routes.get("routes") or ())]


def _in_policy(rule: Fields, policy: Fields) -> None:
    place = list(map(str, policy["firewall_rules"])).index(str(rule["id"])) + 1
    rule |= {"firewall_policy_id": policy["id"], "position": place}


def _monitored(pool: Fields, monitor: Fields) -> None:
    pool["healthmonitor_id"] = monitor["id"]


def _serial(zone: Fields, record_set: Fields) -> None:
    zone["serial"] = int(zone.get("serial") or 0) + 1


def _id(by: Fields) -> Fields:
    return {"id": by["id"]}


CHANGES: Mapping[tuple[str, str], Callable[[Fields, Fields], None]] = {
    ("server", "port"): _uses_port("compute:nova"),
    ("server", "volume"): _uses_volume,
    ("server", "server_group"): _listed("members"),
    ("volume_attachment", "volume"): _uses_volume,
    ("volume_attachment", "server"): _has_volume,
    ("subnet", "network"): _listed("subnets"),
    ("router_interface", "port"): _uses_port("network:router_interface"),
    ("router_gateway", "router"): _gateway,
    ("extra_route_set", "router"): _routes,
    ("floating_ip", "server"): _has_floating,
    ("floating_ip_association", "server"): _has_floating,
    ("floating_ip_association", "floating_ip"): _leads_to,
    ("firewall_policy", "firewall_rule"): _in_policy,
    ("pool", "load_balancer"): _listed("pools", _id),
    ("pool_member", "pool"): _listed("members", _id),
    ("health_monitor", "pool"): _monitored,
    ("l7_rule", "l7_policy"): _listed("rules", _id),
    ("dns_record_set", "dns_zone"): _serial,
}
"""(kind, kind of the affected object) -> changes the fields of the affected object."""
