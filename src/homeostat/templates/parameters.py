"""Parameters: schemas, values and their text forms."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, invalid
from homeostat.templates import patterns
from homeostat.templates.constraints import Constraint, ConstraintContext, parse_constraint
from homeostat.templates.dialects import Pseudo
from homeostat.templates.parser import check_bounds, parse_json
from homeostat.templates.tree import UNKNOWN, holds
from homeostat.templates.versions import Version

_NAMES_SHOWN = 20
"""Most names of parameters in the message of an error."""

HIDDEN = "******"
"""Replacement of hidden values wherever users see them."""
_BOOLEANS = {
    **dict.fromkeys(("true", "1", "t", "on", "y", "yes"), True),
    **dict.fromkeys(("false", "0", "f", "off", "n", "no"), False),
}


def as_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    raise ValueError("Value must be a string")


def as_number(value: Any) -> int | float:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"Value '{value}' is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"Value '{value}' is not a finite number")
    return number


def as_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return _BOOLEANS[str(value).strip().lower()]
    except KeyError:
        raise ValueError(f"Unrecognized value '{value}', acceptable values are: {', '.join(_BOOLEANS)}") from None


def as_list(value: Any) -> list[str]:
    if isinstance(value, list):
        return [json.dumps(item) if isinstance(item, dict | list) else str(item) for item in value]
    if isinstance(value, str):
        return value.split(",") if value else []
    raise ValueError("Value must be a comma-delimited list string or a list")


def as_json(value: Any) -> Any:
    if not isinstance(value, str):
        check_bounds(value)
        return value
    if not value:
        return {}
    try:
        return parse_json(value)
    except ValueError as error:
        raise ValueError(f"Value must be valid JSON: {error}") from error


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A type of parameters.

    Attributes:
        wire: Name of the type in the validate API.
        convert: Converts a given value to the result of `get_param`; raises ValueError for a wrong value.
        text: Returns the text form of a converted value.
    """

    wire: str
    convert: Callable[[Any], Any]
    text: Callable[[Any], str]


TYPES: Mapping[str, ParameterType] = {
    "string": ParameterType("String", as_string, str),
    "number": ParameterType("Number", as_number, str),
    "comma_delimited_list": ParameterType("CommaDelimitedList", as_list, ",".join),
    "json": ParameterType("Json", as_json, json.dumps),
    "boolean": ParameterType("Boolean", as_boolean, str),
}


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """An entry of the section `parameters`.

    Attributes:
        type: Key of `TYPES`.
        default: The default as written, or None.
    """

    name: str
    type: str
    default: Any = None
    label: str = ""
    description: str = ""
    hidden: bool = False
    immutable: bool = False
    tags: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def parse(cls, name: str, entry: Any, version: Version, match_s: float) -> "ParameterSchema":
        """Parse an entry.

        Args:
            entry: The entry in the words of the template.
            match_s: Most seconds for matching the value with one pattern.

        Raises:
            Rejected: InvalidSchemaError; the error has the path of the parameter.
        """
        try:
            entry = version.dialect.schema(entry)
        except Rejected as error:
            raise error.at("parameters", name) from error
        if not isinstance(entry, dict):
            raise _schema_error(name, f"a map is expected, got {entry!r}")
        known = {"type", "label", "description", "default", "hidden", "immutable", "constraints", "schema"}
        if version.date >= "2018-03-02":
            known.add("tags")
        unknown = sorted(entry.keys() - known)
        if unknown:
            raise _schema_error(name, f"Invalid key {unknown[0]!r}; known are: {', '.join(sorted(known))}")
        kind = entry.get("type")
        if kind is None:
            raise _schema_error(name, "Missing parameter type")
        if not isinstance(kind, str) or kind not in TYPES:
            raise _schema_error(name, f"Invalid type ({kind}); it must be one of: {', '.join(TYPES)}")
        schema = cls(
            name,
            kind,
            default=entry.get("default"),
            label=str(entry.get("label") or ""),
            description=str(entry.get("description") or ""),
            hidden=_flag(name, entry, "hidden"),
            immutable=_flag(name, entry, "immutable"),
            tags=_tags(name, entry.get("tags")),
            constraints=_constraints(name, kind, entry.get("constraints"), version.date, match_s),
        )
        schema.check_default()
        return schema

    def check_default(self) -> None:
        """Check that the default has the type and meets the constraints.

        Raises:
            Rejected: InvalidSchemaError.
        """
        if self.default is None:
            return
        try:
            self.value_of(self.default)
        except ValueError as error:
            raise _schema_error(self.name, f"Invalid default {self.default!r} ({error})") from error

    def value_of(self, value: Any) -> Any:
        """Convert a given value to the result of `get_param`.

        If a map or list contains `UNKNOWN`, only its length is checked.

        Raises:
            ValueError: The value does not fit; the message does not quote the value of a hidden parameter.
        """
        partly = isinstance(value, dict | list) and holds(value, UNKNOWN)
        try:
            value = self._partly_known(value) if partly else TYPES[self.type].convert(value)
        except ValueError:
            if self.hidden:
                raise ValueError(f"its value, which is hidden, is not of type {self.type}") from None
            raise
        for constraint in self.constraints:
            if partly and constraint.kind != "length":
                continue
            problem = constraint.problem(value)
            if problem and self.hidden:
                problem = constraint.description or f"its value, which is hidden, breaks the rule {constraint.kind}"
            if problem:
                raise ValueError(problem)
        return value

    def _partly_known(self, value: dict[str, Any] | list[Any]) -> Any:
        """Convert a map or list that contains `UNKNOWN` at any depth, like `ParameterType.convert`."""
        if self.type == "comma_delimited_list" and isinstance(value, list):
            return [UNKNOWN if holds(item, UNKNOWN) else as_list([item])[0] for item in value]
        if self.type == "json":
            return as_json(value)
        return TYPES[self.type].convert(value)


