"""Images."""

from homeostat.kinds.base import TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

KINDS = (
    Kind(
        "image",
        "An image that the cloud downloads.",
        reported={"status": TEXT},
        statuses=Statuses(
            ready=frozenset({"active", "deactivated"}),
            busy=frozenset({"importing", "pending_delete", "queued", "saving", "uploading"}),
            broken={"deleted": Remedy.RECREATE, "error": Remedy.RECREATE, "killed": Remedy.RECREATE},
        ),
        id_field="id",
    ),
)
