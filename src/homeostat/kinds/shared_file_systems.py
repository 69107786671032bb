"""Shared file systems."""

from homeostat.kinds.base import LIST, TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

KINDS = (
    Kind(
        "share",
        "A file system that several servers may mount.",
        reported={
            "status": TEXT,
            "export_locations": LIST,
            "host": TEXT,
            "availability_zone": TEXT,
            "share_server_id": TEXT,
            "created_at": TEXT,
            "project_id": TEXT,
        },
        statuses=Statuses(
            ready=frozenset({"available", "inactive"}),
            busy=frozenset({"creating", "creating_from_snapshot", "extending", "migrating", "reverting", "shrinking"}),
            broken={"error": Remedy.MANUAL, "error_deleting": Remedy.MANUAL},
        ),
    ),
    Kind(
        "share_network",
        "The network that servers of shares are on.",
        reported={"segmentation_id": TEXT, "cidr": TEXT, "ip_version": TEXT, "network_type": TEXT},
    ),
    Kind("share_type", "A type of shares."),
    Kind(
        "share_security_service",
        "A directory service that authenticates the users of shares.",
        notes=("Its password is never returned.",),
    ),
)
