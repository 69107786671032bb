"""DNS."""

from homeostat.kinds.base import TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

PENDING = frozenset({"pending"})
"""Not yet on the name servers: the status in each answer to a creation or an update, which shows the stored values."""
STATUSES = Statuses(ready=frozenset({"active"}), busy=PENDING, broken={"error": Remedy.UPDATE}, stored=PENDING)

KINDS = (
    Kind("dns_zone", "A DNS zone.", reported={"status": TEXT, "serial": TEXT}, statuses=STATUSES),
    Kind(
        "dns_record_set",
        "The records of one type under one name of a DNS zone.",
        reported={"status": TEXT},
        statuses=STATUSES,
    ),
)
