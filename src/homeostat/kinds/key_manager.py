"""Key management: secrets and certificates."""

from homeostat.kinds.base import INTEGER, LIST, TEXT, Field, FieldType, Kind, Statuses, mapping
from homeostat.model.observed import Remedy

STATUSES = Statuses(ready=frozenset({"active"}), busy=frozenset({"pending"}), broken={"error": Remedy.RECREATE})

SECRET = Kind(
    name="secret",
    description="A secret.",
    fixed={
        "name": TEXT,
        "payload": TEXT,
        "secret_type": TEXT,
        "payload_content_type": TEXT,
        "payload_content_encoding": TEXT,
        "bit_length": INTEGER,
        "mode": TEXT,
        "expiration": TEXT,
        "algorithm": TEXT,
    },
    reported={
        "status": TEXT,
        "secret_ref": TEXT,
    },
    statuses=STATUSES,
)
SECRET_ORDER = Kind(
    name="secret_order",
    description="An order to make a key or a certificate; what it has made, and nothing else uses, is deleted with it.",
    fixed={
        "name": TEXT,
        "bit_length": INTEGER,
        "type": Field(FieldType.TEXT, "key|asymmetric|certificate"),
        "algorithm": TEXT,
        "payload_content_type": TEXT,
        "request_type": TEXT,
        "subject_dn": TEXT,
        "source_container_ref": TEXT,
        "ca_id": TEXT,
        "profile": TEXT,
        "request_data": TEXT,
        "pass_phrase": TEXT,
        "mode": TEXT,
        "expiration": TEXT,
    },
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
)
SECRET_CONTAINER = Kind(
    name="secret_container",
    description="A container of any secrets.",
    fixed={
        "name": TEXT,
        "type": Field(FieldType.TEXT, "generic|certificate|rsa"),
        "secret_refs": mapping("{name: ref}"),
    },
    reported={
        "status": TEXT,
        "container_ref": TEXT,
        "consumers": LIST,
    },
    statuses=STATUSES,
)

KINDS = (
    SECRET,
    SECRET_ORDER,
    SECRET_CONTAINER,
)
