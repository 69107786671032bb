"""Specs of the Clustering API, `{type, version, properties}`: their types, schemas and checks. Pure.

The properties are declared in the schema language of resource types. Their format in the API, and the messages about
wrong values, are Senlin's, followed by the place and a remedy.
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
"""Maximum of known names in a message."""

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
    """An operation that users may request of the nodes of a profile type."""

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
        refused: Why specs of this type are refused; "" if they are allowed.
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
        version: The version in the spec.
        properties: Every declared property with its value, its default or None, at each level of the given spec.
        sent: The original spec from the user, for answers of the API.
        warnings: Parts that were accepted, but should be written differently.
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
        properties: Properties of the type.
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
        """The names of the supported types, with their versions."""
        return [
            spec_type.full_name(version)
            for spec_type in self.types
            if not spec_type.refused
            for version in spec_type.versions
        ]

    def find(self, full_name: str) -> tuple[SpecType, str]:
        """Return a type and the version for a name such as `os.nova.server-1.0`.

        Raises:
            Rejected: ResourceNotFound.
        """
        for spec_type in self.types:
            for version in spec_type.versions:
                if spec_type.full_name(version) == full_name and not spec_type.refused:
                    return spec_type, version
        raise Rejected("ResourceNotFound", f"The {self.kind} '{full_name}' could not be found.")

    def of_spec(self, spec: Any) -> tuple[SpecType, str]:
        """Return type and version of a spec.

        Raises:
            Rejected: ESchema; ResourceNotFound; InvalidSpec: the type is known, but not supported.
        """
        if not isinstance(spec, Mapping):
            raise wrong("The provided spec is not a map.")
        for key in ("type", "version"):
            if spec.get(key) is None:
                raise wrong(f"The '{key}' key is missing from the provided spec map.")
        full_name = f"{spec['type']}-{spec['version']}"
        for spec_type in self.types:
            if spec_type.refused and full_name in map(spec_type.full_name, spec_type.versions):
                raise Rejected("InvalidSpec", f"The {self.kind} '{full_name}' is not supported: {spec_type.refused}")
        return self.find(full_name)

    def check(self, spec: Any, before: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None) -> Spec:
        """Check a spec against the schema of its type.

        Args:
            before: Changes the properties before the check, such as names of a former version.

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
        sent_properties = before(top["properties"]) if before is not None else top["properties"]
        properties = resolved(kind.schema, sent_properties, ("properties",))
        return Spec(kind, version, properties, dict(spec), top.get("description") or "")

    def listed(self, microversion: Microversion) -> list[dict[str, Any]]:
        """Return the entries of the list of types."""
        entries: list[dict[str, Any]] = []
        for spec_type in sorted(self.types, key=lambda candidate: candidate.name):
            for version in () if spec_type.refused else spec_type.versions:
                if microversion < WITH_SUPPORT:
                    entries.append({"name": spec_type.full_name(version)})
                else:
                    status = {version: _history(spec_type.support[version])}
                    entries.append({"name": spec_type.name, "version": version, "support_status": status})
        return entries

    def shown(self, full_name: str, microversion: Microversion) -> dict[str, Any]:
        """Return the description of a type.

        Raises:
            Rejected: ResourceNotFound.
        """
        kind, _ = self.find(full_name)
        description: dict[str, Any] = {"name": full_name, "schema": wire_schema(kind.schema)}
        if microversion >= WITH_SUPPORT:
            description["support_status"] = {version: _history(entries) for version, entries in kind.support.items()}
        return description

    def operations(self, full_name: str) -> dict[str, Any]:
        """Return the operations of a type in the format of the API.

        Raises:
            Rejected: BadRequest: unknown type.
        """
        try:
            kind, _ = self.find(full_name)
        except Rejected as error:
            raise Rejected("BadRequest", error.message) from error
        return {name: operation.wire() for name, operation in kind.operations.items()}


