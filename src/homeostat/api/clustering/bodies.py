"""What requests of the Clustering API carry: their fields, checked one by one."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from homeostat.model.errors import Rejected

NAME = re.compile(r"[a-zA-Z\u4e00-\u9fa5\d._~-]*\Z")
NAME_MAX = 255
INTEGER_MAX = 2**31 - 1
Read = Callable[[Any, str], Any]
"""Check a value, named by its field; return it converted, or raise Rejected."""


def wrong(message: str) -> Rejected:
    return Rejected("BadRequest", message)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a body.

    Attributes:
        read: Checks its value.
        required: It may not be missing.
        nullable: null means that it is not given.
    """

    read: Read
    required: bool = False
    nullable: bool = True


Fields = Mapping[str, Field]


def unwrapped(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return what a body has under its only key.

    Raises:
        Rejected: BadRequest.
    """
    if key not in body:
        raise wrong(f"Malformed request data, missing '{key}' key in request body.")
    strange = next((name for name in body if name != key), None)
    if strange is not None:
        raise wrong(f"Additional properties are not allowed ('{strange}' was unexpected)")
    found = body[key]
    if not isinstance(found, Mapping):
        raise wrong(f"The value of '{key}' is not a map.")
    return found


def read(given: Mapping[str, Any], fields: Fields, ignored: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields that are given, checked and converted.

    Args:
        given: What the body has.
        fields: What it may have.
        ignored: Fields that an older microversion leaves out.

    Raises:
        Rejected: BadRequest names the field.
    """
    strange = next((name for name in given if name not in fields and name not in ignored), None)
    if strange is not None:
        known = ", ".join(fields)
        raise wrong(f"Additional properties are not allowed ('{strange}' was unexpected); there is {known}")
    found = {}
    for name, field in fields.items():
        if name in ignored or (given.get(name) is None and (name not in given or field.nullable)):
            if field.required:
                raise wrong(f"'{name}' is a required property")
            continue
        found[name] = field.read(given[name], name)
    return found


def name(value: Any, field: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_MAX or not NAME.match(value):
        raise wrong(
            f"The value for the {field} ({str(value)[:NAME_MAX]!r}) contains illegal characters, or is not of 1 to "
            f"{NAME_MAX} characters: letters, digits and ._~- are allowed."
        )
    return value


def text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise wrong(f"The value of '{field}' has to be a string.")
    if "\0" in value:
        raise wrong(f"The value of '{field}' may not hold a NUL character.")
    return value


def short(value: Any, field: str) -> str:
    """Return a text of at most 255 characters."""
    found = text(value, field)
    if len(found) > NAME_MAX:
        raise wrong(f"The value of '{field}' has {len(found)} characters; at most {NAME_MAX} are allowed.")
    return found


def reference(value: Any, field: str) -> str:
    """Return the id or the name of something."""
    found = text(value, field)
    if not found or len(found) > NAME_MAX:
        raise wrong(f"The value of '{field}' has to be an id or a name.")
    return found


def mapping(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(f"The value of '{field}' is not a map.")
    return dict(value)


def integer(least: int, most: int = INTEGER_MAX) -> Read:
    """Return what reads a whole number between these bounds, also as a text."""
    return partial(_integer, least, most)


def _integer(least: int, most: int, value: Any, field: str) -> int:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not (whole or isinstance(value, str)):
        raise wrong(f"The value for {field} ({value!r}) is not a number.")
    try:
        found = int(value)
    except ValueError:
        raise wrong(f"The value for {field} ({value!r}) is not a number.") from None
    if not least <= found <= most:
        raise wrong(f"The value for the {field} field must be between {least} and {most}, not {found}.")
    return found


def boolean(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "false", "yes", "no", "1", "0", "on", "off"):
        return word in ("true", "yes", "1", "on")
    raise wrong(f"Invalid value '{value}' specified for '{field}'")


def number(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong(f"The value for {field} ({value!r}) is not a number.")
    try:
        found = float(value)
    except ValueError:
        raise wrong(f"The value for {field} ({value!r}) is not a number.") from None
    if not abs(found) <= INTEGER_MAX:
        raise wrong(f"The value for {field} ({value!r}) is out of range.")
    return found


def one_of(*words: str) -> Read:
    """Return what reads one of these words."""
    return partial(_one_of, words)


def _one_of(words: Sequence[str], value: Any, field: str) -> str:
    if value not in words:
        listed = ", ".join(words)
        raise wrong(f"Value '{value}' is not acceptable for field '{field}'; it has to be one of: {listed}.")
    return str(value)


def references(value: Any, field: str) -> list[str]:
    """Return ids or names, each once."""
    if not isinstance(value, list) or not value:
        raise wrong(f"The value of '{field}' has to be a list with at least one item.")
    found = [reference(each, field) for each in value]
    if len(set(found)) < len(found):
        raise wrong(f"The value of '{field}' names something twice.")
    return found


def pairs(value: Any, field: str) -> dict[str, str]:
    """Return ids or names of old nodes, each with that of a new one; each only once."""
    if not isinstance(value, Mapping) or not value:
        raise wrong(f"The value of '{field}' has to be a map with at least one item.")
    found = {reference(old, field): reference(new, field) for old, new in value.items()}
    if len(set(found.values())) < len(found):
        raise wrong(f"The value of '{field}' names something twice.")
    return found


# -- as OpenAPI describes them -----------------------------------------------------------------------------------------

_TEXT: Mapping[str, Any] = {"type": "string"}
_SCHEMAS: Mapping[Read, Mapping[str, Any]] = {
    name: {**_TEXT, "minLength": 1, "maxLength": NAME_MAX},
    text: _TEXT,
    short: {**_TEXT, "maxLength": NAME_MAX},
    reference: {**_TEXT, "minLength": 1, "maxLength": NAME_MAX},
    mapping: {"type": "object"},
    boolean: {"type": "boolean"},
    number: {"type": "number"},
    references: {"type": "array", "items": _TEXT, "minItems": 1},
    pairs: {"type": "object", "additionalProperties": _TEXT, "minProperties": 1},
}


def schema(fields: Fields) -> dict[str, Any]:
    """Return the JSON schema of an object with these fields."""
    return {
        "type": "object",
        "properties": {name: _schema_of(field.read) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
        "additionalProperties": False,
    }


def _schema_of(read: Read) -> Mapping[str, Any]:
    if not isinstance(read, partial):
        return _SCHEMAS[read]
    if read.func is _one_of:
        return {**_TEXT, "enum": [str(word) for word in read.args[0]]}
    least, most = read.args
    return {"type": "integer", "minimum": least, "maximum": most}
