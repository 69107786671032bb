"""Fields of request bodies of the Clustering API, and their checks."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.limits import KEYS_MAX, METADATA
from homeostat.store.schema import json_size

NAME = re.compile(r"[a-zA-Z\u4e00-\u9fa5\d._~-]*\Z")
NAME_MAX = 255
INTEGER_MAX = 2**31 - 1
Read = Callable[[Any, str], Any]
"""Check a value, named by its field; return it converted, or raise Rejected."""


_BOOLEANS = {"true": ("1", "on", "t", "true", "y", "yes"), "false": ("0", "f", "false", "n", "no", "off")}


def wrong(message: str, remedy: str = "") -> Rejected:
    """Return the error for an invalid request, in the words of Senlin, with a remedy."""
    return Rejected("BadRequest", message, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a body.

    Attributes:
        read: Checks and converts the value.
        required: Whether the field must be present.
        nullable: Whether null counts as absent, for a field that is not required.
    """

    read: Read
    required: bool = False
    nullable: bool = True


Fields = Mapping[str, Field]


def unwrapped(body: Mapping[str, Any], key: str, *, changing: bool = False) -> Mapping[str, Any]:
    """Return the value under the only key of a body; `changing` selects Senlin's message for updates.

    Raises:
        Rejected: BadRequest.
    """
    if key not in body:
        changes = f"Malformed request data, missing '{key}' key in request body."
        raise wrong(changes if changing else f"Request body missing '{key}' key.")
    strange = [name for name in body if name != key]
    if strange:
        raise _unexpected(strange, [key])
    value = body[key]
    if not isinstance(value, Mapping):
        raise wrong(f"The value of '{key}' is not a map.")
    return value


def read(values: Mapping[str, Any], fields: Fields, ignored: Collection[str] = ()) -> dict[str, Any]:
    """Return the present fields, checked and converted.

    Args:
        values: The body.
        fields: The allowed fields.
        ignored: Fields unknown to an older microversion.

    Raises:
        Rejected: BadRequest names the field.
    """
    checked = {}
    for name, field in fields.items():
        if name in ignored or name not in values:
            continue
        if values[name] is None and field.required:
            raise wrong(f"Field `{name}' cannot be None")
        if values[name] is not None or not field.nullable:
            checked[name] = field.read(values[name], name)
    missing = next((name for name, field in fields.items() if field.required and name not in values), None)
    if missing is not None:
        raise wrong(f"'{missing}' is a required property")
    strange = [name for name in values if name not in fields and name not in ignored]
    if strange:
        raise _unexpected(strange, fields)
    return checked


def _unexpected(strange: Sequence[str], known: Collection[str]) -> Rejected:
    listed = ", ".join(map(repr, strange))
    verb = "was" if len(strange) == 1 else "were"
    return wrong(f"Additional properties are not allowed ({listed} {verb} unexpected)", f"there is {', '.join(known)}")


def name(value: Any, field: str) -> str:
    checked = text(value, field)
    start = f"The value for the {field} field must be"
    if not checked:
        raise wrong(f"{start} at least 1 characters long.")
    if len(checked) > NAME_MAX:
        raise wrong(f"{start} less than {NAME_MAX} characters long.")
    if not NAME.match(checked):
        may = 'It must contain only alphanumeric or "_-.~" characters and must start with letter.'
        raise wrong(f"The value for the '{field}' ({checked}) contains illegal characters. {may}")
    return checked


def text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise wrong(f"A string is required in field {field}, not a {type(value).__name__}")
    if "\0" in value:
        raise wrong(f"The value of '{field}' may not hold a NUL character.")
    return value


def short(value: Any, field: str) -> str:
    """Return a text of at most 255 characters."""
    checked = text(value, field)
    if len(checked) > NAME_MAX:
        raise wrong(f"The value of '{field}' has {len(checked)} characters; at most {NAME_MAX} are allowed.")
    return checked


def reference(value: Any, field: str) -> str:
    """Return an id or a name."""
    checked = text(value, field)
    if not checked or len(checked) > NAME_MAX:
        raise wrong(f"The value of '{field}' has to be an id or a name.")
    return checked


