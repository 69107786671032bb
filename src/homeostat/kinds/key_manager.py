"""Key management: secrets and certificates."""

from homeostat.kinds.base import LIST, TEXT, Field, FieldType, Kind, Statuses, mapping
from homeostat.model.observed import Remedy

STATUSES = Statuses(ready=frozenset({"active"}), busy=frozenset({"pending"}), broken={"error": Remedy.RECREATE})

KINDS = (
    Kind("secret", "A secret.", reported={"status": TEXT, "secret_ref": TEXT}, statuses=STATUSES),
    Kind(
        "secret_order",
        "An order to make a key or a certificate; what it has made, and nothing else uses, is deleted with it.",
        extra_fixed={"type": Field(FieldType.TEXT, "key|asymmetric|certificate")},
        reported={
            "status": TEXT,
            "order_ref": TEXT,
            "secret_ref": TEXT,
            "container_ref": TEXT,
            "public_key": TEXT,
            "private_key": TEXT,
            "certificate": TEXT,
            "intermediates": TEXT,
        },
        statuses=STATUSES,
    ),
    Kind(
        "secret_container",
        "A container of any secrets.",
        extra_fixed={"type": Field(FieldType.TEXT, "generic|certificate|rsa"), "secret_refs": mapping("{name: ref}")},
        reported={"status": TEXT, "container_ref": TEXT, "consumers": LIST},
        statuses=STATUSES,
    ),
)
