"""Databases."""

from homeostat.kinds.base import TEXT, Kind, Statuses, listing
from homeostat.model.observed import Remedy

STATUSES = Statuses(
    ready=frozenset({"active", "healthy"}),
    busy=frozenset(
        {"backup", "build", "building", "new", "promote", "reboot", "resize", "restart_required", "upgrade"}
    ),
    broken={"blocked": Remedy.MANUAL, "error": Remedy.MANUAL, "failed": Remedy.MANUAL, "shutdown": Remedy.MANUAL},
)
"""A failed database may hold data, so it is left to the user (CV13)."""

KINDS = (
    Kind(
        "database_instance",
        "A server of databases.",
        reported={"status": TEXT, "hostname": TEXT, "href": TEXT},
        statuses=STATUSES,
    ),
    Kind(
        "database_cluster",
        "Servers of one database.",
        extra_fixed={"instances": listing("[{id, status, …}]")},
        reported={"status": TEXT, "ip": listing("[address]")},
        statuses=STATUSES,
    ),
)
