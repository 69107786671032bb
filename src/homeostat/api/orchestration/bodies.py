"""Bodies of create, update and validate."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SkipValidation
from pydantic.json_schema import SkipJsonSchema

from homeostat.api.context import RequestContext
from homeostat.api.http.bodies import Fault, MapOrText, RequestBody, Texts, at_most
from homeostat.api.http.inputs import COUNT_MAX, Flag
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


def check_name(name: Any) -> str:
    """Return the valid name of a stack. Raise Rejected."""
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
    tags = value.split(",") if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("it must be a list of texts")
    return check_tags([tag.strip() for tag in tags if tag.strip()])


def _refuse_container(value: Any) -> None:
    if value:
        feature = "Reading files from an object store container (send them as files)"
        raise Rejected("NotSupported", f"{feature} is not supported.")


Names = Annotated[list[str], Field(fail_fast=True), Fault("it must be a list of texts")]


class TemplateRequest(RequestBody, extra="ignore"):
    """A template with all its inputs."""

    files_container: SkipJsonSchema[Annotated[None, BeforeValidator(_refuse_container)]] = None
    template: MapOrText = Field(None, description="The template: an object, or JSON or YAML text.")
    template_url: Annotated[
        str | None,
        Field(
            description="URL (http or https) from which the service fetches the template; ignored if `template` is "
            "given."
        ),
        Fault("it must be text"),
    ] = None
    parameters: dict[str, Any] | None = Field(
        None, description="Values; they take precedence over those of the environment."
    )
    environment: Annotated[MapOrText, BeforeValidator(lambda value: value or None)] = Field(
        None, description="An object, or JSON or YAML text."
    )
    files: Annotated[Texts, at_most(FILES.count or 0, "files")] | None = Field(
        None, description="Contents by name: for get_file, and for nested templates."
    )
    environment_files: Annotated[Names, at_most(ENVIRONMENT_FILES_MAX, "environment_files")] | None = Field(
        None,
        description="Names of environments among the files, merged in this order. `environment` is then ignored.",
    )


class UpdateRequest(TemplateRequest):
    """The desired state of a stack, and options. Unknown keys are ignored."""

    disable_rollback: Flag | None = None
    timeout_mins: Annotated[int, BeforeValidator(minutes)] | None = Field(
        None, description="Minutes; 0 means the service's default."
    )
    tags: Annotated[list[str], BeforeValidator(_tags, json_schema_input_type=str | list[str])] | None = Field(
        None, description="A list, or text separated by commas."
    )
    template_source: Annotated[
        str | None,
        Field(max_length=SOURCE_MAX, description="The file that the template was read from, for display in clients."),
        Fault(f"it must be a text of at most {SOURCE_MAX} characters"),
    ] = None
    clear_parameters: Names | None = Field(None, description="PATCH only: parameters whose stored values are dropped.")
    revision: Annotated[
        int | None,
        Field(
            ge=1,
            le=COUNT_MAX,
            description="PATCH only: number of the revision that supplies omitted parts; default: the newest.",
        ),
        Fault("the number of a revision is needed", ", got {input}"),
    ] = None
    converge: Flag | None = Field(
        None, description="Update only: observe every resource before the update is complete."
    )
    existing: Any = Field(None, description="PUT only: if true, update only the parts in the body, like PATCH.")


class CreateRequest(UpdateRequest):
    """A new stack. Unknown keys are ignored."""

    stack_name: str
    adopt_stack_data: Annotated[dict[str, Any] | str | None, SkipValidation] = Field(
        None,
        description="An exported stack: the new stack adopts the resources that it names, and creates the rest. "
        "Template, files, environment and parameters default to those of the document.",
    )

    @classmethod
    def check_form(cls, value: Mapping[str, Any]) -> None:
        """Check the name, and that there is no option of updates. Raise Rejected."""
        check_name(value.get("stack_name"))
        if value.get("converge"):
            raise Rejected("HTTPBadRequest", "converge is an option of updates, not of create")


def read_request(body: UpdateRequest, context: RequestContext) -> StackRequest:
    """Return the desired state in a body. Raise Rejected; see `read_template`."""
    return replace(
        read_template(body, context),
        disable_rollback=body.disable_rollback,
        timeout_mins=body.timeout_mins,
        tags=body.tags,
        template_source=body.template_source,
        clear_parameters=tuple(body.clear_parameters or ()),
        revision=body.revision,
        look_first=bool(body.converge),
    )


def read_template(body: TemplateRequest, context: RequestContext) -> StackRequest:
    """Return the template and its inputs. Raise Rejected.

    Args:
        body: The body.
        context: Checks the types that the caller may use, and fetches a template that is given by URL.
    """
    template, files, parameters = body.template, body.files or {}, body.parameters or {}
    if template is None or template == "":
        template = context.outbound.fetch(body.template_url) if body.template_url else None
    names = body.environment_files or ()
    return StackRequest(
        template=template,
        parameters={} if names else parameters,
        environment=_environment(names, files, parameters, template, body.environment),
        files=files,
        check_types=context.check_types,
        check_client=context.client.check,
    )


def _environment(
    names: Sequence[str],
    files: Mapping[str, str],
    parameters: Mapping[str, Any],
    template: Mapping[str, Any] | str | None,
    alone: dict[str, Any] | str | None,
) -> dict[str, Any]:
    """Return the environment merged from the named files; without names, the value of `environment`."""
    if names:
        root = parse_template(template) if template is not None else None
        environment = merged_environment(names, files, parameters, root)
    else:
        environment = parse_environment(alone)
    check_registry(environment.get("resource_registry", {}))
    return environment


def refuse_revision(request: StackRequest, *, patch: bool) -> None:
    """Raise Rejected for an update that replaces everything but names an earlier revision to start from."""
    if request.revision is not None and not patch:
        raise Rejected("HTTPBadRequest", "revision is for updates of parts (PATCH), which start from it")
