"""Shared file systems."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

SHARE = Kind(
    name="share",
    description="A file system that several servers may mount.",
    fixed={
        "share_proto": TEXT,
        "size": INTEGER,
        "snapshot_id": TEXT,
        "share_network_id": TEXT,
        "share_type": TEXT,
    },
    mutable={
        "name": TEXT,
        "is_public": BOOLEAN,
        "access_rules": LIST,
        "metadata": MAP,
        "description": TEXT,
    },
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
)
SHARE_NETWORK = Kind(
    name="share_network",
    description="The network that servers of shares are on.",
    mutable={
        "name": TEXT,
        "security_services": LIST,
        "neutron_net_id": TEXT,
        "neutron_subnet_id": TEXT,
        "description": TEXT,
        "nova_network": TEXT,
    },
    reported={
        "segmentation_id": TEXT,
        "cidr": TEXT,
        "ip_version": TEXT,
        "network_type": TEXT,
    },
)
SHARE_TYPE = Kind(
    name="share_type",
    description="A type of shares.",
    fixed={
        "name": TEXT,
        "is_public": BOOLEAN,
        "driver_handles_share_servers": BOOLEAN,
        "snapshot_support": BOOLEAN,
    },
    mutable={
        "extra_specs": MAP,
    },
)
SHARE_SECURITY_SERVICE = Kind(
    name="share_security_service",
    description="A directory service that authenticates the users of shares.",
    fixed={
        "type": TEXT,
    },
    mutable={
        "name": TEXT,
        "dns_ip": TEXT,
        "server": TEXT,
        "domain": TEXT,
        "user": TEXT,
        "password": TEXT,
        "description": TEXT,
    },
    notes=("Its password is never returned.",),
)

KINDS = (
    SHARE,
    SHARE_NETWORK,
    SHARE_TYPE,
    SHARE_SECURITY_SERVICE,
)
