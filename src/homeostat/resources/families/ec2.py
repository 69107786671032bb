"""Types of AWS EC2, implemented by OpenStack: instances, volumes, addresses, security groups, interfaces."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing, shortened
from homeostat.resources.constraints import IP_ADDRESS
from homeostat.resources.families.cinder import VolumeAttachment, VolumeKind
from homeostat.resources.families.launch_configurations import BLOCK_DEVICES, HINTS, check_devices
from homeostat.resources.families.neutron import NetworkingType, link
from homeostat.resources.families.nova import SERVER_NAME_MAX, ServerType
from homeostat.resources.graph import Graph, of_type
from homeostat.resources.rules import conflict, exactly_one, is_set, require
from homeostat.resources.schema import (
    Attribute,
    Property,
    between,
    boolean,
    custom,
    integer,
    listing,
    mapping,
    one_of,
    pattern,
    text,
)

NO_ADDRESS = "0.0.0.0"


def tags(description: str, **options: Any) -> Property:
    fields = {"Key": text("Name of the tag.", required=True), "Value": text("Value of the tag.", required=True)}
    return listing(description, items=mapping(fields=fields), **options)


def as_map(entries: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Convert [{Key, Value}] to a map; a key that occurs several times gets a list of its values."""
    values: dict[str, list[Any]] = {}
    for tag in entries or ():
        values.setdefault(tag["Key"], []).append(tag["Value"])
    return {key: items[0] if len(items) == 1 else items for key, items in values.items()}


