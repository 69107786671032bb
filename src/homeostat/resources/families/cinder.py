"""Types of block storage: volumes and their attachments."""

import json
from typing import Any

from homeostat.model.errors import Terminal
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import at_most_one, is_set, require
from homeostat.resources.schema import (
    Attribute,
    ValueType,
    between,
    boolean,
    custom,
    integer,
    mapping,
    text,
)


class VolumeKind(ResourceType):
    """Base of the types of volumes, whatever the names of their properties."""

    kind = "volume"
    can_snapshot = True

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge as other types do, but leave a failed attached volume to the user: it may hold data (CV13)."""
        verdict = super().fitness(thing, now)
        if verdict.condition is Condition.BROKEN and thing.seen.properties.get("attachments"):
            return Verdict(Condition.BROKEN, verdict.reason, Remedy.MANUAL)
        return verdict


class Volume(VolumeKind):
    name = "OS::Cinder::Volume"
    description = "A volume: a disk that outlives servers."
    properties = {
        "availability_zone": text("Availability zone to be in."),
        "size": integer("Size in GiB.", update=True, same=comparison.at_least, constraints=(between(1),)),
        "snapshot_id": text("Snapshot to start from.", constraints=(custom("cinder.snapshot"),)),
        "backup_id": text("Backup to start from.", update=True, drift=False, constraints=(custom("cinder.backup"),)),
        "name": text("Name of the volume.", update=True),
        "description": text("Description of the volume.", update=True),
        "volume_type": text(
            "Type of the volume, by name or id.",
            update=True,
            drift=False,
            constraints=(custom("cinder.vtype"),),
        ),
        "metadata": mapping("Metadata of the volume in the cloud.", default={}, update=True),
        "imageRef": text("Image; use image.", hidden=True),
        "image": text("Image to start from.", constraints=(custom("glance.image"),)),
        "source_volid": text("Volume to start from.", constraints=(custom("cinder.volume"),)),
        "scheduler_hints": mapping("Hints to the cloud's scheduler."),
        "read_only": boolean("It may not be written to.", update=True),
        "multiattach": boolean("Several servers may use it.", default=False, hidden=True),
    }
    attributes = {
        "availability_zone": Attribute("Availability zone it is in."),
        "size": Attribute("Size in GiB."),
        "snapshot_id": Attribute("Snapshot it started from."),
        "display_name": Attribute("Name of the volume.", field="name"),
        "display_description": Attribute("Description of the volume.", field="description"),
        "volume_type": Attribute("Type of the volume."),
        "metadata": Attribute("Its metadata as JSON text."),
        "source_volid": Attribute("Volume it started from."),
        "status": Attribute("Status of the volume.", live=True),
        "created_at": Attribute("When it was created."),
        "bootable": Attribute("Whether servers can boot from it."),
        "metadata_values": Attribute("Its metadata.", ValueType.MAP, field="metadata"),
        "encrypted": Attribute("Whether it is encrypted."),
        "attachments": Attribute("What uses it, as JSON text.", live=True, deprecated=True),
        "attachments_list": Attribute("What uses it.", ValueType.LIST, live=True, field="attachments"),
        "multiattach": Attribute("Whether several servers may use it.", ValueType.BOOLEAN),
    }
    deprecated_properties = {"imageRef": "image"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if is_set(values, "backup_id"):
            return
        at_most_one(values, path, "image", "source_volid", "snapshot_id")
        sized = any(is_set(values, name) for name in ("size", "source_volid", "snapshot_id"))
        require(sized, "size is needed unless source_volid or snapshot_id gives one", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        if not spec.get("multiattach"):
            spec.pop("multiattach", None)
        return spec

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Return why a change needs a replacement; a smaller size does only together with a new backup.

        Raises:
            Terminal: A smaller size without new data: a replacement would lose the data without consent.
        """
        reason = super().replacement_reason(before, after, changed)
        if not reason and {"size", "backup_id"} <= changed and after["backup_id"]:
            return "a smaller volume is made from the backup" if (after["size"] or 0) < (before["size"] or 0) else ""
        if not reason and "size" in changed and (after["size"] or 0) < (before["size"] or 0):
            raise Terminal(
                f"Shrinking a volume is not supported (from {before['size']} to {after['size']} GiB): "
                "keep the size, or make a new volume under another name"
            )
        return reason

    def snapshot_property(self, values: Props) -> str:
        return "backup_id"

    def attribute(self, thing: Thing, name: str) -> Any:
        value = super().attribute(thing, name)
        if name in ("metadata", "attachments"):
            return json.dumps(value or ({} if name == "metadata" else []))
        declared = self.attributes.get(name)
        if value is None or declared is None or declared.kind is not ValueType.STRING:
            return value
        return str(value)


class VolumeAttachment(ResourceType):
    name = "OS::Cinder::VolumeAttachment"
    kind = "volume_attachment"
    description = "Attaches a volume to a server."
    properties = {
        "instance_uuid": text("The server.", required=True, update=True, same=comparison.reference),
        "volume_id": text(
            "The volume.",
            required=True,
            update=True,
            same=comparison.reference,
            constraints=(custom("cinder.volume"),),
        ),
        "mountpoint": text("Name of the device in the server; it may choose another.", update=True, drift=False),
    }


TYPES: list[type[ResourceType]] = [Volume, VolumeAttachment]
