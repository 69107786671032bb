"""Parsing of templates and environments: JSON or else YAML -> plain data, bounded in size, depth and expansion."""

import json
import math
from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates.yaml_parser import DEPTH_MAX, NODES_MAX, parse_yaml

SIZE_MAX = 524_288
"""Largest template text, in characters (Heat's option `max_template_size`)."""

ENVIRONMENT_SECTIONS: Mapping[str, type] = {
    "parameters": dict,
    "parameter_defaults": dict,
    "parameter_merge_strategies": dict,
    "resource_registry": dict,
    "event_sinks": list,
    "encrypted_param_names": list,
}
"""Section of an environment -> the required type of its content."""


def parse_template(source: str | bytes | Mapping[str, Any], *, size_max: int = SIZE_MAX) -> dict[str, Any]:
    """Parse a template into plain data: dict, list, str, int, float, bool, None; keys are text.

    Args:
        source: JSON or YAML text, or a map from a JSON request body.
        size_max: Largest text, in characters.

    Returns:
        The template. Parts repeated by YAML aliases are shared, not copied.

    Raises:
        Rejected: HTTPBadRequest (with line and column for broken YAML), or RequestLimitExceeded (more than `size_max`
            characters).
    """
    document = _parse(source, "Template", size_max)
    if not isinstance(document, dict):
        content = "empty" if document is None else f"of type {type(document).__name__}"
        raise _malformed("Template", f"The template is not a JSON object or YAML mapping but {content}.")
    return document


def parse_document(source: str | Mapping[str, Any], what: str, *, size_max: int = 32 * SIZE_MAX) -> dict[str, Any]:
    """Parse a document that must be a map into plain data.

    Args:
        source: As for `parse_template`.
        what: Name of the document in error messages.
        size_max: Largest text, in characters.

    Raises:
        Rejected: As `parse_template` does.
    """
    document = _parse(source, what, size_max)
    if not isinstance(document, dict):
        raise _malformed(what, f"it is not a JSON object or YAML mapping but {type(document).__name__}")
    return document


def parse_environment(source: str | bytes | Mapping[str, Any] | None, *, size_max: int = SIZE_MAX) -> dict[str, Any]:
    """Parse an environment into plain data with known sections only; None and an empty text give {}.

    Raises:
        Rejected: HTTPBadRequest, also for a section that is unknown, empty (null) or of the wrong type;
            RequestLimitExceeded.
    """
    document = {} if source is None else _parse(source, "Environment", size_max)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _malformed("Environment", "The environment is not a JSON object or YAML mapping.")
    for section, content in document.items():
        if section not in ENVIRONMENT_SECTIONS:
            raise _malformed("Environment", f'environment has wrong section "{section}"')
        if content is None:
            raise _malformed("Environment", f'environment has empty section "{section}"')
        if not isinstance(content, ENVIRONMENT_SECTIONS[section]):
            wanted = "map" if ENVIRONMENT_SECTIONS[section] is dict else "list"
            raise _malformed("Environment", f'environment section "{section}" must be a {wanted}')
    return document


def parse_json(text: str) -> Any:
    """Parse any JSON value.

    Raises:
        ValueError: `text` is not JSON, is nested too deeply, holds a number that is not finite, or holds half a
            surrogate pair.
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Only an escape can hide half a surrogate pair, which no database and no client could encode later: encode now.
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    check_bounds(value)
    return value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def check_bounds(value: Any) -> None:
    """Check that plain data can be walked safely.

    Raises:
        ValueError: `value` is nested more than `DEPTH_MAX` levels deep, has more than `NODES_MAX` values, or holds a
            number that is not finite.
    """
    # Level by level, not recursively: the data may be nested more deeply than the stack of the interpreter.
    count = 0
    level = [value]
    for _depth in range(DEPTH_MAX + 1):
        level = [child for parent in level for child in _children(parent)]
        count += len(level)
        if count > NODES_MAX:
            raise ValueError(f"it holds more than {NODES_MAX} values")
        if not level:
            return
    raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"it holds a number that is not finite: {value}")
    return value if isinstance(value, list) else ()


def _malformed(what: str, problem: str) -> Rejected:
    return Rejected("HTTPBadRequest", f"{what} not in valid format: {problem}")


def _parse(source: str | bytes | Mapping[str, Any], what: str, size_max: int) -> Any:
    try:
        if isinstance(source, Mapping):
            check_bounds(source)
            return dict(source)
        text = source if isinstance(source, str) else source.decode("utf-8-sig")
        text.encode()  # raises ValueError for half a surrogate pair
        if len(text) > size_max:
            raise Rejected(
                "RequestLimitExceeded",
                f"Request limit exceeded: {what} size ({len(text)} characters) exceeds maximum allowed size "
                f"({size_max} characters).",
            )
        try:
            return parse_json(text)
        except json.JSONDecodeError:
            return parse_yaml(text)
    except ValueError as error:
        raise _malformed(what, str(error)) from error
