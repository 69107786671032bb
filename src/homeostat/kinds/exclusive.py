"""Exclusive holdings by kind: ports, addresses or names that two generations of an object cannot both have (ADR 0094).

If the replacement needs the same holding, the old object releases the holding, or is deleted, before the replacement
is created.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Object = Mapping[str, Any]
"""A cloud object as it is requested or observed."""


class Way(Enum):
    """How the old object makes room.

    Attributes:
        LETS_GO: Stays without the holding, and can take it back.
        GOES: Is deleted first, as the holding lasts as long as the object. A rollback creates another object.
    """

    LETS_GO = "lets go of it, and takes it back if the update is rolled back"
    GOES = "is deleted first; if the update is rolled back, another one is made"


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Something that only one object at a time can hold.

    Attributes:
        what: Short name.
        way: How the old object makes room for the new one.
        fields: Fields of the object, or of each entry of the list `entries`, that together identify the holding; the
            last field has to be set. Empty if each entry itself is the holding.
        entries: Field of the object that lists holdings; "" if the fields are the object's own.
        emptied: Value of `entries` after the release of all holdings.
        reported_field: Reported field that contains the value of the last of `fields` until the release is complete; ""
            if the answer to the request ends the hold.
        destroys: Field of an entry by which the holding is deleted together with the object; "" if no field does that.
    """

    what: str
    way: Way
    fields: tuple[str, ...]
    entries: str = ""
    emptied: Sequence[Object] = ()
    reported_field: str = ""
    destroys: str = ""

    def held(self, object: Object) -> Iterator[tuple[str, Object]]:
        """Yield each holding of an object as a unique text, with its entry."""
        for entry in (object.get(self.entries) or ()) if self.entries else (object,):
            if not self.fields:
                yield f"{self.what} {entry}", {}
            elif isinstance(entry, Mapping) and entry.get(self.fields[-1]) not in (None, ""):
                yield " ".join([self.what, *(str(entry[name]) for name in self.fields if entry.get(name))]), entry


def _goes(label: str, *fields: str, **options: Any) -> Exclusive:
    return Exclusive(label, Way.GOES, fields, **options)


def _lets_go(label: str, *fields: str, **options: Any) -> Exclusive:
    return Exclusive(label, Way.LETS_GO, fields, **options)


NO_NETWORK: Sequence[Object] = ({"allocate_network": "none"},)
_INTERFACES: Mapping[str, Any] = {"entries": "networks", "emptied": NO_NETWORK, "reported_field": "addresses"}
_RULE = (
    *("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_group_id", "remote_ip_prefix"),
    "security_group_id",
)

EXCLUSIVE: Mapping[str, tuple[Exclusive, ...]] = {
    "server": (
        _lets_go("port", "port", **_INTERFACES),
        _lets_go("address", "network", "subnet", "fixed_ip", **_INTERFACES),
        _goes("volume", "volume_id", entries="block_device_mapping", destroys="delete_on_termination"),
    ),
    "port": (
        _lets_go("address", "subnet_id", "ip_address", entries="fixed_ips", reported_field="fixed_ips"),
        _goes("MAC address", "network_id", "mac_address"),
    ),
    "floating_ip": (
        _lets_go("association with port", "fixed_ip_address", "port_id"),
        _lets_go("association with server", "server"),
        _goes("address", "floating_network_id", "floating_ip_address"),
    ),
    "floating_ip_association": (_goes("floating address", "floatingip_id"),),
    "router_interface": (_goes("place on subnet", "subnet_id"), _goes("port", "port_id")),
    "security_group_rule": (_goes("rule", *_RULE),),
    "volume_attachment": (_goes("volume", "volume_id"),),
    "pool_member": (_goes("member", "pool", "address", "protocol_port"),),
    "health_monitor": (_goes("monitor of pool", "pool"),),
    "keypair": (_goes("name", "name"),),
    "flavor": (_goes("name", "name"), _goes("id", "flavorid")),
    "host_aggregate": (_goes("name", "name"),),
    "volume_type": (_goes("name", "name"),),
    "dns_record_set": (_goes("name", "zone_id", "type", "name"),),
    "port_chain": (_goes("classifier", entries="flow_classifiers"),),
}
"""Kind -> its exclusive holdings. Kinds whose objects contain data of users do not hold their names: a user, a project
or a zone is never deleted to free its name for a successor."""
LETS_GO_IN: Mapping[str, frozenset[str]] = {"server": frozenset({"active", "paused", "stopped"})}
"""Kind -> statuses in which its objects can release holdings; in any other status the object is deleted first. Kinds
not listed can release in every status."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Exclusive holdings that two objects both need.

    Attributes:
        held: Holdings of the first object, in the words of `Exclusive.held`.
        way: How the first object makes room for the second.
        destroyed: Holdings that the deletion of the first object would destroy.
    """

    held: tuple[str, ...] = ()
    way: Way | None = None
    destroyed: tuple[str, ...] = ()


def shared(kind: str, old: Object, new: Object) -> Shared:
    """Return the holdings that two objects of a kind cannot both have."""
    held, destroyed, way = list[str](), list[str](), None
    for exclusive in EXCLUSIVE.get(kind, ()):
        wanted = {holding for holding, _ in exclusive.held(new)}
        for holding, entry in exclusive.held(old):
            if holding in wanted:
                held.append(holding)
                destroyed += [holding] if exclusive.destroys and entry.get(exclusive.destroys) else []
                way = exclusive.way if way is not Way.GOES else way
    return Shared(tuple(held), way, tuple(destroyed))


def held_by(kind: str, object: Object) -> dict[str, Way]:
    """Return all holdings of an object, and how the object makes room for each."""
    return {holding: exclusive.way for exclusive in EXCLUSIVE.get(kind, ()) for holding, _ in exclusive.held(object)}


def can_let_go(kind: str, object: Object) -> tuple[str, ...]:
    """Return all holdings that an object can release while it stays."""
    return tuple(holding for holding, way in held_by(kind, object).items() if way is Way.LETS_GO)


def without(kind: str, object: Object, held: Collection[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the object without the given holdings, and the names of the changed fields."""
    result, changed = dict(object), dict[str, None]()
    for exclusive in EXCLUSIVE.get(kind, ()):
        for holding, entry in exclusive.held(object):
            if holding not in held or exclusive.way is Way.GOES:
                continue
            if exclusive.entries:
                result[exclusive.entries] = [other for other in result[exclusive.entries] if other is not entry]
                changed[exclusive.entries] = None
            else:
                result |= dict.fromkeys(exclusive.fields)
                changed |= dict.fromkeys(exclusive.fields)
        if exclusive.entries in changed:
            result[exclusive.entries] = result[exclusive.entries] or [dict(other) for other in exclusive.emptied]
    return result, tuple(changed)


def still_held(kind: str, seen: Object, held: Collection[str]) -> list[str]:
    """Return the given holdings that are still observed although their release was requested.

    Args:
        seen: The observed object.
        held: Holdings to release.
    """
    result = []
    for exclusive in EXCLUSIVE.get(kind, ()):
        texts = set(_texts(seen.get(exclusive.reported_field))) if exclusive.reported_field else set()
        of_sort = (holding for holding in held if holding.startswith(f"{exclusive.what} "))
        result += [holding for holding in of_sort if holding.rpartition(" ")[2] in texts]
    return result


def _texts(tree: Any) -> Iterator[str]:
    """Yield all texts in a value; keys are left out."""
    if isinstance(tree, Mapping):
        for item in tree.values():
            yield from _texts(item)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for item in tree:
            yield from _texts(item)
    elif isinstance(tree, str):
        yield tree
