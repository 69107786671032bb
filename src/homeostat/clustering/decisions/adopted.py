"""The profile of a server that exists already, from what a cloud reports of it. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.server_profile import SERVER_TYPE

_MARKS = ("cluster_id", "cluster_node_id", "cluster_node_index")
"""Keys of metadata by which servers are known as nodes: they are those of a former node."""
_ALIKE = ("flavor", "image", "key_name", "availability_zone")


def server_spec(seen: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a profile from which servers like this one are made.

    Networks are named without addresses and ports: these belong to the one server.

    Args:
        seen: The server, as a cloud reports it (kind `server`).
        overrides: Properties that are to be others.
    """
    found: dict[str, Any] = {name: seen[name] for name in _ALIKE if seen.get(name)}
    if seen.get("config_drive"):
        found["config_drive"] = True
    if seen.get("diskConfig"):
        found["auto_disk_config"] = seen["diskConfig"] == "AUTO"
    metadata = {key: value for key, value in (seen.get("metadata") or {}).items() if key not in _MARKS}
    if metadata:
        found["metadata"] = metadata
    networks = _networks(seen)
    if networks:
        found["networks"] = [{"network": name} for name in networks]
    if seen.get("security_groups"):
        found["security_groups"] = list(dict.fromkeys(seen["security_groups"]))
    properties = {**found, **overrides}
    return {"type": SERVER_TYPE.name, "version": "1.0", "properties": properties}


def _networks(seen: Mapping[str, Any]) -> list[str]:
    """Return ids or names of the networks of a server."""
    named = [each.get("network") for each in seen.get("networks") or () if isinstance(each, Mapping)]
    addressed = [next((each.get("network") for each in group), None) or name for name, group in _groups(seen)]
    return [str(name) for name in named if name] or [str(name) for name in addressed]


def _groups(seen: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list((seen.get("addresses") or {}).items())
