"""The fields of each kind of cloud objects: the properties of its resource types, and the extra fields in `kinds`.

A property of a built-in type is a field of its kind under the name in `ResourceType.renamed`, unless the type lists the
property in `unsent`. Types of plug-ins add no fields: adapters of the service know only the built-in types.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from homeostat.kinds.base import ANY, BOOLEAN, INTEGER, LIST, MAP, NUMBER, TEXT, Field
from homeostat.kinds.registry import KINDS
from homeostat.resources.custom_constraints import CUSTOM
from homeostat.resources.custom_constraints import KINDS as CONSTRAINED
from homeostat.resources.families import FAMILIES
from homeostat.resources.schema import Property, ValueType

_FIELD: Mapping[ValueType, Field] = {
    ValueType.STRING: TEXT,
    ValueType.INTEGER: INTEGER,
    ValueType.NUMBER: NUMBER,
    ValueType.BOOLEAN: BOOLEAN,
    ValueType.MAP: MAP,
    ValueType.LIST: LIST,
    ValueType.ANY: ANY,
}


@dataclass(frozen=True, slots=True)
class KindFields:
    """The fields of a kind by name.

    Attributes:
        fixed: Fields of a creation that never change.
        mutable: Fields of a creation that an update may change in place.
        reported: Fields set by the cloud alone.
    """

    fixed: Mapping[str, Field]
    mutable: Mapping[str, Field]
    reported: Mapping[str, Field]

    @property
    def all(self) -> Mapping[str, Field]:
        """All fields, with the id."""
        return {"id": TEXT, **self.fixed, **self.mutable, **self.reported}


@cache
def fields_of(kind: str) -> KindFields:
    """Return the fields of a kind, in the order of the properties of its types."""
    extra = KINDS[kind]
    properties = _properties()[kind]
    fields = {name: _FIELD[same_field[0].kind] for name, same_field in properties.items()}
    fields |= {**extra.extra_fixed, **extra.extra_mutable}
    # A field that one type changes in place, and another one only sets, can change.
    changing = {name for name, same_field in properties.items() if any(prop.update for prop in same_field)}
    mutable = changing - extra.extra_fixed.keys() | extra.extra_mutable.keys()
    return KindFields(
        fixed={name: field for name, field in fields.items() if name not in mutable},
        mutable={name: field for name, field in fields.items() if name in mutable},
        reported=extra.reported,
    )


@cache
def links_of(kind: str) -> Mapping[str, str]:
    """Return field -> kind of the objects that the field names, as the constraints of its properties say."""
    return {
        field: CONSTRAINED[name].kind
        for field, same_field in _properties().get(kind, {}).items()
        for prop in same_field
        for constraint in (*prop.constraints, *(prop.items.constraints if prop.items is not None else ()))
        if (name := constraint.wire.get(CUSTOM, "")) in CONSTRAINED
    }


@cache
def _properties() -> Mapping[str, Mapping[str, list[Property]]]:
    """Return kind -> field -> the properties that set it, those of the first type first."""
    properties: dict[str, dict[str, list[Property]]] = {kind: {} for kind in KINDS}
    for type_class in (type_class for family in FAMILIES for type_class in family.TYPES if type_class.kind in KINDS):
        unsent = {*type_class.unsent, *type_class.deprecated_properties}
        for name, prop in type_class.properties.items():
            field = type_class.renamed.get(name, name)
            # Names of CloudFormation begin with a capital: no service has them, and `spec` translates them.
            if prop.implemented and field[0].islower() and name not in unsent:
                properties[type_class.kind].setdefault(field, []).append(prop)
    return properties
