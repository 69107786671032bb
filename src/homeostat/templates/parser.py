"""Text -> plain data: JSON first, then YAML, bounded in size, depth and expansion."""

import json
import math
from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates.yaml_parser import DEPTH_MAX, NODES_MAX, parse_yaml

SIZE_MAX = 524_288
"""Characters of a template text (`max_template_size`)."""

ENVIRONMENT_SECTIONS: Mapping[str, type] = {
    "parameters": dict,
    "parameter_defaults": dict,
    "parameter_merge_strategies": dict,
    "resource_registry": dict,
    "event_sinks": list,
    "encrypted_param_names": list,
}


def parse_template(source: str | bytes | Mapping[str, Any], *, size_max: int = SIZE_MAX) -> dict[str, Any]:
    """The template as plain data: dict, list, str, int, float, bool, None; keys are text.

    Takes: source — JSON or YAML text, or what a JSON request body held. Aliased parts are shared, not copied.
    Fails: Rejected HTTPBadRequest (line and column for broken YAML), RequestLimitExceeded (more than size_max
    characters).
    """
    document = _parse(source, "Template", size_max)
    if not isinstance(document, dict):
        found = "empty" if document is None else f"of type {type(document).__name__}"
        raise _malformed("Template", f"The template is not a JSON object or YAML mapping but {found}.")
    return document


def parse_document(source: str | Mapping[str, Any], what: str, *, size_max: int = 32 * SIZE_MAX) -> dict[str, Any]:
    """Any map as plain data. what — its name, for errors. Fails: Rejected, like `parse_template`."""
    document = _parse(source, what, size_max)
    if not isinstance(document, dict):
        raise _malformed(what, f"it is not a JSON object or YAML mapping but {type(document).__name__}")
    return document


def parse_environment(source: str | bytes | Mapping[str, Any] | None, *, size_max: int = SIZE_MAX) -> dict[str, Any]:
    """The environment as plain data with known sections only; nothing given is an empty one.

    Fails: Rejected HTTPBadRequest, also for a wrong or empty (null) section; RequestLimitExceeded.
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
    """Any JSON value. Fails: ValueError, also when it is nested too deeply or holds half a surrogate pair."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    check_bounds(value)
    return value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def check_bounds(value: Any) -> None:
    """Fails: ValueError when `value` is nested too deeply, too large to be walked with care, or has NaN or such."""
    count = 0
    level = [value]
    for _depth in range(DEPTH_MAX + 1):
        level = [child for each in level for child in _children(each)]
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
        text.encode()
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
