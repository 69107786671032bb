"""Images."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

IMAGE = Kind(
    name="image",
    description="An image that the cloud downloads.",
    fixed={
        "name": TEXT,
        "min_disk": INTEGER,
        "min_ram": INTEGER,
        "disk_format": TEXT,
        "container_format": TEXT,
        "location": TEXT,
        "id": TEXT,
    },
    mutable={
        "protected": BOOLEAN,
        "extra_properties": MAP,
        "visibility": TEXT,
        "active": BOOLEAN,
        "tags": LIST,
        "architecture": TEXT,
        "kernel_id": TEXT,
        "os_distro": TEXT,
        "os_version": TEXT,
        "owner": TEXT,
        "ramdisk_id": TEXT,
        "members": LIST,
    },
    reported={
        "status": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"active", "deactivated"}),
        busy=frozenset({"importing", "pending_delete", "queued", "saving", "uploading"}),
        broken={"deleted": Remedy.RECREATE, "error": Remedy.RECREATE, "killed": Remedy.RECREATE},
    ),
    id_field="id",
)

KINDS = (IMAGE,)