class Instance(ServerType):
    name = "AWS::EC2::Instance"
    description = "A server, described as EC2 does."
    properties = {
        "ImageId": text("Image, by name or id.", required=True, constraints=(custom("glance.image"),)),
        "InstanceType": text(
            "Flavor, by name or id.", required=True, update=True, drift=False, constraints=(custom("nova.flavor"),)
        ),
        "KeyName": text("Key pair that may log in.", constraints=(custom("nova.keypair"),)),
        "AvailabilityZone": text("Availability zone to be in."),
        "DisableApiTermination": text("Keep it from being deleted.", implemented=False),
        "KernelId": text("Kernel of the image.", implemented=False),
        "Monitoring": boolean("Watch it closely.", implemented=False),
        "PlacementGroupName": text("Group of servers near to one another.", implemented=False),
        "PrivateIpAddress": text("Address to have.", implemented=False),
        "RamDiskId": text("Initial disk of the kernel.", implemented=False),
        "SecurityGroups": listing("Security groups, by name."),
        "SecurityGroupIds": listing("Security groups, by id."),
        "NetworkInterfaces": listing(
            "Ports: ids, or maps of NetworkInterfaceId and DeviceIndex.", update=True, drift=False
        ),
        "SourceDestCheck": boolean("Check the addresses of packets.", implemented=False),
        "SubnetId": text("Subnet to be on.", update=True, drift=False),
        "Tags": tags("Metadata of the server in the cloud.", update=True),
        "NovaSchedulerHints": HINTS,
        "Tenancy": text(
            "Whether others use the host.", implemented=False, constraints=(one_of("dedicated", "default"),)
        ),
        "UserData": text("Script or data for the first boot.", blank=True),
        "Volumes": listing(
            "Volumes to attach.",
            default=[],
            items=mapping(
                fields={
                    "Device": text("Name of the device, such as /dev/vdb.", required=True),
                    "VolumeId": text("The volume.", required=True, constraints=(custom("cinder.volume"),)),
                }
            ),
        ),
        "BlockDeviceMappings": BLOCK_DEVICES,
    }
    attributes = {
        "AvailabilityZone": Attribute("Availability zone it is in.", field="availability_zone"),
        "PrivateDnsName": Attribute("Its first address."),
        "PublicDnsName": Attribute("Its first address."),
        "PrivateIp": Attribute("Its first address."),
        "PublicIp": Attribute("Its first address."),
    }
    renamed = {"ImageId": "image", "InstanceType": "flavor", "KeyName": "key_name", "Tags": "metadata"}
    renamed |= {"AvailabilityZone": "availability_zone", "UserData": "user_data"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        check_devices(values, path)
        for name in ("SecurityGroups", "SecurityGroupIds", "SubnetId"):
            if is_set(values, "NetworkInterfaces") and is_set(values, name):
                raise conflict(path, name, "NetworkInterfaces")
        interfaces = values.get("NetworkInterfaces")
        for index, interface in enumerate(interfaces if isinstance(interfaces, list) else ()):
            named = not isinstance(interface, Mapping) or bool(interface.get("NetworkInterfaceId"))
            require(named, "NetworkInterfaceId is needed", (*path, "NetworkInterfaces", index))

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = {field: values[name] for name, field in self.renamed.items() if values.get(name)}
        spec |= {"name": shortened(physical_name, SERVER_NAME_MAX), "metadata": as_map(values.get("Tags"))}
        groups = [*(values.get("SecurityGroupIds") or []), *(values.get("SecurityGroups") or [])]
        if groups:
            spec["security_groups"] = groups
        if _networks(values):
            spec["networks"] = _networks(values)
        if values.get("NovaSchedulerHints"):
            spec["scheduler_hints"] = as_map(values["NovaSchedulerHints"])
        devices = [*map(_volume, values.get("Volumes") or ()), *map(_disk, values.get("BlockDeviceMappings") or ())]
        if devices:
            spec["block_device_mapping"] = devices
        spec["user_data_format"] = "HEAT_CFNTOOLS"
        return spec

    def attribute(self, thing: Thing, name: str) -> Any:
        if name in ("PrivateDnsName", "PublicDnsName", "PrivateIp", "PublicIp"):
            return _first_address(thing) or NO_ADDRESS
        return super().attribute(thing, name)


def _first_address(thing: Thing) -> str | None:
    groups = (thing.seen.properties.get("addresses") or {}).values()
    return next((address["addr"] for group in groups for address in group), None)


def _networks(values: Props) -> list[dict[str, Any]]:
    """Return the networks of the server: its ports in the order of their DeviceIndex, or its subnet."""
    interfaces = values.get("NetworkInterfaces") or []
    placed = [
        interface if isinstance(interface, Mapping) else {"NetworkInterfaceId": interface} for interface in interfaces
    ]
    ordered = sorted(enumerate(placed), key=lambda pair: (int(pair[1].get("DeviceIndex", pair[0])), pair[0]))
    if ordered:
        return [{"port": interface["NetworkInterfaceId"]} for _, interface in ordered]
    return [{"subnet": values["SubnetId"]}] if values.get("SubnetId") else []


def _volume(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"device_name": entry["Device"], "volume_id": entry["VolumeId"], "boot_index": -1}


def _disk(entry: Mapping[str, Any]) -> dict[str, Any]:
    volume = entry["Ebs"]
    device = {"device_name": entry["DeviceName"], "snapshot_id": volume["SnapshotId"], "boot_index": -1}
    device["delete_on_termination"] = volume.get("DeleteOnTermination", True)
    return {**device, "volume_size": int(volume["VolumeSize"])} if volume.get("VolumeSize") else device


class Volume(VolumeKind):
    name = "AWS::EC2::Volume"
    description = "A volume, described as EC2 does."
    properties = {
        "AvailabilityZone": text("Availability zone to be in.", required=True, immutable=True),
        "Size": integer("Size in GiB.", immutable=True, constraints=(between(1),)),
        "SnapshotId": text("Backup to start from.", immutable=True, constraints=(custom("cinder.backup"),)),
        "Tags": tags("Metadata of the volume in the cloud.", immutable=True),
    }
    renamed = {"AvailabilityZone": "availability_zone", "Size": "size", "SnapshotId": "backup_id", "Tags": "metadata"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        sized = is_set(values, "Size") or is_set(values, "SnapshotId")
        require(sized, "Size is needed unless SnapshotId gives one", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = {**super().spec(values, physical_name), "name": physical_name}
        return {**spec, "metadata": as_map(values.get("Tags"))}


class Attachment(ResourceType):
    name = "AWS::EC2::VolumeAttachment"
    kind = VolumeAttachment.kind
    description = "Attaches a volume to a server."
    properties = {
        "InstanceId": text("The server.", required=True, immutable=True, constraints=(custom("nova.server"),)),
        "VolumeId": text("The volume.", required=True, immutable=True, constraints=(custom("cinder.volume"),)),
        "Device": text(
            "Name of the device in the server.", required=True, immutable=True, constraints=(pattern("/dev/vd[b-z]"),)
        ),
    }
    renamed = {"InstanceId": "instance_uuid", "VolumeId": "volume_id", "Device": "mountpoint"}


_RULES = listing(
    update=True,
    same=comparison.rules,
    items=mapping(
        fields={
            "CidrIp": text("Network of the other side."),
            "FromPort": text("First port; -1 for any."),
            "ToPort": text("Last port; -1 for any."),
            "IpProtocol": text("Protocol; -1 for any."),
            "SourceSecurityGroupId": text("Group of the other side, by id."),
            "SourceSecurityGroupName": text("Group of the other side, by name."),
            "SourceSecurityGroupOwnerId": text("Owner of that group.", implemented=False),
        }
    ),
)


class SecurityGroup(NetworkingType):
    name = "AWS::EC2::SecurityGroup"
    kind = "security_group"
    description = "Rules for the traffic that may pass servers."
    properties = {
        "GroupDescription": text("Description of the group.", required=True),
        "VpcId": text("Network it is for."),
        "SecurityGroupIngress": replace(_RULES, description="What may come in."),
        "SecurityGroupEgress": replace(_RULES, description="What may go out."),
    }
    renamed = {"GroupDescription": "description", "SecurityGroupIngress": "rules", "SecurityGroupEgress": "rules"}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        ways = (("ingress", "SecurityGroupIngress"), ("egress", "SecurityGroupEgress"))
        rules = [_rule(way, entry) for way, name in ways for entry in values.get(name) or ()]
        return {"name": physical_name, "description": values["GroupDescription"], "rules": rules}


def _rule(way: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a rule to the fields of Neutron; -1 means any."""
    rule: dict[str, Any] = {"direction": way, "ethertype": "IPv4"}
    protocol = str(entry.get("IpProtocol") or "-1").lower()
    if protocol != "-1":
        rule["protocol"] = protocol
    for name, field in (("FromPort", "port_range_min"), ("ToPort", "port_range_max")):
        if entry.get(name) not in (None, "", "-1"):
            rule[field] = int(entry[name])
    group = entry.get("SourceSecurityGroupId") or entry.get("SourceSecurityGroupName")
    if group:
        rule["remote_group_id"] = group
    elif entry.get("CidrIp"):
        rule["remote_ip_prefix"] = entry["CidrIp"]
    return rule


class ElasticIp(NetworkingType):
    name = "AWS::EC2::EIP"
    kind = "floating_ip"
    description = "An outside address that leads to a server."
    properties = {
        "Domain": text("Accepted for old templates.", constraints=(one_of("vpc"),)),
        "InstanceId": text("Server it leads to.", update=True, drift=False, constraints=(custom("nova.server"),)),
    }
    attributes = {"AllocationId": Attribute("Id of the address.")}
    renamed = {"InstanceId": "server"}

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the gateways of the template, without which an address is not reachable from outside."""
        return {name for name, _ in of_type(graph, "AWS::EC2::VPCGatewayAttachment")}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"server": values["InstanceId"]} if values.get("InstanceId") else {}

    def reference(self, thing: Thing) -> Any:
        """Its address."""
        return thing.seen.properties.get("floating_ip_address") or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        return thing.handle or None if name == "AllocationId" else super().attribute(thing, name)


class ElasticIpAssociation(NetworkingType):
    name = "AWS::EC2::EIPAssociation"
    kind = "floating_ip_association"
    description = "Lets an outside address lead to a server or a port."
    properties = {
        "InstanceId": text("The server.", update=True, drift=False, constraints=(custom("nova.server"),)),
        "EIP": text("The address.", update=True, drift=False, constraints=(IP_ADDRESS,)),
        "AllocationId": text("Id of the address.", update=True, same=comparison.reference),
        "NetworkInterfaceId": text("The port.", update=True, same=comparison.reference),
    }
    renamed = {"InstanceId": "server", "AllocationId": "floatingip_id", "NetworkInterfaceId": "port_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "EIP", "AllocationId")
        exactly_one(values, path, "InstanceId", "NetworkInterfaceId")

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        address = spec.pop("EIP", None)
        return {**spec, "floatingip_id": address} if address else spec


class NetworkInterface(NetworkingType):
    name = "AWS::EC2::NetworkInterface"
    kind = "port"
    description = "A place on a subnet for one server."
    properties = {
        "Description": text("Description of the port."),
        "GroupSet": listing("Security groups.", update=True, same=comparison.references),
        "PrivateIpAddress": text("Address to have."),
        "SourceDestCheck": boolean("Check the addresses of packets.", implemented=False),
        "SubnetId": link("Subnet to be on.", "subnet", required=True),
        "Tags": tags("Tags of the port."),
    }
    attributes = {"PrivateIpAddress": Attribute("Its address.")}
    renamed = {"GroupSet": "security_groups"}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        fixed = {"subnet_id": values["SubnetId"]}
        if values.get("PrivateIpAddress"):
            fixed["ip_address"] = values["PrivateIpAddress"]
        spec = {"name": physical_name, "admin_state_up": True, "fixed_ips": [fixed]}
        if values.get("Description"):
            spec["description"] = values["Description"]
        if values.get("GroupSet"):
            spec["security_groups"] = values["GroupSet"]
        return spec

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != "PrivateIpAddress":
            return super().attribute(thing, name)
        return next((address.get("ip_address") for address in thing.seen.properties.get("fixed_ips") or ()), None)


TYPES: list[type[ResourceType]] = [
    Instance,
    Volume,
    Attachment,
    SecurityGroup,
    ElasticIp,
    ElasticIpAssociation,
    NetworkInterface,
]