def _schema_error(name: str, message: str) -> Rejected:
    return Rejected("InvalidSchemaError", message, path=("parameters", name))


def _flag(name: str, entry: Mapping[str, Any], key: str) -> bool:
    value = entry.get(key)
    try:
        return value is not None and as_boolean(value)
    except ValueError as error:
        raise _schema_error(name, f"{key} must be a boolean: {error}") from error


def _tags(name: str, tags: Any) -> tuple[str, ...]:
    if tags is None:
        return ()
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _schema_error(name, "tags must be a list of strings")
    return tuple(tags)


def _constraints(name: str, kind: str, entries: Any, version: str, match_s: float) -> tuple[Constraint, ...]:
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise _schema_error(name, f"Invalid parameter constraints, expected a list, got {entries!r}")
    # The items of a list are compared with the allowed values, and items are texts.
    convert = as_string if kind == "comma_delimited_list" else TYPES[kind].convert
    manner = ConstraintContext(convert, modulo=version >= "2017-02-24", match_s=match_s)
    try:
        return tuple(parse_constraint(entry, kind, manner) for entry in entries)
    except Rejected as error:
        raise error.at("parameters", name) from error


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its value.

    Attributes:
        schema: Its declaration.
        value: Result of `get_param`. `tree.UNKNOWN` if no value was given and none was needed; may also contain
            `UNKNOWN` if a part is not known yet.
        provided: The value given by the caller; None if absent or not fully known.
        default: The default as written, of the environment or else of the template; None if absent.
        default_local: Whether the default is the template's own.
        pseudo: Whether the parameter is a pseudo parameter: not declared, always present.
    """

    schema: ParameterSchema
    value: Any
    provided: Any = None
    default: Any = None
    default_local: bool = True
    pseudo: bool = False

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def text(self) -> str:
        """The value in the text form of the API, not redacted; "" unless fully known."""
        return "" if holds(self.value, UNKNOWN) else TYPES[self.schema.type].text(self.value)

    @property
    def shown(self) -> str:
        """The value in the text form of the API, redacted if the parameter is hidden."""
        return HIDDEN if self.schema.hidden else self.text

    def wire(self) -> dict[str, Any]:
        """Return the entry in the response of the validate API."""
        schema = self.schema
        entry: dict[str, Any] = {
            "Type": TYPES[schema.type].wire,
            "Description": schema.description,
            "NoEcho": "true" if schema.hidden else "false",
            "Label": schema.label or schema.name,
        }
        if self.default is not None:
            # The template's own default is no secret: all its readers see the template.
            entry["Default"] = HIDDEN if schema.hidden and not self.default_local else self.default
        if self.provided is not None:
            entry["Value"] = HIDDEN if schema.hidden else self.provided
        for constraint in schema.constraints:
            entry.update(constraint.wire)
        described = " ".join(constraint.description for constraint in schema.constraints if constraint.description)
        if described:
            entry["ConstraintDescription"] = described
        if schema.tags:
            entry["Tags"] = list(schema.tags)
        return entry


@dataclass(frozen=True, slots=True)
class ProvidedParameters:
    """Parameters given by the caller.

    Attributes:
        values: Values of the root template's parameters.
        defaults: `parameter_defaults`: values for parameters of these names in any template of the stack.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


