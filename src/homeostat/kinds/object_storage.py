"""Object storage."""

from homeostat.kinds.base import INTEGER, MAP, TEXT, Kind

KINDS = (
    Kind(
        "container",
        "A container of objects.",
        reported={"url": TEXT, "object_count": INTEGER, "bytes_used": INTEGER, "headers": MAP},
        id_field="name",
        notes=("With `purge` its objects are deleted with it; otherwise one that is not empty is not deleted.",),
    ),
)
