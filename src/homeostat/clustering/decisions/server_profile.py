"""Profiles of servers, `os.nova.server`: their schema, and the resources that they become. Pure.

A profile becomes an `OS::Nova::Server`. With floating addresses, security groups of single networks or empty volumes it
becomes a nested stack with a server, ports, addresses and volumes; in another region, a stack there.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.definitions import (
    HOT,
    REMOTE_STACK,
    Definition,
    Terms,
    file_name,
    given,
    invalid_spec,
    refuse_functions,
    region_of,
    template_text,
)
from homeostat.clustering.decisions.specs import Operation, SpecType
from homeostat.model.errors import Rejected
from homeostat.resources.families.nova import SERVER_GROUP, Server
from homeostat.resources.schema import UNKNOWN, boolean, integer, listing, mapping, one_of, text

SERVER = "server"
"""Name of the server in a nested stack."""
_TEXTS = ("name", SERVER_GROUP)
"""Parameters of a nested stack that are strings."""

_DEVICE = {
    "uuid": text("Id of the image, snapshot or volume."),
    "source_type": text(
        "What it starts from.", required=True, constraints=(one_of("image", "snapshot", "volume", "blank"),)
    ),
    "destination_type": text("Where it is.", required=True, constraints=(one_of("volume", "local"),)),
    "disk_bus": text("Bus of the device."),
    "device_name": text("Name of the device, such as vda."),
    "volume_size": integer("Size in GiB, for swap space in MiB.", required=True),
    "guest_format": text("File system, or swap."),
    "boot_index": integer("Place in the boot order; 0 boots first."),
    "device_type": text("Kind of device, such as disk or cdrom."),
    "delete_on_termination": boolean("Delete the volume with the server."),
    "volume_type": text("Type of the volume."),
}
_NETWORK = {
    "network": text("Network to make a port on, by name or id."),
    "port": text("Port to use."),
    "vnic_type": text("Kind of network card.", constraints=(one_of("normal", "direct", "macvtap"),)),
    "fixed_ip": text("Address to have there."),
    "security_groups": listing("Security groups of the port.", items=text("Name of a security group.", required=True)),
    "floating_network": text("Network to have a floating address on."),
    "floating_ip": text("The floating address to have."),
    "subnet": text("Subnet to have an address on."),
}
_REBOOT = text("SOFT or HARD.", default="SOFT", any_case=True, constraints=(one_of("SOFT", "HARD"),))

SERVER_TYPE = SpecType(
    "os.nova.server",
    schema={
        "context": mapping("Where the servers are: region_name."),
        "admin_pass": text("Password of the administrator."),
        "auto_disk_config": boolean("Let the cloud partition the disk.", default=True),
        "availability_zone": text("Availability zone to be in."),
        "block_device_mapping_v2": listing("Block devices.", items=mapping("A block device.", fields=_DEVICE)),
        "config_drive": boolean("Give metadata on a drive."),
        "flavor": text("Flavor, by name or id.", required=True, update=True),
        "image": text("Image to boot, by name or id.", update=True),
        "key_name": text("Key pair that may log in."),
        "metadata": mapping("Metadata of the server.", update=True),
        "name": text("Name of the server; without one, that of the node.", update=True),
        "networks": listing("Networks and ports.", update=True, items=mapping("A network.", fields=_NETWORK)),
        "personality": listing(
            "Files to put into the server.",
            items=mapping(
                "A file.",
                fields={
                    "path": text("Where it is in the server.", required=True),
                    "contents": text("What is in it, as text or in base64.", required=True),
                },
            ),
        ),
        "scheduler_hints": mapping("Hints to the cloud's scheduler."),
        "security_groups": listing("Security groups.", items=text("Name of a security group.", required=True)),
        "user_data": text("Script or data for the first boot."),
    },
    support={
        "1.0": [{"status": "SUPPORTED", "since": "2016.04"}],
        "1.1": [{"status": "SUPPORTED", "since": "2023.04"}],
        "1.2": [{"status": "SUPPORTED", "since": "2023.07"}],
    },
    operations={
        "reboot": Operation("Reboot the server.", {"type": _REBOOT}),
        "rebuild": Operation("Make the server's disk from its image again."),
        "change_password": Operation(
            "Change the password of the administrator.", {"admin_pass": text("The new password.", required=True)}
        ),
        "pause": Operation("Pause the server."),
        "unpause": Operation("End the pause of the server."),
        "suspend": Operation("Suspend the server."),
        "resume": Operation("Resume the server."),
        "lock": Operation("Lock the server."),
        "unlock": Operation("Unlock the server."),
        "start": Operation("Start the server."),
        "stop": Operation("Stop the server."),
        "rescue": Operation("Boot the server from a rescue image.", {"image_ref": text("The image.")}),
        "unrescue": Operation("Boot the server from its own disk again."),
        "evacuate": Operation(
            "Move the server from a host that has failed.",
            {"host": text("Host to move it to."), "force": text("Whether to leave the checks of the scheduler out.")},
        ),
    },
)
IN_PLACE_TOO = frozenset({"admin_pass"})
"""Properties that are changed in place although they are not marked as updatable, as in Senlin."""

_NODE_MARKS = ("cluster_id", "cluster_node_id", "cluster_node_index")
"""Keys of metadata that mark servers as nodes: an existing server may have been a node before."""
_COPIED = ("flavor", "image", "key_name", "availability_zone")


def check(properties: Mapping[str, Any]) -> None:
    """Check a profile beyond its schema, and the properties of its server.

    Raises:
        Rejected: InvalidSpec.
    """
    for place, network in enumerate(properties["networks"] or ()):
        _check_network(network, ("properties", "networks", place))
    for name in ("metadata", "scheduler_hints"):
        refuse_functions(properties[name], ("properties", name))
    if len({file["path"] for file in properties["personality"] or ()}) < len(properties["personality"] or ()):
        raise invalid_spec("Two files have the same path", "properties", "personality")
    server, _ = _parts(properties, Terms("node", {"cluster_node_id": ""}))
    refuse_functions(server.get("personality"), ("properties", "personality"))
    try:
        Server().check(_with_unknown(server), ("properties",))
    except Rejected as error:
        raise invalid_spec(error.detail, *error.path) from error


def _check_network(network: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    if not network["port"] and not network["network"]:
        raise invalid_spec("One of 'port' and 'network' must be provided", *path)
    if network["port"] and network["fixed_ip"]:
        raise invalid_spec(
            "The 'port' property and the 'fixed_ip' property cannot be specified at the same time", *path
        )
    if network["floating_ip"] and not network["floating_network"]:
        raise invalid_spec("Must specify a network to create floating IP; give floating_network", *path)


def define(properties: Mapping[str, Any], terms: Terms) -> Definition:
    """Return the definition of a node.

    Args:
        properties: Checked properties of the profile.
    """
    server, companions = _parts(properties, terms)
    region = region_of(properties, terms.region)
    if region:
        server.pop(SERVER_GROUP, None)  # the group is in the region of the cluster
    if not companions and not region:
        return Definition({"type": Server.name, "properties": server})
    # Values that differ between nodes, or could be parsed as function calls, are passed as parameters.
    parameters: dict[str, Any] = {
        name: server[name] for name in ("name", "metadata", "scheduler_hints", SERVER_GROUP) if name in server
    }
    written = template_text(_nested({**server, **_reads(parameters)}, companions, parameters))
    if region:
        remote = {"context": {"region_name": region}, "template": written, "parameters": parameters}
        return Definition({"type": REMOTE_STACK, "properties": remote}, server=SERVER)
    name = file_name(written)
    return Definition({"type": name, "properties": parameters}, {name: written}, server=SERVER)


def _reads(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"get_param": name} for name in parameters}


def _nested(server: dict[str, Any], companions: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template of the nested stack of a node."""
    return {
        "heat_template_version": HOT,
        "parameters": {name: {"type": "string" if name in _TEXTS else "json"} for name in parameters},
        "resources": {SERVER: {"type": Server.name, "properties": server}, **companions},
        "outputs": {
            "OS::stack_id": {"value": {"get_resource": SERVER}},
            "addresses": {"value": {"get_attr": [SERVER, "addresses"]}},
        },
    }


