"""Properties of resources: their schemas, and their values as handlers read them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from homeostat.plugins.constraints import AllowedPattern, AllowedValues, Constraint, Length, Range
from homeostat.plugins.support import HIDDEN, SupportStatus
from homeostat.resources import schema as native
from homeostat.resources.schema import Property, ValueType


class Schema:
    """Schema of a property.

    Args:
        data_type: A member of `TYPES`.
        description: The description for users.
        default: The default, or None.
        schema: For a Map, name -> Schema; for a List, the Schema of its items.
        required: Whether a template must set a value.
        constraints: The constraints on its value.
        implemented: If False, every value is refused.
        update_allowed: Whether the property can change in place; otherwise the resource is replaced.
        immutable: Whether a change is refused.
        allow_conversion: Whether a String accepts maps and lists, and receives them as JSON.
    """

    INTEGER, NUMBER, STRING, BOOLEAN, MAP, LIST, ANY = TYPES = (
        "Integer",
        "Number",
        "String",
        "Boolean",
        "Map",
        "List",
        "Any",
    )

    def __init__(
        self,
        data_type: str,
        description: str | None = None,
        default: Any = None,
        schema: Any = None,
        required: bool = False,
        constraints: Any = None,
        implemented: bool = True,
        update_allowed: bool = False,
        immutable: bool = False,
        support_status: SupportStatus | None = None,
        allow_conversion: bool = False,
    ) -> None:
        if data_type not in self.TYPES:
            raise ValueError(f"{data_type!r} is no type of a property: use one of {', '.join(self.TYPES)}")
        if update_allowed and immutable:
            raise ValueError("a property cannot both change in place and be immutable")
        self.type = data_type
        self.description = description
        self.default = default
        self.schema = schema
        self.required = required
        self.constraints: list[Constraint] = list(constraints or ())
        self.implemented = implemented
        self.update_allowed = update_allowed
        self.immutable = immutable
        self.support_status = support_status or SupportStatus()
        self.allow_conversion = allow_conversion

    def native(self) -> Property:
        """Return the schema in the form of resource types."""
        kind = ValueType(self.type.lower())
        rules = tuple(constraint.constraint() for constraint in self.constraints)
        return Property(
            kind,
            self.description or "",
            self.default,
            self.required and self.default is None,
            self.update_allowed,
            self.immutable,
            rules if self.implemented else (*rules, NOT_IMPLEMENTED),
            {name: inner.native() for name, inner in self.schema.items()} if self._is_map else None,
            self.schema.native() if kind is ValueType.LIST and self.schema is not None else None,
            not self.implemented or self.support_status.status == HIDDEN,
        )

    @property
    def _is_map(self) -> bool:
        return self.type == self.MAP and self.schema is not None

    def convert(self, value: Any) -> Any:
        """Convert maps and lists to JSON texts if the schema allows the conversion."""
        if self.type == self.STRING and self.allow_conversion and isinstance(value, dict | list):
            return json.dumps(value)
        if self._is_map and isinstance(value, Mapping):
            return {
                name: self.schema[name].convert(item) if name in self.schema else item for name, item in value.items()
            }
        if self.type == self.LIST and self.schema is not None and isinstance(value, list):
            return [self.schema.convert(item) for item in value]
        return value


NOT_IMPLEMENTED = native.Constraint({}, lambda _value: "Property is not implemented yet; leave it out")


_NATIVE: dict[int, tuple[Mapping[str, Schema], dict[str, Property]]] = {}
"""Converted schemas by the id of the map; the map is stored as well, so that no other object gets its id."""


def native_schema(schema: Mapping[str, Schema]) -> dict[str, Property]:
    """Return a schema in the form of resource types; the same object for the same map."""
    known = _NATIVE.get(id(schema))
    if known is None:
        known = _NATIVE[id(schema)] = (schema, {name: entry.native() for name, entry in schema.items()})
    return known[1]


KEYS_OF_MAPS = {
    "Description": "description",
    "Default": "default",
    "Required": "required",
    "Implemented": "implemented",
    "UpdateAllowed": "update_allowed",
    "Immutable": "immutable",
}
"""The keys of schemas that are given as maps -> the arguments of `Schema`."""


def schemata(schemas: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the schemas by name; each may be given as a map (`{"Type": "String", "Required": True}`).

    Raises:
        ValueError: A schema contradicts itself, or a map has unknown keys.
    """
    return {name: _schema(entry) for name, entry in schemas.items()}


def _schema(schema: Any) -> Schema:
    if isinstance(schema, Schema):
        return schema
    remaining = dict(schema)
    kind, inner = remaining.pop("Type", None), remaining.pop("Schema", None)
    least, most = remaining.pop("MinValue", None), remaining.pop("MaxValue", None)
    shortest, longest = remaining.pop("MinLength", None), remaining.pop("MaxLength", None)
    rules: list[Constraint] = []
    if (least, most) != (None, None):
        rules.append(Range(_number(least), _number(most)))
    if (shortest, longest) != (None, None):
        rules.append(Length(_number(shortest), _number(longest)))
    if "AllowedValues" in remaining:
        rules.append(AllowedValues(remaining.pop("AllowedValues")))
    if "AllowedPattern" in remaining:
        rules.append(AllowedPattern(remaining.pop("AllowedPattern")))
    unknown = sorted(remaining.keys() - KEYS_OF_MAPS.keys())
    if unknown:
        raise ValueError(f"a schema has the unknown keys {', '.join(unknown)}")
    if inner is not None:
        inner = schemata(inner) if kind == Schema.MAP else _schema(inner)
    return Schema(
        kind, schema=inner, constraints=rules, **{KEYS_OF_MAPS[key]: argument for key, argument in remaining.items()}
    )


def _number(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float) else float(value) if "." in value else int(value)


class Described:
    """A property as described by its schema; `path` is its name, for errors."""

    def __init__(self, schema: Schema, name: str) -> None:
        self.schema, self.name, self.path = schema, name, name

    def type(self) -> str:
        return self.schema.type

    def required(self) -> bool:
        return self.schema.required

    def implemented(self) -> bool:
        return self.schema.implemented

    def update_allowed(self) -> bool:
        return self.schema.update_allowed

    def immutable(self) -> bool:
        return self.schema.immutable

    def has_default(self) -> bool:
        return self.schema.default is not None

    def default(self) -> Any:
        return self.schema.default

    def support_status(self) -> SupportStatus:
        return self.schema.support_status


class Properties(Mapping[str, Any]):
    """Values of properties by name: a property without a value has its default or None.

    Only names of the schema can be read.

    Attributes:
        data: The values set in the template.
        props: Each property as described by its schema, by name.
    """

    def __init__(self, schema: Mapping[str, Schema], data: Mapping[str, Any], *_: Any, **__: Any) -> None:
        self.schema = schema
        self.props = {name: Described(prop, name) for name, prop in schema.items()}
        self.data = dict(data)
        self._values = native.with_defaults(native_schema(schema), self.data)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"Invalid Property {name}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get_user_value(self, name: str) -> Any:
        """Return the value set in the template; None if not set."""
        self[name]  # raises KeyError for a name unknown to the schema
        return self.data.get(name)

    def validate(self, *_: Any, **__: Any) -> None:
        """Do nothing: values are validated before a handler is called."""
