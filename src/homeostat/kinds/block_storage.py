"""Block storage: volumes and their types."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses, snapshot_kind
from homeostat.model.observed import Remedy

VOLUME = Kind(
    name="volume",
    description="A volume: a disk that outlives servers.",
    fixed={
        "availability_zone": TEXT,
        "snapshot_id": TEXT,
        "image": TEXT,
        "source_volid": TEXT,
        "scheduler_hints": MAP,
        "multiattach": BOOLEAN,
    },
    mutable={
        "name": TEXT,
        "size": INTEGER,
        "metadata": MAP,
        "backup_id": TEXT,
        "description": TEXT,
        "volume_type": TEXT,
        "read_only": BOOLEAN,
    },
    reported={
        "status": TEXT,
        "bootable": BOOLEAN,
        "attachments": LIST,
        "created_at": TEXT,
    },
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
VOLUME_ATTACHMENT = Kind(
    name="volume_attachment",
    description="A volume attached to a server.",
    mutable={
        "instance_uuid": TEXT,
        "volume_id": TEXT,
        "mountpoint": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"attached", "in-use"}),
        busy=frozenset({"attaching", "deleting", "detaching", "reserved"}),
        broken={"detached": Remedy.RECREATE, "error": Remedy.RECREATE, "error_attaching": Remedy.RECREATE},
    ),
)
VOLUME_TYPE = Kind(
    name="volume_type",
    description="A type of volumes that users may choose.",
    mutable={
        "name": TEXT,
        "is_public": BOOLEAN,
        "projects": LIST,
        "metadata": MAP,
        "description": TEXT,
    },
)
VOLUME_TYPE_ENCRYPTION = Kind(
    name="volume_type_encryption",
    description="How volumes of a type are encrypted.",
    fixed={
        "volume_type": TEXT,
    },
    mutable={
        "provider": TEXT,
        "control_location": TEXT,
        "cipher": TEXT,
        "key_size": INTEGER,
    },
)
VOLUME_QOS_SPECS = Kind(
    name="volume_qos_specs",
    description="QoS specification: how fast volumes may be.",
    fixed={
        "name": TEXT,
    },
    mutable={
        "specs": MAP,
    },
)
VOLUME_QOS_ASSOCIATION = Kind(
    name="volume_qos_association",
    description="The volume types that a QoS specification applies to.",
    fixed={
        "qos_specs": TEXT,
    },
    mutable={
        "volume_types": LIST,
    },
)
VOLUME_QUOTA = Kind(
    name="volume_quota",
    description="The block storage quota of a project.",
    fixed={
        "project": TEXT,
    },
    mutable={
        "volumes": INTEGER,
        "gigabytes": INTEGER,
        "backups": INTEGER,
        "backup_gigabytes": INTEGER,
        "snapshots": INTEGER,
    },
    notes=("Deleting one restores the defaults of the cloud.",),
)
VOLUME_SNAPSHOT = snapshot_kind(VOLUME)

KINDS = (
    VOLUME,
    VOLUME_ATTACHMENT,
    VOLUME_TYPE,
    VOLUME_TYPE_ENCRYPTION,
    VOLUME_QOS_SPECS,
    VOLUME_QOS_ASSOCIATION,
    VOLUME_QUOTA,
    VOLUME_SNAPSHOT,
)
