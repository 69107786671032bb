"""Block storage: volumes and their types."""

from homeostat.kinds.base import BOOLEAN, LIST, TEXT, Kind, Statuses, snapshot_kind
from homeostat.model.observed import Remedy

VOLUME = Kind(
    "volume",
    "A volume: a disk that outlives servers.",
    reported={"status": TEXT, "bootable": BOOLEAN, "attachments": LIST, "created_at": TEXT},
    statuses=Statuses(
        ready=frozenset({"available", "in-use"}),
        busy=frozenset(
            {
                "attaching",
                "backing-up",
                "creating",
                "deleting",
                "detaching",
                "downloading",
                "extending",
                "maintenance",
                "reserved",
                "restoring-backup",
                "retyping",
                "uploading",
            }
        ),
        broken={"error": Remedy.RECREATE},
    ),
    operations={"snapshot": "See `Snapshots` of the port."},
    snapshot_field="backup_id",
    notes=(
        (
            "A volume whose `backup_id` is the id of a snapshot gets its data, whatever other source it has, also"
            " when an update changes `backup_id` or names it as changed."
        ),
    ),
)

KINDS = (
    VOLUME,
    Kind(
        "volume_attachment",
        "A volume attached to a server.",
        reported={"status": TEXT},
        statuses=Statuses(
            ready=frozenset({"attached", "in-use"}),
            busy=frozenset({"attaching", "deleting", "detaching", "reserved"}),
            broken={"detached": Remedy.RECREATE, "error": Remedy.RECREATE, "error_attaching": Remedy.RECREATE},
        ),
    ),
    Kind("volume_type", "A type of volumes that users may choose."),
    Kind("volume_type_encryption", "How volumes of a type are encrypted."),
    Kind("volume_qos_specs", "QoS specification: how fast volumes may be."),
    Kind("volume_qos_association", "The volume types that a QoS specification applies to."),
    Kind(
        "volume_quota",
        "The block storage quota of a project.",
        notes=("Deleting one restores the defaults of the cloud.",),
    ),
    snapshot_kind(VOLUME),
)
