"""The profile of an existing server, from the properties that the cloud reports. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.server_profile import SERVER_TYPE

_MARKS = ("cluster_id", "cluster_node_id", "cluster_node_index")
"""Keys of metadata that mark servers as nodes: an existing server may have been a node before."""
_ALIKE = ("flavor", "image", "key_name", "availability_zone")


def server_spec(seen: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a profile for equal servers.

    Networks are named without addresses and ports, which belong to this server only.

    Args:
        seen: Observed properties of the server (kind `server`).
        overrides: Properties that replace observed ones.
    """
    properties: dict[str, Any] = {name: seen[name] for name in _ALIKE if seen.get(name)}
    if seen.get("config_drive"):
        properties["config_drive"] = True
    if seen.get("diskConfig"):
        properties["auto_disk_config"] = seen["diskConfig"] == "AUTO"
    metadata = {key: value for key, value in (seen.get("metadata") or {}).items() if key not in _MARKS}
    if metadata:
        properties["metadata"] = metadata
    networks = _networks(seen)
    if networks:
        properties["networks"] = [{"network": name} for name in networks]
    if seen.get("security_groups"):
        properties["security_groups"] = list(dict.fromkeys(seen["security_groups"]))
    return {"type": SERVER_TYPE.name, "version": "1.0", "properties": {**properties, **overrides}}


def _networks(seen: Mapping[str, Any]) -> list[str]:
    """Return ids or names of the networks of a server."""
    named = [entry.get("network") for entry in seen.get("networks") or () if isinstance(entry, Mapping)]
    addressed = [next((entry.get("network") for entry in group), None) or name for name, group in _groups(seen)]
    return [str(name) for name in named if name] or [str(name) for name in addressed]


def _groups(seen: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list((seen.get("addresses") or {}).items())