def resolve(
    section: Mapping[str, Any], provided: ProvidedParameters, identity: Identity, *, version: Version, strict: bool
) -> dict[str, Parameter]:
    """Return the parameters of a template with their values, by name: pseudo parameters first, then the declared ones.

    Args:
        section: Section `parameters` of the template.
        provided: Parameters given by the caller.
        identity: Identity of the stack, for the pseudo parameters.
        strict: Whether a parameter without a value is an error; else its value is `UNKNOWN`.

    Raises:
        Rejected: UnknownUserParameter, InvalidSchemaError, UserParameterMissing (only if strict), or
            StackValidationFailed (`Parameter 'p' is invalid: …`).
    """
    for name in provided.values:
        if name not in section:
            raise _undeclared(name, section)
    match_s = patterns.match_s(_matches(section))
    schemas = [ParameterSchema.parse(name, entry, version, match_s) for name, entry in section.items()]
    parameters = {parameter.name: parameter for parameter in _pseudo(version.dialect.pseudo(identity))}
    for schema in schemas:
        if schema.name in parameters:
            raise _schema_error(schema.name, "the name is reserved for a parameter that is always there")
        parameters[schema.name] = _valued(schema, provided, strict)
    return parameters


def _undeclared(name: str, section: Mapping[str, Any]) -> Rejected:
    """Return the error for a value of a parameter that the template does not declare."""
    names = list(section)[:_NAMES_SHOWN]
    more = f" and {len(section) - len(names)} more" if len(section) > len(names) else ""
    message = f"The Parameter ({name}) was not defined in template. Leave it out of the parameters and the environment,"
    declared = f"{', '.join(names) or 'none'}{more}"
    return Rejected("UnknownUserParameter", f"{message} or declare it in the template, which declares {declared}.")


def _matches(section: Mapping[str, Any]) -> int:
    """Return the greatest number of pattern matches: two for each rule, the given value and the default."""
    entries = [entry for entry in section.values() if isinstance(entry, dict)]
    rules = [entry["constraints"] for entry in entries if isinstance(entry.get("constraints"), list)]
    return 2 * (sum(map(len, rules)) + sum("AllowedPattern" in entry for entry in entries))


def _pseudo(always: tuple[Pseudo, ...]) -> list[Parameter]:
    return [
        Parameter(ParameterSchema(name, "string", description=text), value, pseudo=True) for name, value, text in always
    ]


def _valued(schema: ParameterSchema, provided: ProvidedParameters, strict: bool) -> Parameter:
    value = provided.values.get(schema.name)
    common = provided.defaults.get(schema.name)
    default = schema.default if common is None else common
    effective = default if value is None else value
    if effective is None:
        if strict:
            remedy = "Give it a value among the parameters, or a default in the template."
            raise Rejected("UserParameterMissing", f"The Parameter ({schema.name}) was not provided. {remedy}")
        return Parameter(schema, UNKNOWN)
    try:
        converted = schema.value_of(effective)
    except ValueError as error:
        raise invalid(f"Parameter '{schema.name}' is invalid: {error}") from error
    known = None if holds(converted, UNKNOWN) else value
    return Parameter(schema, converted, known, default, common is None)


def check_immutable(before: Mapping[str, Parameter], after: Mapping[str, Parameter]) -> None:
    """Check that no immutable parameter has different values in `before` and `after`.

    Raises:
        Rejected: ImmutableParameterModified.
    """
    changed = sorted(
        name
        for name, parameter in after.items()
        if parameter.schema.immutable and name in before and before[name].value != parameter.value
    )
    if changed:
        raise Rejected(
            "ImmutableParameterModified",
            f"The following parameters are immutable and may not be updated: {', '.join(changed)}",
        )
