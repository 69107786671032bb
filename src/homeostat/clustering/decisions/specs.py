"""Specs of the Clustering API, `{type, version, properties}`: their types, schemas and checks. Pure.

The properties are declared in the schema language of resource types. Their form on the wire, and the messages about
wrong values, are those of Senlin, with the place and the remedy behind them.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.errors import Rejected, dotted
from homeostat.resources.schema import Property, Schema, ValueType, mapping, text

Path = tuple[str | int, ...]
Microversion = tuple[int, int]
WITH_SUPPORT: Microversion = (1, 5)
"""Microversion from which types are listed with their version and support status."""
LISTED_MAX = 40
"""Most known names that a message lists."""

_WIRE_TYPES = {
    ValueType.STRING: "String",
    ValueType.INTEGER: "Integer",
    ValueType.NUMBER: "Number",
    ValueType.BOOLEAN: "Boolean",
    ValueType.MAP: "Map",
    ValueType.LIST: "List",
    ValueType.ANY: "Any",
}
_TRUE, _FALSE = ("1", "t", "true", "on", "y", "yes"), ("0", "f", "false", "off", "n", "no")


@dataclass(frozen=True, slots=True)
class Operation:
    """What users may request of the nodes of a type of profiles."""

    description: str
    parameters: Schema = field(default_factory=dict)

    def wire(self) -> dict[str, Any]:
        parameters = {name: wire(prop, updatable=False) for name, prop in self.parameters.items()}
        return {"description": self.description, "parameters": parameters}


@dataclass(frozen=True, slots=True)
class SpecType:
    """A type of profiles or policies.

    Attributes:
        name: Name without a version.
        versions: Versions that specs may name.
        support: Version -> its history, oldest first: `{status, since}`.
        refused: Why specs of this type are refused; "" where they are not.
    """

    name: str
    schema: Schema
    support: Mapping[str, Sequence[Mapping[str, str]]]
    versions: tuple[str, ...] = ("1.0",)
    operations: Mapping[str, Operation] = field(default_factory=dict)
    refused: str = ""

    def full_name(self, version: str) -> str:
        return f"{self.name}-{version}"


@dataclass(frozen=True, slots=True)
class Spec:
    """A checked spec.

    Attributes:
        version: The version that it names.
        properties: Every declared property with its value, its default or None, at each level that was given.
        sent: The spec as the user sent it; the API shows this one.
        warnings: What was understood, but should be written differently.
    """

    type: SpecType
    version: str
    properties: Mapping[str, Any]
    sent: Mapping[str, Any]
    description: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return self.type.full_name(self.version)


def spec_of_template(full_name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a resource of a template.

    Args:
        full_name: Type with its version.
        properties: Properties, as the type has them.
    """
    name, _, version = full_name.rpartition("-")
    return {"type": name, "version": version, "properties": dict(properties)}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All types of profiles, or all types of policies.

    Attributes:
        kind: `profile_type` or `policy_type`.
        further: Keys of a spec besides `type`, `version` and `properties`.
    """

    kind: str
    types: tuple[SpecType, ...]
    further: Schema = field(default_factory=dict)

    @property
    def full_names(self) -> list[str]:
        """The names of the types that are supported, with their versions."""
        return [each.full_name(version) for each in self.types if not each.refused for version in each.versions]

    def find(self, full_name: str) -> tuple[SpecType, str]:
        """Return a type and the version for a name such as `os.nova.server-1.0`.

        Raises:
            Rejected: ResourceNotFound.
        """
        for each in self.types:
            for version in each.versions:
                if each.full_name(version) == full_name and not each.refused:
                    return each, version
        raise Rejected("ResourceNotFound", f"The {self.kind} '{full_name}' could not be found.")

    def of_spec(self, spec: Any) -> tuple[SpecType, str]:
        """Return the type that a spec names, and the version.

        Raises:
            Rejected: ESchema, ResourceNotFound; InvalidSpec where the type is known, and not supported.
        """
        if not isinstance(spec, Mapping):
            raise wrong("The provided spec is not a map.")
        for key in ("type", "version"):
            if spec.get(key) is None:
                raise wrong(f"The '{key}' key is missing from the provided spec map.")
        full_name = f"{spec['type']}-{spec['version']}"
        for each in self.types:
            if each.refused and full_name in map(each.full_name, each.versions):
                raise Rejected("InvalidSpec", f"The {self.kind} '{full_name}' is not supported: {each.refused}")
        return self.find(full_name)

    def check(self, spec: Any, before: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None) -> Spec:
        """Check a spec against the schema of its type.

        Args:
            before: Changes the properties before they are checked, such as names of a former version.

        Raises:
            Rejected: ESchema, ResourceNotFound or InvalidSpec.
        """
        kind, version = self.of_spec(spec)
        common = {
            "type": text(required=True),
            "version": text(required=True),
            "properties": mapping(required=True),
            **self.further,
        }
        top = resolved(common, spec)
        given = before(top["properties"]) if before is not None else top["properties"]
        properties = resolved(kind.schema, given, ("properties",))
        return Spec(kind, version, properties, dict(spec), top.get("description") or "")

    def listed(self, microversion: Microversion) -> list[dict[str, Any]]:
        """Return the entries of the list of types."""
        found: list[dict[str, Any]] = []
        for each in sorted(self.types, key=lambda each: each.name):
            for version in () if each.refused else each.versions:
                if microversion < WITH_SUPPORT:
                    found.append({"name": each.full_name(version)})
                else:
                    status = {version: _history(each.support[version])}
                    found.append({"name": each.name, "version": version, "support_status": status})
        return found

    def shown(self, full_name: str, microversion: Microversion) -> dict[str, Any]:
        """Return the description of a type.

        Raises:
            Rejected: ResourceNotFound.
        """
        kind, _ = self.find(full_name)
        shown: dict[str, Any] = {"name": full_name, "schema": wire_schema(kind.schema)}
        if microversion >= WITH_SUPPORT:
            shown["support_status"] = {version: _history(entries) for version, entries in kind.support.items()}
        return shown

    def operations(self, full_name: str) -> dict[str, Any]:
        """Return the operations of a type as the wire has them.

        Raises:
            Rejected: BadRequest: there is no such type.
        """
        try:
            kind, _ = self.find(full_name)
        except Rejected as error:
            raise Rejected("BadRequest", error.message) from error
        return {name: each.wire() for name, each in kind.operations.items()}


def check_operation(spec_type: SpecType, version: str, name: str, parameters: Any) -> dict[str, Any]:
    """Check a request for an operation on a node, and return its parameters with their defaults.

    Args:
        parameters: The given parameters; None for none.

    Raises:
        Rejected: BadRequest.
    """
    operation = spec_type.operations.get(name)
    if operation is None:
        message = f"The requested operation '{name}' is not supported by the profile type "
        remedy = _known(spec_type.operations)
        raise Rejected("BadRequest", f"{message}'{spec_type.full_name(version)}'.", remedy=remedy)
    given = {} if parameters is None else parameters
    if not isinstance(given, Mapping):
        raise Rejected("BadRequest", f"The parameters of the operation '{name}' are not a map.")
    try:
        found = resolved(operation.parameters, given, words=("parameter", "parameter"))
    except Rejected as error:
        raise Rejected("BadRequest", f"{error.message.rstrip('.')}.", remedy=error.remedy) from error
    return {key: value for key, value in found.items() if value is not None}


def wire_schema(schema: Schema) -> dict[str, Any]:
    """Return the declared properties as the API describes them."""
    return {name: wire(prop) for name, prop in schema.items() if not prop.hidden}


def wire(prop: Property, *, updatable: bool = True) -> dict[str, Any]:
    """Return the description of one property.

    Args:
        updatable: Whether to say if it can be changed; parameters of operations say nothing of it.
    """
    shown: dict[str, Any] = {"type": _WIRE_TYPES[prop.kind], "required": prop.required}
    if updatable:
        shown["updatable"] = prop.update
    if prop.description:
        shown["description"] = prop.description
    if prop.default is not None:
        shown["default"] = prop.default
    if prop.fields is not None:
        entries = {name: each for name, each in prop.fields.items() if not each.hidden}
        shown["schema"] = {name: wire(each, updatable=updatable) for name, each in entries.items()}
    elif prop.items is not None:
        shown["schema"] = {"*": wire(prop.items, updatable=updatable)}
    constraints = [each for rule in prop.constraints for each in _wire_constraints(rule.wire)]
    if constraints:
        shown["constraints"] = constraints
    return shown


def _wire_constraints(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "allowed_values" in rule:
        return [{"type": "AllowedValues", "constraint": list(rule["allowed_values"])}]
    return [{"type": "Range", "constraint": dict(rule["range"])}] if "range" in rule else []


def resolved(
    schema: Schema, given: Mapping[str, Any], path: Path = (), words: tuple[str, str] = ("spec item", "spec item")
) -> dict[str, Any]:
    """Check values against a schema; every declared property gets its value, its default, or None.

    Args:
        words: What an unknown, and a missing, value is called.

    Raises:
        Rejected: ESchema.
    """
    strange = [name for name in given if name not in schema]
    if strange:
        known = _known(name for name, prop in schema.items() if not prop.hidden)
        raise wrong(f"Unrecognizable {words[0]} '{strange[0]}'", path, known)
    result = {}
    for name, prop in schema.items():
        value = given.get(name)
        if value is None and prop.required:
            raise wrong(f"Required {words[1]} '{name}' not provided", path)
        result[name] = value_of(prop, value, (*path, name))
    return result


def value_of(prop: Property, value: Any, path: Path) -> Any:
    """Check one value, and convert it to the type of its property.

    Raises:
        Rejected: ESchema.
    """
    if value is None:
        value = prop.default
    if value is None:
        return None
    result = _CONVERT[prop.kind](value, path)
    if prop.any_case and isinstance(result, str):
        result = _as_allowed(prop, result)
    if prop.fields is not None:
        result = resolved(prop.fields, result, path)
    elif prop.items is not None:
        result = [value_of(prop.items, item, (*path, place)) for place, item in enumerate(result)]
        if None in result:
            raise wrong("Required spec item not provided", (*path, result.index(None)))
    for rule in prop.constraints:
        problem = rule.check(result)
        if problem is not None:
            allowed = rule.wire.get("allowed_values")
            listed = ", ".join(map(str, allowed or ()))
            message = f"'{result}' must be one of the allowed values: {listed}" if allowed else problem
            raise wrong(message, path)
    return result


def _as_allowed(prop: Property, value: str) -> str:
    allowed = [str(each) for rule in prop.constraints for each in rule.wire.get("allowed_values", ())]
    return next((each for each in allowed if each.lower() == value.lower()), value)


def wrong(message: str, path: Path = (), more: str = "") -> Rejected:
    """Return the error for a value that does not fit its schema; its place and the remedy come after the message."""
    after = "; ".join(part for part in (f"at {dotted(path)}" if path else "", more) if part)
    return Rejected("ESchema", message, remedy=after)


def _known(names: Any) -> str:
    listed = sorted(names)
    if not listed:
        return "there are none"
    more = f", and {len(listed) - LISTED_MAX} others" if len(listed) > LISTED_MAX else ""
    return f"there is {', '.join(listed[:LISTED_MAX])}{more}"


def _history(entries: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [dict(each) for each in entries]


def _text(value: Any, path: Path) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    raise wrong(f"The value '{_short(value)}' is not a valid string.", path)


def _integer(value: Any, path: Path) -> int:
    whole = not isinstance(value, float) or value.is_integer()
    if not isinstance(value, bool) and isinstance(value, int | float | str) and whole:
        try:
            return int(value)
        except ValueError:
            pass
    raise wrong(f"The value '{_short(value)}' is not a valid Integer", path)


def _number(value: Any, path: Path) -> int | float:
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        try:
            found = value if isinstance(value, int | float) else float(value)
        except ValueError:
            found = math.nan
        if math.isfinite(found):
            return found
    raise wrong(f"The value '{_short(value)}' is not a valid number.", path)


def _boolean(value: Any, path: Path) -> bool:
    word = str(value).strip().lower() if isinstance(value, bool | int | str) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise wrong(f"The value '{_short(value)}' is not a valid Boolean", path)


def _map(value: Any, path: Path) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            pass
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return dict(value)
    raise wrong(f"'{_short(value)}' is not a Map", path)


def _list(value: Any, path: Path) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if value == "":  # Senlin takes a text for the list of its characters, so clients send an empty one for no items
        return []
    raise wrong(f"'{_short(value)}' is not a List", path)


def _any(value: Any, path: Path) -> Any:
    return value


def _short(value: Any) -> str:
    shown = str(value)
    return shown if len(shown) <= 200 else f"{shown[:200]}…"


_CONVERT: Mapping[ValueType, Callable[[Any, Path], Any]] = {
    ValueType.STRING: _text,
    ValueType.INTEGER: _integer,
    ValueType.NUMBER: _number,
    ValueType.BOOLEAN: _boolean,
    ValueType.MAP: _map,
    ValueType.LIST: _list,
    ValueType.ANY: _any,
}
