"""Servers in the format of Nova, translated from and into the fields of the kind. Pure."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from homeostat.clouds.openstack.service import Wire
from homeostat.kinds.compute import FENCE_ANSWER

IdOf = Callable[[str, Any], Any]
"""Kind, name or id of an object -> its id."""
OWN_TAGS = ("homeostat:", "homeostat-")
"""Prefixes of the tags that this service puts on servers for itself."""
ALIKE = ("name", "key_name", "availability_zone", "config_drive", "metadata", "tags")
RENAMED = {
    "accessIPv4": "access_ipv4",
    "accessIPv6": "access_ipv6",
    "OS-DCF:diskConfig": "diskConfig",
    "OS-EXT-AZ:availability_zone": "availability_zone",
    "OS-EXT-SRV-ATTR:instance_name": "instance_name",
    "OS-EXT-SRV-ATTR:hostname": "hostname",
    "OS-EXT-SRV-ATTR:host": "host",
}
"""Field of Nova -> field of the kind."""
SHOWN = ("id", "name", "metadata", "locked", "key_name", "config_drive", "description", "created", *RENAMED)
VOLUMES = "os-extended-volumes:volumes_attached"
SOURCES = {
    "volume_id": ("volume", "volume", "volume"),
    "snapshot_id": ("volume_snapshot", "snapshot", "volume"),
    "image": ("image", "image", "volume"),
    "swap_size": ("", "blank", "local"),
    "ephemeral_size": ("", "blank", "local"),
}
"""Source of a block device -> the kind that its value names, and Nova's terms for source and destination."""
STATUSES = {
    "build": "building",
    "hard_reboot": "rebooting",
    "password": "active",
    "reboot": "rebooting",
    "rebuild": "rebuilding",
    "resize": "resizing",
    "revert_resize": "resizing",
    "shutoff": "stopped",
    "unknown": "unreachable",
    "verify_resize": "resizing",
}
DELETING = ("deleting", "soft-deleting")
STARTING = ("powering-on", "resuming", "unpausing")
"""Nova's tasks during which the status is still the previous one."""
NO_STATE = 0
"""Power state of a guest that its hypervisor does not know; Nova takes no action for such a server."""
EXPLAINED = {
    "lost": "its host does not know it",
    "rescue": "it was rescued outside: it goes on once it is unrescued",
    "shelved": "it was shelved outside: it goes on once it is unshelved",
    "shelved_offloaded": "it was shelved outside: it goes on once it is unshelved",
    "soft_deleted": "it is deleted, but Nova keeps it with its addresses for a while, so that it can be restored",
}
"""Status -> explanation. None of these statuses ends without intervention."""
UNCONFIRMED = "it has another size, or is on another host, and that waits to be confirmed or reverted"


def body_of(spec: Mapping[str, Any], id_of: IdOf, networks: Any) -> Wire:
    """Return the body of a creation.

    Args:
        id_of: Returns the id of a named object.
        networks: Networks, ports or keyword, as Nova takes them.
    """
    server: Wire = {name: spec[name] for name in ALIKE if spec.get(name) not in (None, "", {}, [])}
    server |= {"flavorRef": id_of("flavor", spec.get("flavor")), "networks": networks}
    server |= {"imageRef": id_of("image", spec["image"])} if spec.get("image") else {}
    devices = _devices(spec, id_of)
    groups = [{"name": group} for group in spec.get("security_groups") or ()]
    files = [{"path": path, "contents": encoded(text)} for path, text in (spec.get("personality") or {}).items()]
    more = {
        "adminPass": spec.get("admin_pass"),
        "OS-DCF:diskConfig": spec.get("diskConfig"),
        "block_device_mapping_v2": devices,
        "personality": files,
        "security_groups": groups,
        "user_data": encoded(spec.get("user_data") or ""),
    }
    body = {"server": {**server, **{name: value for name, value in more.items() if value}}}
    hints = _hints(spec, id_of)
    return {**body, "os:scheduler_hints": hints} if hints else body


def encoded(text: str) -> str:
    """Encode user data or a file for Nova."""
    return base64.b64encode(text.encode()).decode()


def _hints(spec: Mapping[str, Any], id_of: IdOf) -> Wire:
    hints = dict(spec.get("scheduler_hints") or {})
    if hints.get("group"):
        hints["group"] = id_of("server_group", hints["group"])
    return {**hints, "reservation": spec["reservation_id"]} if spec.get("reservation_id") else hints