def _parts(properties: Mapping[str, Any], terms: Terms) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the properties of the server, and its companion resources: name -> resource."""
    same = ("flavor", "image", "key_name", "availability_zone", "config_drive", "admin_pass")
    server: dict[str, Any] = {
        **given(properties, *same),
        "name": properties["name"] or terms.name,
        "metadata": {**(properties["metadata"] or {}), **terms.metadata},
        "diskConfig": "AUTO" if properties["auto_disk_config"] else "MANUAL",
        "user_data_format": "RAW",
    }
    if properties["user_data"]:
        server["user_data"] = properties["user_data"]
    if terms.zone:
        server["availability_zone"] = terms.zone
    if properties["scheduler_hints"]:
        server["scheduler_hints"] = dict(properties["scheduler_hints"])
    if terms.server_group is not None:
        server[SERVER_GROUP] = terms.server_group
    if properties["personality"]:
        server["personality"] = {file["path"]: _plain(file["contents"]) for file in properties["personality"]}
    companions = {**_add_networks(server, properties), **_add_devices(server, properties)}
    return server, companions


def _plain(contents: str) -> str:
    """Return the text of a file, which is in base64 in Nova's API, and hence in profiles for Senlin."""
    try:
        return base64.b64decode(contents, validate=True).decode()
    except (binascii.Error, ValueError):
        return contents


