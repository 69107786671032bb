"""What one thing at a time can hold, by kind: two generations of a thing cannot both have it (ADR 0094).

Where a thing is replaced by one that needs the same, the old one lets go of it, or goes, before the new one is made.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Object = Mapping[str, Any]
"""A cloud object as it is requested or observed."""


class Way(Enum):
    """How the old thing makes room.

    Attributes:
        LETS_GO: It stays without what it held, and can take it back.
        GOES: It is deleted first, since it holds that for as long as it exists. A rollback makes another one.
    """

    LETS_GO = "lets go of it, and takes it back if the update is rolled back"
    GOES = "is deleted first; if the update is rolled back, another one is made"


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Something that one thing at a time can hold.

    Attributes:
        what: What it is, in a word.
        way: How the old thing makes room for the new one.
        fields: Fields of the object, or of each entry of the list `entries`, that say together what is held; the last
            one has to be set. None where each entry is itself what is held.
        entries: Field of the object that lists what is held; "" where the fields are the object's own.
        emptied: Value of `entries` where it lets go of all.
        shown: Reported field that has the value of the last of `fields` for as long as the thing holds it; "" where
            that is over with the answer.
        destroys: Field of an entry that has what is held deleted together with the thing; "" where nothing has.
    """

    what: str
    way: Way
    fields: tuple[str, ...]
    entries: str = ""
    emptied: Sequence[Object] = ()
    shown: str = ""
    destroys: str = ""

    def held(self, object: Object) -> Iterator[tuple[str, Object]]:
        """Yield what an object holds of this, in words that tell it from anything else, each with its entry."""
        for entry in (object.get(self.entries) or ()) if self.entries else (object,):
            if not self.fields:
                yield f"{self.what} {entry}", {}
            elif isinstance(entry, Mapping) and entry.get(self.fields[-1]) not in (None, ""):
                yield " ".join([self.what, *(str(entry[name]) for name in self.fields if entry.get(name))]), entry


def _goes(what: str, *fields: str, **more: Any) -> Exclusive:
    return Exclusive(what, Way.GOES, fields, **more)


def _lets_go(what: str, *fields: str, **more: Any) -> Exclusive:
    return Exclusive(what, Way.LETS_GO, fields, **more)


NO_NETWORK: Sequence[Object] = ({"allocate_network": "none"},)
_INTERFACES: Mapping[str, Any] = {"entries": "networks", "emptied": NO_NETWORK, "shown": "addresses"}
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
        _lets_go("address", "subnet_id", "ip_address", entries="fixed_ips", shown="fixed_ips"),
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
"""Kind -> what its things hold. Names of kinds whose things hold what others have put there are not among it: a user, a
project or a zone is not deleted so that another one may have its name."""
LETS_GO_IN: Mapping[str, frozenset[str]] = {"server": frozenset({"active", "paused", "stopped"})}
"""Kind -> statuses in which its things can let go; those of other kinds can in any. In another one it goes first."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What two objects need that one thing at a time can hold.

    Attributes:
        held: What the first one can let go of.
        way: How it makes room for the second one.
        destroyed: What would be destroyed if it went.
    """

    held: tuple[str, ...] = ()
    way: Way | None = None
    destroyed: tuple[str, ...] = ()


def shared(kind: str, old: Object, new: Object) -> Shared:
    """Return what two objects of a kind cannot both have."""
    held, destroyed, way = list[str](), list[str](), None
    for each in EXCLUSIVE.get(kind, ()):
        wanted = {what for what, _ in each.held(new)}
        for what, entry in each.held(old):
            if what in wanted:
                held.append(what)
                destroyed += [what] if each.destroys and entry.get(each.destroys) else []
                way = each.way if way is not Way.GOES else way
    return Shared(tuple(held), way, tuple(destroyed))


def held_by(kind: str, object: Object) -> dict[str, Way]:
    """Return all that a thing with this object holds, and how it makes room for another one."""
    return {what: each.way for each in EXCLUSIVE.get(kind, ()) for what, _ in each.held(object)}


def can_let_go(kind: str, object: Object) -> tuple[str, ...]:
    """Return all that a thing with this object holds and can let go of."""
    return tuple(what for what, way in held_by(kind, object).items() if way is Way.LETS_GO)


def without(kind: str, object: Object, held: Collection[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an object that has let go of this, and the names of the fields that differ."""
    found, changed = dict(object), dict[str, None]()
    for each in EXCLUSIVE.get(kind, ()):
        for what, entry in each.held(object):
            if what not in held or each.way is Way.GOES:
                continue
            if each.entries:
                found[each.entries] = [other for other in found[each.entries] if other is not entry]
                changed[each.entries] = None
            else:
                found |= dict.fromkeys(each.fields)
                changed |= dict.fromkeys(each.fields)
        if each.entries in changed:
            found[each.entries] = found[each.entries] or [dict(other) for other in each.emptied]
    return found, tuple(changed)


def still_held(kind: str, seen: Object, held: Collection[str]) -> list[str]:
    """Return which of this a thing is seen to hold, though it was to let go of it.

    Args:
        kind: Its kind.
        seen: What is observed of it.
        held: What it was to let go of.
    """
    found = []
    for each in EXCLUSIVE.get(kind, ()):
        shown = set(_texts(seen.get(each.shown))) if each.shown else set()
        of_sort = (what for what in held if what.startswith(f"{each.what} "))
        found += [what for what in of_sort if what.rpartition(" ")[2] in shown]
    return found


def _texts(tree: Any) -> Iterator[str]:
    """Yield all texts in a value, keys left out."""
    if isinstance(tree, Mapping):
        for each in tree.values():
            yield from _texts(each)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for each in tree:
            yield from _texts(each)
    elif isinstance(tree, str):
        yield tree