def check_operation(spec_type: SpecType, version: str, name: str, parameters: Any) -> dict[str, Any]:
    """Check a request for an operation on a node, and return its parameters with their defaults.

    Args:
        parameters: The given parameters, or None.

    Raises:
        Rejected: BadRequest.
    """
    operation = spec_type.operations.get(name)
    if operation is None:
        message = f"The requested operation '{name}' is not supported by the profile type "
        remedy = _known(spec_type.operations)
        raise Rejected("BadRequest", f"{message}'{spec_type.full_name(version)}'.", remedy=remedy)
    values = {} if parameters is None else parameters
    if not isinstance(values, Mapping):
        raise Rejected("BadRequest", f"The parameters of the operation '{name}' are not a map.")
    try:
        checked = resolved(operation.parameters, values, words=("parameter", "parameter"))
    except Rejected as error:
        raise Rejected("BadRequest", f"{error.message.rstrip('.')}.", remedy=error.remedy) from error
    return {key: value for key, value in checked.items() if value is not None}


def wire_schema(schema: Schema) -> dict[str, Any]:
    """Return the descriptions of the properties in the format of the API."""
    return {name: wire(prop) for name, prop in schema.items() if not prop.hidden}


def wire(prop: Property, *, updatable: bool = True) -> dict[str, Any]:
    """Return the description of one property.

    Args:
        updatable: Whether to include the key `updatable`, which parameters of operations do not have.
    """
    description: dict[str, Any] = {"type": _WIRE_TYPES[prop.kind], "required": prop.required}
    if updatable:
        description["updatable"] = prop.update
    if prop.description:
        description["description"] = prop.description
    if prop.default is not None:
        description["default"] = prop.default
    if prop.fields is not None:
        entries = {name: field for name, field in prop.fields.items() if not field.hidden}
        description["schema"] = {name: wire(field, updatable=updatable) for name, field in entries.items()}
    elif prop.items is not None:
        description["schema"] = {"*": wire(prop.items, updatable=updatable)}
    constraints = [field for rule in prop.constraints for field in _wire_constraints(rule.wire)]
    if constraints:
        description["constraints"] = constraints
    return description


def _wire_constraints(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "allowed_values" in rule:
        return [{"type": "AllowedValues", "constraint": list(rule["allowed_values"])}]
    return [{"type": "Range", "constraint": dict(rule["range"])}] if "range" in rule else []


def resolved(
    schema: Schema, values: Mapping[str, Any], path: Path = (), words: tuple[str, str] = ("spec item", "spec item")
) -> dict[str, Any]:
    """Check values against a schema; every declared property gets its value, its default, or None.

    Args:
        words: The nouns for an unknown, and for a missing, value in messages.

    Raises:
        Rejected: ESchema.
    """
    strange = [name for name in values if name not in schema]
    if strange:
        known = _known(name for name, prop in schema.items() if not prop.hidden)
        raise wrong(f"Unrecognizable {words[0]} '{strange[0]}'", path, known)
    result = {}
    for name, prop in schema.items():
        value = values.get(name)
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
    allowed = [str(word) for rule in prop.constraints for word in rule.wire.get("allowed_values", ())]
    return next((word for word in allowed if word.lower() == value.lower()), value)


def wrong(message: str, path: Path = (), more: str = "") -> Rejected:
    """Return the error for a value that does not fit its schema; place and remedy follow the message."""
    after = "; ".join(part for part in (f"at {dotted(path)}" if path else "", more) if part)
    return Rejected("ESchema", message, remedy=after)


def _known(names: Any) -> str:
    listed = sorted(names)
    if not listed:
        return "there are none"
    more = f", and {len(listed) - LISTED_MAX} others" if len(listed) > LISTED_MAX else ""
    return f"there is {', '.join(listed[:LISTED_MAX])}{more}"


def _history(entries: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [dict(entry) for entry in entries]


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
            result = value if isinstance(value, int | float) else float(value)
        except ValueError:
            result = math.nan
        if math.isfinite(result):
            return result
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
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


_CONVERT: Mapping[ValueType, Callable[[Any, Path], Any]] = {
    ValueType.STRING: _text,
    ValueType.INTEGER: _integer,
    ValueType.NUMBER: _number,
    ValueType.BOOLEAN: _boolean,
    ValueType.MAP: _map,
    ValueType.LIST: _list,
    ValueType.ANY: _any,
}