def mapping(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(f"{value!r} is not of type 'object'", f"at {field}")
    return dict(value)


def metadata(value: Any, field: str) -> dict[str, Any]:
    """Check metadata of a cluster or node: a map that is not too large."""
    checked = mapping(value, field)
    if len(checked) > KEYS_MAX:
        raise wrong(f"The metadata of a cluster or node have at most {KEYS_MAX} keys.")
    METADATA.check(0, 0, json_size(checked), 0)
    return checked


def integer(least: int, most: int = INTEGER_MAX) -> Read:
    """Return the reader of an integer between these bounds, also in a string."""
    return partial(_integer, least, most)


def _integer(least: int, most: int, value: Any, field: str) -> int:
    number = _whole(value)
    if number is None:
        raise wrong(f"The value for {field} must be an integer: '{value}'.")
    start = f"The value for the {field} field must be"
    if number < least:
        is_count = most == INTEGER_MAX
        message = f"Value must be >= {least} for field '{field}'."
        raise wrong(message if is_count else f"{start} greater than or equal to {least}.")
    if number > most:
        raise wrong(f"{start} less than or equal to {most}.")
    return number


def _whole(value: Any) -> int | None:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not (whole or isinstance(value, str)):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def boolean(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    known = sorted(known_word for words in _BOOLEANS.values() for known_word in words)
    if word not in known:
        listed = ", ".join(f"'{known_word}'" for known_word in known)
        raise wrong(f"Unrecognized value '{value}', acceptable values are: {listed}", f"at {field}")
    return word in _BOOLEANS["true"]


def number(value: Any, field: str) -> float:
    message = f"could not convert string to float: {str(value)!r}"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong(message, f"at {field}")
    try:
        result = float(value)
    except ValueError:
        raise wrong(message, f"at {field}") from None
    if not abs(result) <= INTEGER_MAX:
        raise wrong(f"The value for {field} ({value!r}) is out of range.")
    return result


def one_of(*words: str) -> Read:
    """Return the reader of a word out of these."""
    return partial(_one_of, words)


def _one_of(words: Sequence[str], value: Any, field: str) -> str:
    if value not in words:
        raise wrong(f"Value '{value}' is not acceptable for field '{field}'.", f"there is {', '.join(words)}")
    return str(value)


def references(value: Any, field: str) -> list[str]:
    """Return ids or names without duplicates."""
    if not value:
        raise wrong(f"Value for '{field}' must have at least 1 item(s).")
    twice = wrong(f"Items for '{field}' must be unique", "give a list of ids or names, each once")
    if not isinstance(value, list):  # in Senlin a text is the list of its letters
        raise twice
    if None in value:
        raise wrong(f"Field `{field}[{value.index(None)}]' cannot be None")
    checked = [reference(item, field) for item in value]
    if len(set(checked)) < len(checked):
        raise twice
    return checked


def pairs(value: Any, field: str) -> dict[str, str]:
    """Return old node -> new node, by ids or names; no new node is named twice."""
    if not isinstance(value, Mapping) or not value:
        raise wrong("The data provided is not a map", f"at {field}: ids of old nodes, each with that of a new one")
    empty = next((old for old, new in value.items() if new is None), None)
    if empty is not None:
        raise wrong(f"Field `{field}[{empty}]' cannot be None")
    checked = {reference(old, field): reference(new, field) for old, new in value.items()}
    if len(set(checked.values())) < len(checked):
        raise wrong("Map contains duplicated values")
    return checked


# -- as OpenAPI describes them -----------------------------------------------------------------------------------------

_TEXT: Mapping[str, Any] = {"type": "string"}
_SCHEMAS: Mapping[Read, Mapping[str, Any]] = {
    name: {**_TEXT, "minLength": 1, "maxLength": NAME_MAX},
    text: _TEXT,
    short: {**_TEXT, "maxLength": NAME_MAX},
    reference: {**_TEXT, "minLength": 1, "maxLength": NAME_MAX},
    mapping: {"type": "object"},
    metadata: {"type": "object"},
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
