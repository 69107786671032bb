"""Launch configurations: what the servers of a group are made from, and their block devices."""

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


def refuse_copying(values: Props, path: tuple[str | int, ...]) -> None:
    require(
        not is_set(values, "InstanceId"),
        "making servers like another one is not supported: name an image and a type in a launch configuration",
        (*path, "InstanceId"),
    )


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
    for index, each in enumerate(devices if isinstance(devices, list) else ()):
        if each is UNKNOWN:
            continue
        place = (*path, "BlockDeviceMappings", index)
        volume = each.get("Ebs")
        require(is_set(each, "Ebs"), "Ebs is missing, this is required", place)
        made = not isinstance(volume, Mapping) or is_set(volume, "SnapshotId")
        require(made, "SnapshotId is missing, this is required when specifying BlockDeviceMappings.", place)


class LaunchConfiguration(ResourceType):
    """Settings that groups of the same stack read; it creates nothing."""

    name = "AWS::AutoScaling::LaunchConfiguration"
    description = "What the servers of a group are made from."
    name_limit = 255
    properties = {
        "ImageId": text("Image, by name or id.", constraints=(custom("glance.image"),)),
        "InstanceType": text("Flavor, by name or id.", constraints=(custom("nova.flavor"),)),
        "InstanceId": text("Server to make members like.", constraints=(custom("nova.server"),)),
        "KeyName": text("Key pair that may log in.", constraints=(custom("nova.keypair"),)),
        "UserData": text("Script or data for the first boot."),
        "SecurityGroups": listing("Security groups of the servers."),
        "KernelId": text("Kernel of the image.", implemented=False),
        "RamDiskId": text("Initial disk of the kernel.", implemented=False),
        "BlockDeviceMappings": BLOCK_DEVICES,
        "NovaSchedulerHints": HINTS,
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        refuse_copying(values, path)
        for name in ("ImageId", "InstanceType"):
            require(is_set(values, name), f"If without InstanceId, {name} is required", path)
        check_devices(values, path)

    def reference(self, thing: Thing) -> Any:
        """Its physical name."""
        return thing.physical_name if thing.handle else thing.name


TYPES: list[type[ResourceType]] = [LaunchConfiguration]
