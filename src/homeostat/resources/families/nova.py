"""The type of servers."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from homeostat.model.errors import Terminal
from homeostat.model.health_policy import Preserved
from homeostat.resources import comparison, user_data
from homeostat.resources.base import AdoptionTag, MaintenanceMethod, Props, ResourceType, Thing, payload, shortened
from homeostat.resources.constraints import IP_ADDRESS, IP_OR_CIDR, MAC_ADDRESS
from homeostat.resources.families import server_identity
from homeostat.resources.families.access import AGENT, check_config_transport
from homeostat.resources.families.neutron import VNIC_TYPES
from homeostat.resources.graph import Graph, entries, pick, subnets_of, without_network
from homeostat.resources.rules import apart_in_more_than_case, conflict, exactly_one, is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Schema,
    ValueType,
    between,
    boolean,
    custom,
    integer,
    listing,
    mapping,
    one_of,
    text,
)

SERVER_NAME_MAX = 53
"""Longest server name: with a domain it must still fit into a host name."""

_DEVICE: Schema = {
    "device_name": text("Name of the device, such as vda.", required=True),
    "volume_id": text("Volume to attach.", constraints=(custom("cinder.volume"),)),
    "snapshot_id": text("Snapshot to make a volume from.", constraints=(custom("cinder.snapshot"),)),
    "volume_size": integer("Size of the volume in GiB."),
    "delete_on_termination": boolean("Delete the volume with the server."),
}

_DEVICE_V2: Schema = {
    "device_name": text("Name of the device, such as vda."),
    "volume_id": text("Volume to attach.", constraints=(custom("cinder.volume"),)),
    "image": text("Image to make a volume from.", constraints=(custom("glance.image"),)),
    "snapshot_id": text("Snapshot to make a volume from.", constraints=(custom("cinder.snapshot"),)),
    "swap_size": integer("Size of swap space in MiB."),
    "ephemeral_size": integer("Size of a disk that goes with the server, in GiB.", constraints=(between(1),)),
    "ephemeral_format": text("File system of that disk.", constraints=(one_of("ext2", "ext3", "ext4", "xfs", "ntfs"),)),
    "device_type": text("Kind of device.", constraints=(one_of("cdrom", "disk"),)),
    "disk_bus": text("Bus of the device.", constraints=(one_of("ide", "lame_bus", "sata", "scsi", "usb", "virtio"),)),
    "boot_index": integer("Place in the boot order; 0 boots first."),
    "volume_size": integer("Size of the volume in GiB."),
    "delete_on_termination": boolean("Delete the volume with the server."),
    "volume_type": text("Type of the volume.", constraints=(custom("cinder.vtype"),)),
}

_PORT_EXTRA: Schema = {
    "value_specs": mapping("Further fields of the port.", default={}, update=True),
    "admin_state_up": boolean("The port is switched on.", default=True, update=True),
    "mac_address": text("MAC address of the port.", constraints=(MAC_ADDRESS,)),
    "allowed_address_pairs": listing(
        "Further addresses that may pass the port.",
        update=True,
        items=mapping(
            fields={
                "mac_address": text("MAC address.", constraints=(MAC_ADDRESS,)),
                "ip_address": text("Address or network.", required=True, constraints=(IP_OR_CIDR,)),
            }
        ),
    ),
    "binding:vnic_type": text(
        "Kind of network card.", default="normal", update=True, constraints=(one_of(*VNIC_TYPES),)
    ),
    "port_security_enabled": boolean("Filter the port's traffic.", update=True),
    "qos_policy": text("Quality of service policy.", update=True, constraints=(custom("neutron.qos_policy"),)),
    "propagate_uplink_status": boolean("Pass the uplink's status on to the port.", update=True),
    "no_fixed_ips": boolean("The port gets no addresses.", default=False, update=True),
}

_NETWORK: Schema = {
    "network": text("Network to be on.", constraints=(custom("neutron.network"),)),
    "allocate_network": text(
        "Let the cloud choose a network, or have none.", update=True, constraints=(one_of("none", "auto"),)
    ),
    "fixed_ip": text("Address to have there.", constraints=(IP_ADDRESS,)),
    "port": text("Port to use.", constraints=(custom("neutron.port"),)),
    "port_extra_properties": mapping("Of the port made for the server.", update=True, fields=_PORT_EXTRA),
    "subnet": text("Subnet to be on."),
    "floating_ip": text("Floating IP to have."),
    "tag": text("Tag of the device."),
}


class ServerType(ResourceType):
    """Base of the types of servers, whatever the names of their properties."""

    kind = "server"
    can_snapshot = True
    maintenance_methods = {
        "SUSPEND": MaintenanceMethod("suspend", done=("suspended",)),
        "RESUME": MaintenanceMethod("resume", done=("active",)),
        "LOCK": MaintenanceMethod("lock", observed_field="locked", done=(True,), gradual=False),
        "UNLOCK": MaintenanceMethod("unlock", observed_field="locked", done=(False, None), gradual=False),
    }


SERVER_GROUP = "server_group"
"""Property with the group among the scheduler hints; a new group is no reason to replace the server."""


class Server(ServerType):
    name = "OS::Nova::Server"
    description = "A server."
    properties = {
        "name": text("Name of the server.", update=True),
        "image": text("Image to boot, by name or id.", update=True, drift=False, constraints=(custom("glance.image"),)),
        "block_device_mapping": listing("Block devices, old form.", items=mapping(fields=_DEVICE)),
        "block_device_mapping_v2": listing("Block devices.", items=mapping(fields=_DEVICE_V2)),
        "flavor": text(
            "Flavor, by name or id.",
            required=True,
            update=True,
            drift=False,
            constraints=(custom("nova.flavor"),),
        ),
        "flavor_update_policy": text(
            "What a new flavor does.",
            default="RESIZE",
            update=True,
            constraints=(one_of("RESIZE", "REPLACE"),),
        ),
        "image_update_policy": text(
            "What a new image does.",
            default="REBUILD",
            update=True,
            constraints=(one_of("REBUILD", "REPLACE", "REBUILD_PRESERVE_EPHEMERAL"),),
        ),
        "key_name": text("Key pair that may log in.", constraints=(custom("nova.keypair"),)),
        "admin_user": text("Accepted for old templates.", hidden=True),
        "availability_zone": text("Availability zone to be in."),
        "security_groups": listing("Security groups of the ports made for the server.", default=[]),
        "networks": listing("Networks and ports, in order.", update=True, drift=False, items=mapping(fields=_NETWORK)),
        "scheduler_hints": mapping("Hints to the cloud's scheduler."),
        SERVER_GROUP: text("Group that a new server is made in; one that is there stays.", hidden=True, update=True),
        "metadata": mapping("Metadata of the server in the cloud.", default={}, update=True),
        "user_data_format": text(
            "How user_data reaches the server.",
            default="HEAT_CFNTOOLS",
            constraints=(one_of("HEAT_CFNTOOLS", "RAW", "SOFTWARE_CONFIG"),),
        ),
        "user_data_update_policy": text(
            "What new user_data does.",
            default="REPLACE",
            update=True,
            constraints=(one_of("REPLACE", "IGNORE", "REBUILD"),),
        ),
        "user_data": text("Script or data for the first boot.", default="", update=True, blank=True, drift=False),
        "reservation_id": text("Reservation to use."),
        "config_drive": boolean("Give metadata on a drive."),
        "diskConfig": text("Who partitions the disk.", constraints=(one_of("AUTO", "MANUAL"),)),
        "personality": mapping("Files to put into the server.", default={}),
        "admin_pass": text("Password of the administrator.", update=True, drift=False),
        "tags": listing("Tags of the server.", update=True, items=text(), same=comparison.includes),
        **AGENT,
    }
    unsent = {
        *("block_device_mapping_v2", "admin_user", SERVER_GROUP, "user_data_format", *AGENT),
        *("flavor_update_policy", "image_update_policy", "user_data_update_policy"),
    }
    attributes = {
        "name": Attribute("Name of the server."),
        "addresses": Attribute("Addresses with their ports, by network name and id.", ValueType.MAP),
        "networks": Attribute("Plain addresses, by network name and id.", ValueType.MAP),
        "first_address": Attribute("The first address; use networks.", deprecated=True),
        "instance_name": Attribute("Name of the instance on its host."),
        "accessIPv4": Attribute("Address to reach it by.", deprecated=True, field="access_ipv4"),
        "accessIPv6": Attribute("IPv6 address to reach it by.", deprecated=True, field="access_ipv6"),
        "console_urls": Attribute("URL of each kind of console.", ValueType.MAP),
        "tags": Attribute("Tags of the server.", ValueType.LIST),
        "os_collect_config": Attribute("Settings of the configuration agent.", ValueType.MAP, live=True, secret=True),
    }

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        networks = provided.get("networks")
        if isinstance(networks, list) and any("uuid" in entry for entry in entries(networks)):
            named = [_with_network(entry, (*path, "networks", place)) for place, entry in enumerate(networks)]
            provided = {**provided, "networks": named}
        return super().check(provided, path)

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        self._validate_devices(values, path)
        apart_in_more_than_case(values, "tags", path)
        if values.get("user_data_format") == user_data.SOFTWARE_CONFIG:
            check_config_transport(values, path)
        networks = values.get("networks")
        items = networks if isinstance(networks, list) else []
        for index, item in enumerate(items):
            if item is not UNKNOWN:
                self._validate_network(item, len(items), (*path, "networks", index))
        if is_set(values, "security_groups") and any(item is not UNKNOWN and is_set(item, "port") for item in items):
            raise conflict(path, "security_groups", "networks/port")

    def _validate_devices(self, values: Props, path: tuple[str | int, ...]) -> None:
        old, new = values.get("block_device_mapping"), values.get("block_device_mapping_v2")
        if is_set(values, "block_device_mapping") and is_set(values, "block_device_mapping_v2"):
            raise conflict(path, "block_device_mapping", "block_device_mapping_v2")
        for index, device in enumerate(old if isinstance(old, list) else ()):
            if device is not UNKNOWN:
                exactly_one(device, (*path, "block_device_mapping", index), "volume_id", "snapshot_id")
        sources = ("volume_id", "image", "snapshot_id", "swap_size", "ephemeral_size")
        for index, device in enumerate(new if isinstance(new, list) else ()):
            if device is not UNKNOWN:
                exactly_one(device, (*path, "block_device_mapping_v2", index), *sources)
        require(
            is_set(values, "image") or old is UNKNOWN or new is UNKNOWN or any(map(_boots, _devices(values))),
            "Neither image nor a bootable volume is given; set image, or a device with boot_index 0",
            path,
        )

    def _validate_network(self, item: Mapping[str, Any], count: int, path: tuple[str | int, ...]) -> None:
        if is_set(item, "allocate_network"):
            for other in ("network", "port", "subnet"):
                if is_set(item, other):
                    raise conflict(path, "allocate_network", other)
            require(count == 1, "allocate_network must be the only entry of networks", path)
        elif is_set(item, "port") and is_set(item, "fixed_ip"):
            raise conflict(path, "port", "fixed_ip")
        else:
            named = any(is_set(item, name) for name in ("network", "port", "subnet"))
            require(named, "One of network, port, subnet and allocate_network is needed for each network", path)

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the subnets of its networks, and all subnets whose network is unknown."""
        networks = entries(properties.get("networks"))
        required: set[str] = set()
        for entry in networks:
            required |= subnets_of(graph, pick(entry, "network", "uuid"))
        if networks:
            required |= without_network(graph)
        return required

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(
            {k: v for k, v in values.items() if k not in _OWN}, shortened(physical_name, SERVER_NAME_MAX)
        )
        form = values.get("user_data_format") or user_data.RAW
        if form != user_data.RAW:
            spec["user_data_format"] = form
        if form == user_data.SOFTWARE_CONFIG:
            spec["software_config_transport"] = values["software_config_transport"]
        if values.get(SERVER_GROUP):
            spec["scheduler_hints"] = {**(values.get("scheduler_hints") or {}), "group": values[SERVER_GROUP]}
        spec["metadata"] = {key: _metadata_text(value) for key, value in (values.get("metadata") or {}).items()}
        devices = _devices(values)
        if devices:
            spec["block_device_mapping"] = devices
        if values.get("networks"):
            spec["networks"] = payload(values["networks"])
        if values.get("image_update_policy") == "REBUILD_PRESERVE_EPHEMERAL":
            spec["preserve_ephemeral"] = True
        if values.get("user_data_update_policy") == "IGNORE":
            spec["keeps_user_data"] = True
        return spec

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        reason = super().replacement_reason(before, after, changed)
        if reason:
            return reason
        # A rebuild writes another image to the server's own disk; a boot volume is a different disk.
        if "image" in changed and not (before["image"] and after["image"]):
            return "a server cannot change between image and volume in place"
        for name in ("flavor", "image", "user_data"):
            policy = f"{name}_update_policy"
            if name in changed and after[policy] == "REPLACE":
                return f"{name} changed and {policy} is REPLACE"
        return ""

    def identity(
        self, values: Props, seen: Props, preserved: Collection[Preserved], managed: Collection[str]
    ) -> dict[str, Any]:
        return server_identity.identity(values, seen, preserved, managed)

    def snapshot_property(self, values: Props) -> str:
        """Return `image`, or "" for a server that boots from a volume, which has the data."""
        return "image" if values.get("image") else ""

    def adoption(self, data: Props) -> dict[str, Any] | None:
        """Return the ports that Heat created for the server itself, and recorded as JSON.

        Raises:
            Terminal: The record is not in Heat's form.
        """
        try:
            ports = [str(port["id"]) for port in json.loads(data.get("internal_ports") or "[]")]
        except (TypeError, ValueError, KeyError) as error:
            raise Terminal(f"resource_data.internal_ports is no list of ports: {data['internal_ports']}") from error
        return {"ports": ports} if ports else None

    def adoption_tags(self, thing: Thing, arguments: Props) -> list[AdoptionTag]:
        return [AdoptionTag("port", port, thing.handle) for port in arguments["ports"]]

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return the drifted properties; `networks` only if an interface or a named port is missing."""
        drifted, addresses = super().drift(thing), thing.seen.properties.get("addresses")
        if _lacks_port(thing):
            return (*drifted, "networks")
        entries_of_networks = [entry for entry in thing.properties.get("networks") or () if _has_address(entry)]
        if addresses is None or not entries_of_networks:
            return drifted
        items = [item for group in addresses.values() for item in group]
        interfaces = {item.get("mac") or item.get("port") or item.get("addr") for item in items}
        return (*drifted, "networks") if len(interfaces) < len(entries_of_networks) else drifted

    def attribute(self, thing: Thing, name: str) -> Any:
        if name == "addresses":
            return _by_network(thing)
        if name == "networks":
            return {key: [item.get("addr") for item in group] for key, group in _by_network(thing).items()}
        if name == "first_address":
            return next((item.get("addr") for group in _by_network(thing).values() for item in group), "")
        value = super().attribute(thing, name)
        return _UNSAID.get(name) if value is None else value


def _lacks_port(thing: Thing) -> bool:
    """Return whether a port in `networks` is missing from the reported ports of the server."""
    ports = thing.seen.properties.get("ports")
    known = {_plain(port[name]) for port in ports or () for name in ("id", "name")}
    named = (entry.get("port") for entry in thing.properties.get("networks") or ())
    return ports is not None and any(port and _plain(port) not in known for port in named)


def _plain(name: Any) -> str:
    """Return an id or a name in the canonical form: without dashes, in lower case."""
    return str(name).replace("-", "").lower()


def _has_address(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of `networks` certainly gives the server an address."""
    bare = (entry.get("port_extra_properties") or {}).get("no_fixed_ips")
    return not bare and not entry.get("port") and bool(entry.get("network") or entry.get("subnet"))


