"""Databases."""

from homeostat.kinds.base import INTEGER, LIST, TEXT, Kind, Statuses, listing
from homeostat.model.observed import Remedy

STATUSES = Statuses(
    ready=frozenset({"active", "healthy"}),
    busy=frozenset(
        {"backup", "build", "building", "new", "promote", "reboot", "resize", "restart_required", "upgrade"}
    ),
    broken={"blocked": Remedy.MANUAL, "error": Remedy.MANUAL, "failed": Remedy.MANUAL, "shutdown": Remedy.MANUAL},
)
"""A failed database may hold data, so it is left to the user (CV13)."""


DATABASE_INSTANCE = Kind(
    name="database_instance",
    description="A server of databases.",
    fixed={
        "networks": LIST,
        "datastore_type": TEXT,
        "datastore_version": TEXT,
        "availability_zone": TEXT,
        "restore_point": TEXT,
        "replica_of": TEXT,
        "replica_count": INTEGER,
    },
    mutable={
        "name": TEXT,
        "flavor_id": TEXT,
        "size": INTEGER,
        "databases": LIST,
        "users": LIST,
    },
    reported={
        "status": TEXT,
        "hostname": TEXT,
        "href": TEXT,
    },
    statuses=STATUSES,
)
DATABASE_CLUSTER = Kind(
    name="database_cluster",
    description="Servers of one database.",
    fixed={
        "name": TEXT,
        "datastore_type": TEXT,
        "datastore_version": TEXT,
        "instances": listing("[{id, status, …}]"),
    },
    reported={
        "status": TEXT,
        "ip": listing("[address]"),
    },
    statuses=STATUSES,
)

KINDS = (
    DATABASE_INSTANCE,
    DATABASE_CLUSTER,
)
