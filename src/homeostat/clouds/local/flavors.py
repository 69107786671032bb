"""Flavors and server groups; this machine is a single host, which limits anti-affinity."""

from collections.abc import Mapping
from typing import Any

from homeostat.clouds.local.family import Facts, Family
from homeostat.clouds.local.tree import ThingRecord
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.model.errors import Terminal

APART = "anti-affinity"


class Flavors(Family):
    """Flavors, which are only names: a guest has the resources of the machine whatever its flavor."""

    kind = "flavor"

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        if any(other.spec.get("name") == spec["name"] for other in look.all("flavor").values()):
            raise Terminal(f"There is a flavor named {spec['name']!r} already: choose another name")
        return {}

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        return {"is_public": True, "extra_specs": {}, **super().show(look, record)}


class ServerGroups(Family):
    kind = "server_group"

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        return {**super().show(look, record), "members": [member.id for member in _members(look, record)]}


def join_group(look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
    """Return the facts about the server group in the hints of a new server.

    This machine is a single host, so an anti-affinity group has room for one server, or as many as its rule
    max_server_per_host allows. Other policies can always be satisfied.

    Raises:
        Terminal: The server must not share a host with its group.
    """
    hint = (spec.get("scheduler_hints") or {}).get("group")
    if not hint:
        return {"server_group_id": None}
    group = look.resolve("server_group", str(hint))
    room = (group.spec.get("rules") or {}).get("max_server_per_host") or 1
    if APART in (group.spec.get("policies") or ()) and len(_members(look, group)) >= room:
        raise Terminal(
            f"No valid host was found: the local cloud is one host, and the server group {hint} keeps its servers "
            f"apart ({APART}). Use the policy soft-{APART}, or the rule max_server_per_host"
        )
    return {"server_group_id": group.id}


def _members(look: TreeSnapshot, group: ThingRecord) -> list[ThingRecord]:
    return look.referring("server", "server_group_id", group.id)


def is_made(look: TreeSnapshot, entity: str, key: str) -> bool:
    """Return whether this is the id or name of a created flavor; flavors of the catalogue do not count."""
    records = look.all("flavor") if entity == "flavor" else {}
    return key in records or any(
        key in (record.spec.get("name"), record.spec.get("flavorid")) for record in records.values()
    )
