"""DNS."""

from homeostat.kinds.base import INTEGER, LIST, MAP, TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

PENDING = frozenset({"pending"})
"""Not yet on the name servers: the status in each answer to a creation or an update, which shows the stored values."""
STATUSES = Statuses(ready=frozenset({"active"}), busy=PENDING, broken={"error": Remedy.UPDATE}, stored=PENDING)

DNS_ZONE = Kind(
    name="dns_zone",
    description="A DNS zone.",
    fixed={
        "name": TEXT,
        "type": TEXT,
        "attributes": MAP,
    },
    mutable={
        "email": TEXT,
        "ttl": INTEGER,
        "description": TEXT,
        "masters": LIST,
    },
    reported={
        "status": TEXT,
        "serial": TEXT,
    },
    statuses=STATUSES,
)
DNS_RECORD_SET = Kind(
    name="dns_record_set",
    description="The records of one type under one name of a DNS zone.",
    fixed={
        "name": TEXT,
        "type": TEXT,
        "zone_id": TEXT,
    },
    mutable={
        "records": LIST,
        "ttl": INTEGER,
        "description": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=STATUSES,
)

KINDS = (
    DNS_ZONE,
    DNS_RECORD_SET,
)