_OWN = frozenset({*Server.unsent, "block_device_mapping", "networks"})
"""Properties of a server that only the service itself uses, or that `spec` translates."""

_UNSAID: Mapping[str, Any] = {"accessIPv4": "", "accessIPv6": "", "console_urls": {}, "os_collect_config": {}}
"""Values of attributes that the cloud does not report."""


def _with_network(entry: Any, path: tuple[str | int, ...]) -> Any:
    """Return an entry of `networks` with `network` in place of the former name `uuid`.

    Raises:
        Rejected: The entry has both.
    """
    if not isinstance(entry, Mapping) or "uuid" not in entry:
        return entry
    plain = {name: value for name, value in entry.items() if name != "uuid"}
    if entry["uuid"] is not None and plain.get("network") is not None:
        raise conflict(path, "network", "uuid")
    return plain if entry["uuid"] is None else {**plain, "network": entry["uuid"]}


def _metadata_text(value: Any) -> str:
    """Return a value of the metadata as text, since Nova stores only texts."""
    return value if isinstance(value, str) else json.dumps(value)


def _devices(values: Props) -> list[dict[str, Any]]:
    """Return the block devices of both properties in one form: {device_name?, one source, boot_index, …}."""
    # Boot index -1 means not bootable; old entries have no index, and vda is the boot device by convention.
    old, new = values.get("block_device_mapping"), values.get("block_device_mapping_v2")
    devices = [{**payload(item), "boot_index": 0 if item.get("device_name") == "vda" else -1} for item in _known(old)]
    for item in _known(new):
        booting = any(is_set(item, name) for name in ("volume_id", "image", "snapshot_id"))
        devices.append({"boot_index": 0 if booting else -1, **payload(item)})
    return devices


def _known(items: Any) -> list[Mapping[str, Any]]:
    return [item for item in items if item is not UNKNOWN] if isinstance(items, list) else []


def _boots(device: Mapping[str, Any]) -> bool:
    return device["boot_index"] in (0, UNKNOWN)


def _by_network(thing: Thing) -> dict[str, list[dict[str, Any]]]:
    """Return the addresses of a server, under both the name and the id of each network."""
    by_network: dict[str, list[dict[str, Any]]] = {}
    for network, group in (thing.seen.properties.get("addresses") or {}).items():
        addresses = [_address(item) for item in group]
        aliases = (item.get(key) for item in group for key in ("network", "network_id", "network_name"))
        for key in dict.fromkeys((network, *filter(None, aliases))):
            by_network[key] = addresses
    return by_network


def _address(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an address with its fields also under the names of the Nova API."""
    known = {"OS-EXT-IPS-MAC:mac_addr": item.get("mac"), "OS-EXT-IPS:type": item.get("type", "fixed")}
    return {**known, **item}


TYPES: list[type[ResourceType]] = [Server]