def _devices(spec: Mapping[str, Any], id_of: IdOf) -> list[Wire]:
    devices = [_device(entry, id_of) for entry in spec.get("block_device_mapping") or ()]
    if not devices or not spec.get("image"):
        return devices
    # Nova requires the image's disk in the list of devices; only one device can be the boot disk.
    disk = {"uuid": id_of("image", spec["image"]), "source_type": "image", "destination_type": "local"}
    others = [{**device, "boot_index": -1 if device["boot_index"] == 0 else device["boot_index"]} for device in devices]
    return [{**disk, "boot_index": 0, "delete_on_termination": True}, *others]


def _device(device: Mapping[str, Any], id_of: IdOf) -> Wire:
    source = next(name for name in SOURCES if device.get(name))
    kind, source_type, destination = SOURCES[source]
    local = destination == "local"
    entry: Wire = {
        "source_type": source_type,
        "destination_type": destination,
        "boot_index": -1 if local else device.get("boot_index", -1),
        "delete_on_termination": device.get("delete_on_termination", local),
    }
    entry |= {"uuid": id_of(kind, device[source])} if kind else {"volume_size": device[source]}
    guest = "swap" if source == "swap_size" else device.get("ephemeral_format")
    entry |= {"guest_format": guest} if local and guest else {}
    more = ("device_name", "device_type", "disk_bus", "volume_size", "volume_type")
    return entry | {name: device[name] for name in more if device.get(name) and not (local and name == "volume_size")}


def object_of(thing: Wire) -> Wire:
    """Return a server with the fields of its kind, as far as Nova's answer has them."""
    fields: Wire = {RENAMED.get(name, name): thing[name] for name in SHOWN if name in thing}
    fields["status"] = _status(thing)
    explained = UNCONFIRMED if thing.get("status") == "VERIFY_RESIZE" else EXPLAINED.get(fields["status"])
    fields["fault"] = explained or thing.get("_silence") or (thing.get("fault") or {}).get("message")
    if "flavor" in thing:
        fields["flavor"] = thing["flavor"].get("original_name") or thing["flavor"].get("id")
    if "image" in thing:
        fields["image"] = (thing["image"] or {}).get("id")
    if "security_groups" in thing:  # Nova lists a group once per port
        fields["security_groups"] = sorted({group["name"] for group in thing["security_groups"]})
    if "tags" in thing:
        fields["tags"] = [tag for tag in thing["tags"] if not tag.startswith(OWN_TAGS)]
    if "addresses" in thing:
        fields["addresses"] = _addresses(thing)
        fields["address"] = next((entry["addr"] for group in fields["addresses"].values() for entry in group), None)
    if "_ports" in thing:
        fields["ports"] = [{"id": port["id"], "name": port["name"]} for port in thing["_ports"].values()]
    if VOLUMES in thing:
        fields["volumes"] = thing[VOLUMES]
    fields |= {name: thing[f"_{name}"] for name in FENCE_ANSWER if f"_{name}" in thing}
    return {**fields, **({"snapshots": thing["_snapshots"]} if thing.get("_snapshots") else {})}


def _status(thing: Wire) -> str:
    word = str(thing.get("status", "build")).lower()
    task = thing.get("OS-EXT-STS:task_state")
    if task in DELETING:
        return "deleting"
    if task in STARTING:
        return "starting"
    if word == "active" and task is None and thing.get("_silence"):
        return "unreachable"
    if word == "active" and task is None and thing.get("OS-EXT-STS:power_state") == NO_STATE:
        return "lost"
    return STATUSES.get(word, word)


def _addresses(thing: Wire) -> dict[str, list[Wire]]:
    ports = thing.get("_ports") or {}
    return {
        network: [_address(entry, ports.get(entry.get("OS-EXT-IPS-MAC:mac_addr")) or {}) for entry in group]
        for network, group in thing["addresses"].items()
    }


def _address(entry: Wire, port: Mapping[str, Any]) -> Wire:
    fields = {"addr": entry["addr"], "version": entry["version"], "mac": entry.get("OS-EXT-IPS-MAC:mac_addr")}
    return {
        **fields,
        "type": entry.get("OS-EXT-IPS:type", "fixed"),
        "port": port.get("id"),
        "network": port.get("network_id"),
    }
