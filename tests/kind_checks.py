"""Whether objects fit the definitions of their kinds (`homeostat.kinds`)."""

from collections.abc import Iterable, Mapping
from typing import Any

from homeostat.kinds.base import FieldType
from homeostat.kinds.registry import KINDS
from homeostat.resources.base import DELETING
from homeostat.resources.kind_fields import fields_of

TYPES: Mapping[FieldType, tuple[type, ...]] = {
    FieldType.TEXT: (str,),
    FieldType.INTEGER: (int,),
    FieldType.NUMBER: (int, float),
    FieldType.BOOLEAN: (bool,),
    FieldType.LIST: (list, tuple),
    FieldType.MAP: (dict,),
}


def misfits(kind: str, properties: Mapping[str, Any]) -> list[str]:
    """Return what in an observed object contradicts the definition of its kind."""
    fields = fields_of(kind).all
    found = [
        f"{name} is {value!r}, not {fields[name].type.value}"
        for name, value in properties.items()
        if name in fields and not _fits(fields[name].type, value)
    ]
    status = properties.get("status")
    if status is not None and status not in KINDS[kind].statuses.words | {DELETING}:
        found.append(f"the status {status!r} has no meaning")
    return found


def undefined(kind: str, names: Iterable[str]) -> list[str]:
    """Return the names that are no fields which a creation may set."""
    defined = fields_of(kind)
    return sorted(set(names) - defined.fixed.keys() - defined.mutable.keys())


def _fits(type_: FieldType, value: Any) -> bool:
    if value is None or type_ is FieldType.ANY:
        return True
    if isinstance(value, bool) and type_ is not FieldType.BOOLEAN:
        return False
    return isinstance(value, TYPES[type_])
