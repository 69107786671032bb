"""Adoption documents from users: validation, and the stack request that they complete."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.limits import too_deep
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.tags import check_tags
from homeostat.templates import parse_document, parse_environment
from homeostat.templates.registry import check_registry
from homeostat.transfer.adoption import is_document

Document = dict[str, Any]
ID_MAX = 1024
"""Characters of an id."""
MAPS = ("environment", "files", "template", "resources")
"""Sections of a document that must be maps."""


def read_document(data: Any, resources_max: int, depth_max: int) -> Document:
    """Parse and validate a document.

    Args:
        data: JSON or YAML text, or an object.
        resources_max: Resources of the stack and all its nested stacks.
        depth_max: Levels of nested stacks.

    Raises:
        Rejected: Names the place.
    """
    if not isinstance(data, str | dict):
        raise _wrong(f"it must be a map, or the text of one, not {type(data).__name__}")
    document = parse_document(data, "Adopt data")
    count = _check_stack(document, (), 0, depth_max)
    if count > resources_max:
        message = f"Request limit exceeded: the document has more than {resources_max} resources"
        raise Rejected("RequestLimitExceeded", message)
    return document


def _check_stack(document: Document, path: tuple[str, ...], depth: int, depth_max: int) -> int:
    """Check the document of one stack; return the number of its resources, nested ones included."""
    if depth > depth_max:
        raise too_deep(depth_max).at(*path)
    for name in MAPS:
        _check_map(document, name, path)
    for name, text in (document.get("files") or {}).items():
        if not isinstance(text, str):
            raise _wrong("it must be text", *path, "files", name)
    resources = document.get("resources") or {}
    return sum(
        _check_entry(entry, (*path, "resources", str(name)), depth, depth_max) for name, entry in resources.items()
    )


def _check_entry(entry: Any, path: tuple[str, ...], depth: int, depth_max: int) -> int:
    if not isinstance(entry, dict):
        raise _wrong("it must be a map", *path)
    for name in ("resource_id", "type", "action", "status"):
        value = entry.get(name)
        if value is not None and not isinstance(value, str):
            raise _wrong(f"it must be text, not {type(value).__name__}", *path, name)
    if len(entry.get("resource_id") or "") > ID_MAX:
        raise _wrong(f"an id has at most {ID_MAX} characters", *path, "resource_id")
    for name in ("metadata", "resource_data"):
        _check_map(entry, name, path)
    return 1 + (_check_stack(entry, path, depth + 1, depth_max) if is_document(entry) else 0)


def _check_map(among: Document, name: str, path: tuple[str, ...]) -> None:
    value = among.get(name)
    if value is not None and not isinstance(value, dict):
        raise _wrong("it must be a map", *path, name)


def _wrong(message: str, *path: str) -> Rejected:
    return Rejected("HTTPBadRequest", message, error="Invalid adopt data", path=path)


def completed(request: StackRequest, document: Mapping[str, Any]) -> StackRequest:
    """Return the request, completed from the document; its parameters override the document's, as in Heat."""
    stored = _environment(document)
    parameters = {**(stored.pop("parameters", None) or {}), **(request.environment.get("parameters") or {})}
    environment = {name: value for name, value in request.environment.items() if value and name != "parameters"}
    return replace(
        request,
        template=request.template if request.template is not None else document.get("template"),
        environment={**stored, **environment},
        parameters={**parameters, **request.parameters},
        files={**(document.get("files") or {}), **request.files},
        tags=request.tags if request.tags is not None else _tags(document),
    )


def _environment(document: Mapping[str, Any]) -> Document:
    """Return the document's environment. Empty (null) sections count as absent."""
    data = {name: value for name, value in (document.get("environment") or {}).items() if value is not None}
    environment = parse_environment(data)
    check_registry(environment.get("resource_registry", {}))
    return {name: value for name, value in environment.items() if name != "encrypted_param_names"}


def _tags(document: Mapping[str, Any]) -> list[str] | None:
    """Return the document's tags; None if absent. Raise Rejected for invalid tags."""
    tags = document.get("tags")
    try:
        return check_tags([str(tag) for tag in tags]) if isinstance(tags, list) and tags else None
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"adopt_stack_data.tags: {error}") from error
