"""Schemas of the properties and attributes of resource types: conversion, defaults, constraints."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from homeostat.model.errors import invalid
from homeostat.resources import comparison
from homeostat.templates.tree import UNKNOWN


class ValueType(StrEnum):
    """Type of a property or an attribute."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    MAP = "map"
    LIST = "list"
    ANY = "any"


ZERO: Mapping[ValueType, Any] = {
    ValueType.STRING: "",
    ValueType.INTEGER: 0,
    ValueType.NUMBER: 0,
    ValueType.BOOLEAN: False,
    ValueType.MAP: {},
    ValueType.LIST: [],
    ValueType.ANY: None,
}
"""Stand-in for a null in a property without a default."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule on a value.

    Attributes:
        wire: Form in the schema API.
        check: Returns an error message for a wrong value, else None.
    """

    wire: Mapping[str, Any]
    check: Callable[[Any], str | None]


def between(low: float | None = None, high: float | None = None) -> Constraint:
    def check(value: Any) -> str | None:
        if (low is not None and value < low) or (high is not None and value > high):
            return f"{value} is out of range (min: {low}, max: {high})"
        return None

    return Constraint({"range": {k: v for k, v in (("min", low), ("max", high)) if v is not None}}, check)


def length(low: int | None = None, high: int | None = None) -> Constraint:
    def check(value: Any) -> str | None:
        size = len(value)
        if (low is not None and size < low) or (high is not None and size > high):
            return f"length ({size}) is out of range (min: {low}, max: {high})"
        return None

    return Constraint({"length": {k: v for k, v in (("min", low), ("max", high)) if v is not None}}, check)


def one_of(*values_allowed: Any) -> Constraint:
    allowed = [value.value if isinstance(value, Enum) else value for value in values_allowed]

    def check(value: Any) -> str | None:
        values = value if isinstance(value, list) else [value]
        if all(item in allowed for item in values):
            return None
        return f"{value!r} is not an allowed value {_listed(allowed)}"

    return Constraint({"allowed_values": allowed}, check)


LISTED_MAX = 40
"""Most allowed values that an error message lists."""


def _listed(allowed: Sequence[Any]) -> str:
    if len(allowed) <= LISTED_MAX:
        return str(list(allowed))
    # Protocols, for instance, are allowed by name or by any of 256 numbers: list the names.
    words = [value for value in allowed if not str(value).isdigit()][:LISTED_MAX]
    return f"{words}, or one of {len(allowed) - len(words)} others"


def pattern(regex: str) -> Constraint:
    compiled = re.compile(regex)

    def check(value: Any) -> str | None:
        return None if compiled.fullmatch(value) else f"{value!r} does not match pattern {regex!r}"

    return Constraint({"allowed_pattern": regex}, check)


def custom(name: str, check: Callable[[Any], str | None] | None = None) -> Constraint:
    """Return a named constraint; without `check` (for cloud objects, such as `nova.flavor`) it accepts every value."""
    return Constraint({"custom_constraint": name}, check or (lambda _value: None))


@dataclass(frozen=True, slots=True)
class Property:
    """Schema of a property.

    Attributes:
        default: Default value, or None.
        update: Whether the property can change in place.
        immutable: Whether a change is refused.
        fields: Schema of the keys of a MAP; None for any keys.
        items: Schema of the items of a LIST; None for any items.
        hidden: Whether the property is accepted but not documented.
        drift: Whether to compare with the observed value; False if clouds report no comparable value.
        implemented: False for a property of Heat that this service refuses.
        any_case: Whether the case of allowed values is ignored; the case of the constraint is stored.
        same: Rule that compares a desired with an observed value.
        blank: Whether an empty text is a value, and not the same as null.
    """

    kind: ValueType
    description: str = ""
    default: Any = None
    required: bool = False
    update: bool = False
    immutable: bool = False
    constraints: tuple[Constraint, ...] = ()
    fields: Mapping[str, "Property"] | None = None
    items: "Property | None" = None
    hidden: bool = False
    drift: bool = True
    implemented: bool = True
    any_case: bool = False
    same: comparison.Rule = comparison.equal
    blank: bool = False

    def wire(self) -> dict[str, Any]:
        """Return the schema in the form of `GET /resource_types/{type}`."""
        wire: dict[str, Any] = {
            "type": self.kind.value,
            "required": self.required,
            "update_allowed": self.update,
            "immutable": self.immutable,
        }
        if self.description:
            wire["description"] = self.description
        if self.default is not None:
            wire["default"] = self.default
        if self.constraints:
            wire["constraints"] = [dict(constraint.wire) for constraint in self.constraints]
        if self.fields is not None:
            wire["schema"] = {name: prop.wire() for name, prop in self.fields.items() if not prop.hidden}
        elif self.items is not None:
            wire["schema"] = {"*": self.items.wire()}
        return wire


def text(description: str = "", **options: Any) -> Property:
    return Property(ValueType.STRING, description, **options)


def integer(description: str = "", **options: Any) -> Property:
    return Property(ValueType.INTEGER, description, **options)


def number(description: str = "", **options: Any) -> Property:
    return Property(ValueType.NUMBER, description, **options)


def boolean(description: str = "", **options: Any) -> Property:
    return Property(ValueType.BOOLEAN, description, **options)


def mapping(description: str = "", **options: Any) -> Property:
    return Property(ValueType.MAP, description, **options)


def listing(description: str = "", **options: Any) -> Property:
    return Property(ValueType.LIST, description, **options)


def anything(description: str = "", **options: Any) -> Property:
    return Property(ValueType.ANY, description, **options)


