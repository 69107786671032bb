"""Parsing of the bodies of create, update and validate."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from homeostat.api.context import RequestContext
from homeostat.api.http.inputs import COUNT_MAX, flag
from homeostat.clouds.outbound import Outbound
from homeostat.model.errors import Rejected
from homeostat.model.limits import FILES
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.tags import check_tags
from homeostat.templates import parse_environment, parse_template
from homeostat.templates.environment_merge import merged_environment
from homeostat.templates.registry import check_registry

STACK_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")
NAME_MAX, SHOWN_MAX = 255, 40
SOURCE_MAX = 4096
ENVIRONMENT_FILES_MAX = 500

NOT_YET = {
    "files_container": "Reading files from an object store container (send them as files)",
}
"""Keys of Heat that are refused -> the feature, for the message."""


class TemplateRequest(BaseModel):
    """A template with all its inputs."""

    template: dict[str, Any] | str | None = Field(None, description="The template: an object, or JSON or YAML text.")
    template_url: str | None = Field(
        None,
        description="URL (http or https) from which the service fetches the template; ignored if `template` is given.",
    )
    parameters: dict[str, Any] | None = Field(
        None, description="Values; they take precedence over those of the environment."
    )
    environment: dict[str, Any] | str | None = Field(None, description="An object, or JSON or YAML text.")
    files: dict[str, Any] | None = Field(None, description="Contents by name: for get_file, and for nested templates.")
    environment_files: list[str] | None = Field(
        None,
        description="Names of environments among the files, merged in this order. `environment` is then ignored.",
    )


class UpdateRequest(TemplateRequest):
    """The desired state of a stack, and options. Unknown keys are ignored."""

    disable_rollback: bool | None = None
    timeout_mins: int | None = Field(None, description="Minutes; 0 means the service's default.")
    tags: str | list[str] | None = Field(None, description="A list, or text separated by commas.")
    template_source: str | None = Field(
        None, description="The file that the template was read from, for display in clients."
    )
    clear_parameters: list[str] | None = Field(
        None, description="PATCH only: parameters whose stored values are dropped."
    )
    revision: int | None = Field(
        None, description="PATCH only: number of the revision that supplies omitted parts; default: the newest."
    )
    converge: bool | None = Field(
        None, description="Update only: observe every resource before the update is complete."
    )


class CreateRequest(UpdateRequest):
    """A new stack. Unknown keys are ignored."""

    stack_name: str
    adopt_stack_data: dict[str, Any] | str | None = Field(
        None,
        description="An exported stack: the new stack adopts the resources that it names, and creates the rest. "
        "Template, files, environment and parameters default to those of the document.",
    )


def read_name(body: Mapping[str, Any]) -> str:
    """Return the valid name of the stack. Raise Rejected."""
    name = body.get("stack_name")
    if not name:
        raise Rejected("HTTPBadRequest", "No stack name specified")
    if not isinstance(name, str) or not STACK_NAME.fullmatch(name):
        beginning = name if not isinstance(name, str) or len(name) <= NAME_MAX else f"{name[:SHOWN_MAX]}…"
        message = (
            f'Invalid stack name {beginning}: it must begin with a letter, contain only letters, digits, "_", "-" and '
            '".", and be no longer than 255 characters.'
        )
        raise Rejected("StackValidationFailed", message)
    return name


def read_request(body: Mapping[str, Any], context: RequestContext) -> StackRequest:
    """Parse the body. Raise Rejected naming the invalid key.

    Args:
        context: Checks the types that the caller may use, and fetches a template that is given by URL.
    """
    for key, feature in NOT_YET.items():
        if body.get(key):
            raise Rejected("NotSupported", f"{feature} is not supported.")
    files = _files(body)
    template = _template(body, context.outbound)
    merged = _optional(body, "environment_files", _names) or ()
    _check_count(merged, "environment_files", ENVIRONMENT_FILES_MAX)
    return StackRequest(
        template=template,
        parameters={} if merged else _map(body, "parameters"),
        environment=_environment(body, merged, files, template),
        files=files,
        disable_rollback=_optional(body, "disable_rollback", flag),
        timeout_mins=_optional(body, "timeout_mins", minutes),
        tags=_optional(body, "tags", _tags),
        template_source=_optional(body, "template_source", _source),
        clear_parameters=tuple(_optional(body, "clear_parameters", _names) or ()),
        revision=_optional(body, "revision", _revision),
        look_first=bool(_optional(body, "converge", flag)),
        check_types=context.check_types,
        check_client=context.client.check,
    )


def _revision(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise ValueError(f"the number of a revision is needed, got {value!r}")
    return value


def refuse_revision(request: StackRequest, *, patch: bool) -> None:
    """Raise Rejected for an update that replaces everything but names an earlier revision to start from."""
    if request.revision is not None and not patch:
        raise Rejected("HTTPBadRequest", "revision is for updates of parts (PATCH), which start from it")


def refuse_converge(body: Mapping[str, Any]) -> None:
    """Raise Rejected if a creation has the option `converge`."""
    if body.get("converge"):
        raise Rejected("HTTPBadRequest", "converge is an option of updates, not of create")


def _optional(body: Mapping[str, Any], key: str, read: Callable[[Any], Any]) -> Any:
    value = body.get(key)
    if value is None:
        return None
    try:
        return read(value)
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"{key}: {error}") from error


def _map(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Rejected("HTTPBadRequest", f"{key}: it must be a map, not {type(value).__name__}")
    return value


def _template(body: Mapping[str, Any], outbound: Outbound) -> Mapping[str, Any] | str | None:
    template = body.get("template")
    if template is None or template == "":
        fetched: str | None = _optional(body, "template_url", lambda url: _fetched(url, outbound))
        return fetched
    if not isinstance(template, dict | str):
        raise Rejected("HTTPBadRequest", f"template: it must be a map or text, not {type(template).__name__}")
    return template


def _fetched(url: Any, outbound: Outbound) -> str | None:
    """Fetch the template at a URL. Raise ValueError or Rejected."""
    if not isinstance(url, str):
        raise ValueError(f"it must be text, not {type(url).__name__}")
    return outbound.fetch(url) if url else None


def _check_count(value: Collection[Any], key: str, count_max: int) -> None:
    if len(value) > count_max:
        message = f"Request limit exceeded: {key}: there are {len(value)}, more than {count_max}"
        raise Rejected("RequestLimitExceeded", message)


def _files(body: Mapping[str, Any]) -> dict[str, str]:
    files = _map(body, "files")
    _check_count(files, "files", FILES.count or 0)
    for name, content in files.items():
        if not isinstance(content, str):
            raise Rejected("HTTPBadRequest", f"files: the content of {name} must be text")
        if "\0" in content:
            raise Rejected("HTTPBadRequest", f"files: {name} holds a NUL character; encode what is no text (base64)")
    return files


def _environment(
    body: Mapping[str, Any], names: Sequence[str], files: Mapping[str, str], template: Mapping[str, Any] | str | None
) -> dict[str, Any]:
    """Return the environment merged from the named files; without names, the value of `environment`."""
    if names:
        root = parse_template(template) if template is not None else None
        environment = merged_environment(names, files, _map(body, "parameters"), root)
    else:
        value = body.get("environment") or None
        if value is not None and not isinstance(value, dict | str):
            raise Rejected("HTTPBadRequest", f"environment: it must be a map or text, not {type(value).__name__}")
        environment = parse_environment(value)
    check_registry(environment.get("resource_registry", {}))
    return environment


def minutes(value: Any) -> int:
    """Parse a number of minutes. Raise ValueError."""
    try:
        count = int(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"'{value}' is not a whole number of minutes") from error
    if not 0 <= count <= COUNT_MAX or isinstance(value, bool):
        raise ValueError(f"'{value}' is not a number of minutes from 0 to {COUNT_MAX}")
    return count


def _tags(value: Any) -> list[str]:
    tags = value.split(",") if isinstance(value, str) else _names(value)
    return check_tags([tag.strip() for tag in tags if tag.strip()])


def _source(value: Any) -> str:
    if not isinstance(value, str) or len(value) > SOURCE_MAX:
        raise ValueError(f"it must be a text of at most {SOURCE_MAX} characters")
    return value


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise ValueError("it must be a list of texts")
    return value
