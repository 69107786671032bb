"""Constraints on parameters: parsing, checking, and their form in the response of the validate API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates import patterns

TYPES = {
    "modulo": ("number",),
    "range": ("number",),
    "length": ("string", "comma_delimited_list", "json"),
    "allowed_values": ("string", "number", "boolean", "comma_delimited_list"),
    "allowed_pattern": ("string",),
    "custom_constraint": ("string", "number", "boolean", "comma_delimited_list"),
}
"""Constraint -> types of parameters; if an entry has several constraints, the first in this order counts."""

# Names in the validate API and in messages, as in Heat.
_NAMES = {
    "modulo": "Modulo",
    "range": "Range",
    "length": "Length",
    "allowed_values": "AllowedValues",
    "allowed_pattern": "AllowedPattern",
    "custom_constraint": "CustomConstraint",
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule on the value of a parameter.

    Attributes:
        kind: Key of `TYPES`.
        description: Text of the template's author, or "".
        wire: Additional keys in the response of the validate API.
        check: Returns an error message for a wrong value, else None.
        custom: Name of a custom constraint, which only the layer above can check; else "".
    """

    kind: str
    description: str
    wire: Mapping[str, Any]
    check: Callable[[Any], str | None]
    custom: str = ""

    def problem(self, value: Any) -> str | None:
        """Return the error message for a wrong value, else None; the author's description replaces our own text."""
        problem = self.check(value)
        return problem and (self.description or problem)


@dataclass(frozen=True, slots=True)
class ConstraintContext:
    """Context in which the constraints of one parameter are parsed.

    Attributes:
        convert: Converts an allowed value to the parameter's type.
        modulo: Whether the version of the language has the constraint `modulo`.
        match_s: Most seconds for matching a value with one pattern.
    """

    convert: Callable[[Any], Any]
    modulo: bool = True
    match_s: float = patterns.MATCH_S


def parse_constraint(entry: Any, parameter_type: str, manner: ConstraintContext) -> Constraint:
    """Parse one entry of `constraints`.

    Raises:
        Rejected: InvalidSchemaError.
    """
    if not isinstance(entry, dict):
        raise _wrong(f"Invalid parameter constraints, expected a mapping, got {entry!r}")
    kinds = [kind for kind in TYPES if kind in entry and (manner.modulo or kind != "modulo")]
    unknown = sorted(entry.keys() - kinds - {"description"})
    if unknown:
        raise _wrong(f"Invalid key {unknown[0]!r} in a constraint; known are: {', '.join(TYPES)}, description")
    if not kinds:
        raise _wrong(f"No constraint expressed; one of these is needed: {', '.join(TYPES)}")
    kind = kinds[0]
    if parameter_type not in TYPES[kind]:
        raise _wrong(f"{_NAMES[kind]} constraint invalid for {parameter_type}")
    description = str(entry.get("description") or "")
    return _PARSERS[kind](entry[kind], description, manner)


def _wrong(message: str) -> Rejected:
    return Rejected("InvalidSchemaError", message)


def _bounds(value: Any, kind: str, numbers: type | tuple[type, ...]) -> tuple[Any, Any]:
    if not isinstance(value, dict) or not value or not value.keys() <= {"min", "max"}:
        raise _wrong(f"A {kind} constraint must be a map with min and/or max, got {value!r}")
    low, high = (_numeric(value.get(key), f"{key} of a {kind} constraint") for key in ("min", "max"))
    if low is None and high is None:
        raise _wrong(f"A {kind} constraint must have a min value and/or a max value specified.")
    if any(bound is not None and not isinstance(bound, numbers) for bound in (low, high)):
        raise _wrong(f"min/max of a {kind} constraint must be an integer")
    return low, high


def _numeric(value: Any, what: str) -> int | float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    for convert in (int, float):
        try:
            return convert(value)
        except (TypeError, ValueError):
            continue
    raise _wrong(f"The {what} must be a number, got {value!r}")