def _add_networks(server: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Add networks and security groups to a server, and return its ports and floating addresses: name -> resource."""
    networks, groups = properties["networks"] or [], properties["security_groups"] or []
    companions: dict[str, Any] = {}
    entries = []
    special = [
        bool(network["port"] or network["security_groups"] or network["floating_network"]) for network in networks
    ]
    for place, network in enumerate(networks):
        # A server with a given port cannot set the security groups of its other ports: create these as resources, too.
        if not network["port"] and (special[place] or (groups and any(special))):
            companions[f"port{place}"] = _port(network, groups)
            port: Any = {"get_resource": f"port{place}"}
        else:
            port = network["port"]
        entries.append({"port": port} if port else _network(network))
        if network["floating_network"]:
            address = {"floating_network": network["floating_network"], "port_id": port}
            address |= {"floating_ip_address": network["floating_ip"]} if network["floating_ip"] else {}
            companions[f"address{place}"] = {"type": "OS::Neutron::FloatingIP", "properties": address}
    if entries:
        server["networks"] = entries
    # The server's security groups apply only to ports that Nova creates; other ports have their own.
    if groups and not any("port" in entry for entry in entries):
        server["security_groups"] = list(groups)
    return companions


def _network(network: Mapping[str, Any]) -> dict[str, Any]:
    entry = given(network, "network", "subnet", "fixed_ip")
    if network["vnic_type"]:
        entry["port_extra_properties"] = {"binding:vnic_type": network["vnic_type"]}
    return entry


def _port(network: Mapping[str, Any], groups: list[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {"network": network["network"]}
    fixed = {**given(network, "subnet"), **({"ip_address": network["fixed_ip"]} if network["fixed_ip"] else {})}
    if fixed:
        properties["fixed_ips"] = [fixed]
    if network["security_groups"] or groups:
        properties["security_groups"] = list(network["security_groups"] or groups)
    if network["vnic_type"]:
        properties["binding:vnic_type"] = network["vnic_type"]
    return {"type": "OS::Neutron::Port", "properties": properties}


def _add_devices(server: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Add block devices to a server, and return its volumes: name -> resource."""
    companions: dict[str, Any] = {}
    devices = []
    for place, device in enumerate(properties["block_device_mapping_v2"] or ()):
        path = ("properties", "block_device_mapping_v2", place)
        source, target = device["source_type"], device["destination_type"]
        if source != "blank" and not device["uuid"]:
            raise invalid_spec(f"source_type {source} needs a uuid", *path)
        if (source, target) == ("image", "local"):
            _boot_locally(server, device, path)
            continue
        if (source, target) in (("volume", "local"), ("snapshot", "local")):
            raise invalid_spec(f"source_type {source} goes with destination_type volume only", *path)
        if (source, target) == ("blank", "volume"):
            companions[f"volume{place}"] = _volume(device)
        devices.append(_device(device, place))
    if devices:
        server["block_device_mapping_v2"] = devices
    return companions


def _boot_locally(server: dict[str, Any], device: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    """Set the image of a server whose root disk is listed among its devices."""
    if server.get("image", device["uuid"]) != device["uuid"] or device["boot_index"] not in (0, None):
        raise invalid_spec("A server has one local disk from an image, with boot_index 0", *path)
    server["image"] = device["uuid"]


def _device(device: Mapping[str, Any], place: int) -> dict[str, Any]:
    same = ("disk_bus", "device_name", "boot_index", "device_type", "delete_on_termination", "volume_type")
    entry = given(device, *same)
    source, target, size = device["source_type"], device["destination_type"], device["volume_size"]
    if (source, target) == ("blank", "local"):
        if device["guest_format"] == "swap":
            return {**entry, "swap_size": size}
        form = {"ephemeral_format": device["guest_format"]} if device["guest_format"] else {}
        return {**entry, **form, "ephemeral_size": size}
    if source == "blank":
        of_volume = ("volume_type", "delete_on_termination")
        kept = {name: value for name, value in entry.items() if name not in of_volume}
        return {"boot_index": -1, **kept, "volume_id": {"get_resource": f"volume{place}"}}
    # In a template, a device without `boot_index` boots first; in a profile, as in Nova, it does not boot.
    key = {"image": "image", "snapshot": "snapshot_id", "volume": "volume_id"}[source]
    return {"boot_index": -1, **entry, key: device["uuid"], "volume_size": size}


def _volume(device: Mapping[str, Any]) -> dict[str, Any]:
    properties = {"size": device["volume_size"], **given(device, "volume_type")}
    retained = {} if device["delete_on_termination"] else {"deletion_policy": "Retain"}
    return {"type": "OS::Cinder::Volume", "properties": properties, **retained}


def _with_unknown(value: Any) -> Any:
    """Return a value with references to other resources replaced by `UNKNOWN`."""
    if isinstance(value, Mapping):
        if len(value) == 1 and "get_resource" in value:
            return UNKNOWN
        return {key: _with_unknown(item) for key, item in value.items()}
    return [_with_unknown(item) for item in value] if isinstance(value, list) else value


def server_spec(seen: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a profile for equal servers.

    Networks are named without addresses and ports, which belong to this server only.

    Args:
        seen: Observed properties of the server (kind `server`).
        overrides: Properties that replace observed ones.
    """
    properties: dict[str, Any] = {name: seen[name] for name in _COPIED if seen.get(name)}
    if seen.get("config_drive"):
        properties["config_drive"] = True
    if seen.get("diskConfig"):
        properties["auto_disk_config"] = seen["diskConfig"] == "AUTO"
    metadata = {key: value for key, value in (seen.get("metadata") or {}).items() if key not in _NODE_MARKS}
    if metadata:
        properties["metadata"] = metadata
    networks = _seen_networks(seen)
    if networks:
        properties["networks"] = [{"network": name} for name in networks]
    if seen.get("security_groups"):
        properties["security_groups"] = list(dict.fromkeys(seen["security_groups"]))
    return {"type": SERVER_TYPE.name, "version": "1.0", "properties": {**properties, **overrides}}


def _seen_networks(seen: Mapping[str, Any]) -> list[str]:
    """Return ids or names of the networks of a server."""
    named = [entry.get("network") for entry in seen.get("networks") or () if isinstance(entry, Mapping)]
    addressed = [next((entry.get("network") for entry in group), None) or name for name, group in _seen_addresses(seen)]
    return [str(name) for name in named if name] or [str(name) for name in addressed]


def _seen_addresses(seen: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list((seen.get("addresses") or {}).items())