def link(description: str, constraint: str, **options: Any) -> Property:
    """Return a property that refers to another cloud object by name or id; `constraint` is its named constraint."""
    return text(description, constraints=(custom(constraint),), same=comparison.reference, **options)


@dataclass(frozen=True, slots=True)
class Attribute:
    """Schema of an attribute.

    Attributes:
        live: Whether an old observation must never serve it.
        secret: Whether values made from it are redacted.
        field: Field of the cloud's object if the names differ, else "".
    """

    description: str = ""
    kind: ValueType = ValueType.STRING
    live: bool = False
    secret: bool = False
    deprecated: bool = False
    field: str = ""

    def wire(self) -> dict[str, Any]:
        return {"description": self.description, "type": self.kind.value}


Schema = Mapping[str, Property]


def coerce(schema: Schema, provided: Mapping[str, Any], path: Sequence[str | int] = ()) -> dict[str, Any]:
    """Check `provided` against `schema`, and convert each value to its type; absent values stay absent.

    Raises:
        Rejected: StackValidationFailed (`Property error`), with the path of the value below `path`.
    """
    unknown = [name for name in provided if name not in schema]
    if unknown:
        raise invalid(f"Unknown Property {unknown[0]}", *path, error="Property error")
    result = {}
    for name, prop in schema.items():
        if name in provided:
            if not prop.implemented and provided[name] is not None:
                raise invalid(f"Property {name} not implemented yet", *path, error="Property error")
            result[name] = coerce_value(prop, provided[name], (*path, name))
        elif prop.required and prop.default is None:
            raise invalid(f"Property {name} not assigned", *path, error="Property error")
    return result


def coerce_value(prop: Property, value: Any, path: Sequence[str | int]) -> Any:
    """Convert one value to the type of `prop`; a null becomes the default, else the zero value of the type.

    Raises:
        Rejected: StackValidationFailed (`Property error`).
    """
    if value is UNKNOWN:
        return UNKNOWN
    if value is None:
        return prop.default if prop.default is not None else ZERO[prop.kind]
    try:
        result = _CONVERT[prop.kind](value)
    except (TypeError, ValueError) as error:
        raise invalid(str(error), *path, error="Property error") from error
    if prop.any_case:
        result = _as_allowed(prop, result)
    if prop.fields is not None:
        result = coerce(prop.fields, result, path)
    elif prop.items is not None:
        result = [coerce_value(prop.items, item, (*path, index)) for index, item in enumerate(result)]
    _constrain(prop, result, path)
    return result


def _as_allowed(prop: Property, value: str) -> str:
    """Return the allowed value equal but for case, or the value itself if there is none."""
    allowed = [value for constraint in prop.constraints for value in constraint.wire.get("allowed_values", ())]
    return (
        value
        if value in allowed
        else next((candidate for candidate in allowed if candidate.lower() == value.lower()), value)
    )


def _constrain(prop: Property, value: Any, path: Sequence[str | int]) -> None:
    for constraint in prop.constraints:
        try:
            problem = constraint.check(value)
        # A check cannot compare the placeholder for an unknown value: wait until the value is known.
        except TypeError as error:
            if _has_unknown(value):
                continue
            problem = str(error)
        if problem is not None and not _has_unknown(value):
            raise invalid(problem, *path, error="Property error")


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_unknown(item) for item in value)
    return value is UNKNOWN


def with_defaults(
    schema: Schema, values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return every declared property with its value, its default, or None; nested maps have all their keys.

    Args:
        schema: The declared properties.
        values: Given values, already converted.
        defaults: Result of this function for no values, computed beforehand to save time; None to compute it.
    """
    if defaults is None:
        return {name: _default_value(prop, values.get(name)) for name, prop in schema.items()}
    result = dict(defaults)
    for name, value in values.items():
        if value is not None and (prop := schema.get(name)) is not None:
            # Nothing to complete inside most values: this runs several times for each resource of a pass.
            result[name] = value if prop.fields is None and prop.items is None else _default_value(prop, value)
    return result


def _default_value(prop: Property, value: Any) -> Any:
    if value is None:
        value = prop.default
    if prop.fields is not None and isinstance(value, Mapping):
        return with_defaults(prop.fields, value)
    if prop.items is not None and isinstance(value, list):
        return [_default_value(prop.items, item) for item in value]
    return value


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    raise ValueError(f"Value must be a string; got {value!r}")


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError(f"Value '{value}' is not an integer")
    try:
        if isinstance(value, float) and not value.is_integer():
            raise ValueError
        return int(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Value '{value}' is not an integer") from error


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        pass
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Value '{value}' is not a number") from error
    if not math.isfinite(number):  # It would pass each comparison with a limit, and no JSON can hold it.
        raise ValueError(f"Value '{value}' is not a finite number")
    return number


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f'"{value}" is not a valid boolean')


def _map(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f'"{value}" is not a map')


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(f'"{value}" is not a list')


_CONVERT: Mapping[ValueType, Callable[[Any], Any]] = {
    ValueType.STRING: _string,
    ValueType.INTEGER: _integer,
    ValueType.NUMBER: _number,
    ValueType.BOOLEAN: _boolean,
    ValueType.MAP: _map,
    ValueType.LIST: _list,
    ValueType.ANY: lambda value: value,
}

__all__ = [
    "UNKNOWN",
    "Attribute",
    "Constraint",
    "Property",
    "Schema",
    "ValueType",
    "anything",
    "between",
    "boolean",
    "coerce",
    "custom",
    "integer",
    "length",
    "link",
    "listing",
    "mapping",
    "number",
    "one_of",
    "pattern",
    "text",
    "with_defaults",
]
