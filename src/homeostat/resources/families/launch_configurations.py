"""Launch configurations: settings for the servers of a group, and their block devices."""

from collections.abc import Mapping
from typing import Any

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
    Schema,
    boolean,
    custom,
    listing,
    mapping,
    number,
    text,
)

COPIED: Mapping[str, str] = {
    "image": "ImageId",
    "flavor": "InstanceType",
    "key_name": "KeyName",
    "security_groups": "SecurityGroups",
}
"""Field of a server in the cloud -> property of servers modelled on it."""
NEEDED = ("ImageId", "InstanceType")
"""Properties without which no server can be created."""
MODEL = "model"
"""Argument of a creation: the properties copied from the model server."""


class LikeServer:
    """Base of the types that copy missing properties from a model server in the cloud, at their creation.

    Later changes of the model server have no effect.
    """

    def model(self, values: Props) -> str:
        """Return the name or id of the model server; "" for none."""
        return str(values.get("InstanceId") or "")


def taken_over(server: Props) -> dict[str, Any]:
    """Return the properties copied from a server, as the cloud reports it."""
    return {name: server[field] for field, name in COPIED.items() if server.get(field)}


EBS: Schema = {
    "DeleteOnTermination": boolean("Delete the volume with the server.", default=True),
    "Iops": number("Operations a second.", implemented=False),
    "SnapshotId": text("Snapshot to make it from.", constraints=(custom("cinder.snapshot"),)),
    "VolumeSize": text("Size in GiB."),
    "VolumeType": text("Type of the volume.", implemented=False),
}
BLOCK_DEVICES = listing(
    "Further disks, from snapshots.",
    items=mapping(
        fields={
            "DeviceName": text("Name of the device, such as vdb.", required=True),
            "Ebs": mapping("The volume.", fields=EBS),
            "NoDevice": mapping("Leave a device of the image out.", implemented=False),
            "VirtualName": text("Name of a disk that goes with the server.", implemented=False),
        }
    ),
)
HINTS = listing(
    "Hints to the cloud's scheduler.",
    items=mapping(
        fields={"Key": text("Name of the hint.", required=True), "Value": text("Value of the hint.", required=True)}
    ),
)


def check_devices(values: Props, path: tuple[str | int, ...]) -> None:
    """Check the block devices.

    Raises:
        Rejected: A device is not made from a snapshot.
    """
    devices = values.get("BlockDeviceMappings")
    for index, device in enumerate(devices if isinstance(devices, list) else ()):
        if device is UNKNOWN:
            continue
        place = (*path, "BlockDeviceMappings", index)
        volume = device.get("Ebs")
        require(is_set(device, "Ebs"), "Ebs is missing, this is required", place)
        from_snapshot = not isinstance(volume, Mapping) or is_set(volume, "SnapshotId")
        require(from_snapshot, "SnapshotId is missing, this is required when specifying BlockDeviceMappings.", place)


class LaunchConfiguration(ResourceType, LikeServer):
    """Settings for groups of the same stack; nothing is created in the cloud."""

    name = "AWS::AutoScaling::LaunchConfiguration"
    description = "What the servers of a group are made from."
    name_limit = 255
    properties = {
        "ImageId": text("Image, by name or id.", constraints=(custom("glance.image"),)),
        "InstanceType": text("Flavor, by name or id.", constraints=(custom("nova.flavor"),)),
        "InstanceId": text(
            "Server that gives image, flavor, key pair and security groups, where they are left out.",
            constraints=(custom("nova.server"),),
        ),
        "KeyName": text("Key pair that may log in.", constraints=(custom("nova.keypair"),)),
        "UserData": text("Script or data for the first boot.", blank=True),
        "SecurityGroups": listing("Security groups of the servers."),
        "KernelId": text("Kernel of the image.", implemented=False),
        "RamDiskId": text("Initial disk of the kernel.", implemented=False),
        "BlockDeviceMappings": BLOCK_DEVICES,
        "NovaSchedulerHints": HINTS,
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        for name in NEEDED if not is_set(values, "InstanceId") else ():
            require(is_set(values, name), f"If without InstanceId, {name} is required", path)
        check_devices(values, path)

    def settings(self, thing: Thing) -> dict[str, Any]:
        """Return the properties, with missing ones filled in from the model server."""
        values = self.complete(thing.properties)
        copied = {name: thing.seen.properties.get(name) for name in COPIED.values() if not is_set(values, name)}
        return {**values, **{name: value for name, value in copied.items() if value}}

    def reference(self, thing: Thing) -> Any:
        """Its physical name."""
        return thing.physical_name if thing.handle else thing.name


TYPES: list[type[ResourceType]] = [LaunchConfiguration]
