"""Object storage."""

from homeostat.kinds.base import BOOLEAN, INTEGER, MAP, TEXT, Kind

CONTAINER = Kind(
    name="container",
    description="A container of objects.",
    fixed={
        "name": TEXT,
        "metadata": MAP,
        "account_metadata": MAP,
        "purge": BOOLEAN,
        "read_acl": TEXT,
        "write_acl": TEXT,
    },
    reported={
        "url": TEXT,
        "object_count": INTEGER,
        "bytes_used": INTEGER,
        "headers": MAP,
    },
    id_field="name",
    notes=(("With `purge` its objects are deleted with it; otherwise one that is not empty is not deleted."),),
)

KINDS = (CONTAINER,)