def _present(**wire: Any) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if value is not None}


def _range(value: Any, description: str, _manner: ConstraintContext) -> Constraint:
    low, high = _bounds(value, "range", (int, float))

    def check(number: Any) -> str | None:
        inside = (low is None or number >= low) and (high is None or number <= high)
        return None if inside else f"{number} is out of range (min: {low}, max: {high})"

    return Constraint("range", description, _present(MinValue=low, MaxValue=high), check)


def _length(value: Any, description: str, _manner: ConstraintContext) -> Constraint:
    low, high = _bounds(value, "length", int)

    def check(sized: Any) -> str | None:
        if not isinstance(sized, str | list | dict):
            return f"{sized} has no length"
        size = len(sized)
        inside = (low is None or size >= low) and (high is None or size <= high)
        return None if inside else f"length ({size}) is out of range (min: {low}, max: {high})"

    return Constraint("length", description, _present(MinLength=low, MaxLength=high), check)


def _modulo(value: Any, description: str, _manner: ConstraintContext) -> Constraint:
    if not isinstance(value, dict) or value.keys() != {"step", "offset"}:
        raise _wrong("A modulo constraint must be a map with step and offset")
    step, offset = (_numeric(value[key], f"{key} of a modulo constraint") for key in ("step", "offset"))
    if not isinstance(step, int) or not isinstance(offset, int):
        raise _wrong("step and offset of a modulo constraint must be integers")
    if step == 0 or abs(offset) >= abs(step) or step * offset < 0:
        raise _wrong(
            "step of a modulo constraint must not be 0; offset must be smaller than step (by absolute value) and have "
            "the same sign"
        )

    def check(number: Any) -> str | None:
        return None if number % step == offset else f"{number} is not a multiple of {step} with an offset of {offset}"

    return Constraint("modulo", description, {"Step": step, "Offset": offset}, check)


def _allowed_values(value: Any, description: str, manner: ConstraintContext) -> Constraint:
    if not isinstance(value, list):
        raise _wrong(f"AllowedValues constraint must be a list, got {value!r}")
    allowed = set()
    for item in value:
        try:
            allowed.add(manner.convert(item))
        except ValueError as error:
            raise _wrong(f"Invalid allowed value {item!r}: {error}") from error
    listed = ", ".join(map(str, value))

    def check(value: Any) -> str | None:
        wrong = [item for item in (value if isinstance(value, list) else [value]) if item not in allowed]
        return f'"{wrong[0]}" is not an allowed value [{listed}]' if wrong else None

    return Constraint("allowed_values", description, {"AllowedValues": value}, check)


def _allowed_pattern(value: Any, description: str, manner: ConstraintContext) -> Constraint:
    if not isinstance(value, str):
        raise _wrong(f"AllowedPattern constraint must be a string, got {value!r}")
    try:
        compiled = patterns.compiled(value)
    except ValueError as error:
        raise _wrong(f"AllowedPattern {value!r} is not a regular expression: {error}") from error

    def check(text: Any) -> str | None:
        try:
            fits = patterns.fullmatch(compiled, text, manner.match_s)
        except patterns.TooComplicated as error:
            return f'"{text}" cannot be compared with pattern "{value}": {error}'
        return None if fits else f'"{text}" does not match pattern "{value}"'

    return Constraint("allowed_pattern", description, {"AllowedPattern": value}, check)


def _custom(value: Any, description: str, _manner: ConstraintContext) -> Constraint:
    if not isinstance(value, str):
        raise _wrong(f"The name of a custom constraint must be a string, got {value!r}")
    return Constraint("custom_constraint", description, {"CustomConstraint": value}, lambda _value: None, custom=value)


_PARSERS: Mapping[str, Callable[[Any, str, ConstraintContext], Constraint]] = {
    "modulo": _modulo,
    "range": _range,
    "length": _length,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}
