"""Route that validates a template without creating anything."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import HEAVY, Context
from homeostat.api.http.bodies import Read
from homeostat.api.http.inputs import Flag
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.bodies import TemplateRequest, read_template
from homeostat.api.orchestration.models.templates import Validation
from homeostat.api.orchestration.routes import answers, router
from homeostat.api.orchestration.views import NO_DESCRIPTION
from homeostat.desired.redaction import Redaction
from homeostat.json_pieces import Entries
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.prerequisites import UNAVAILABLE
from homeostat.services.pipeline.requirements import Nested
from homeostat.templates import validate_shape

ROUTER = router("templates")
IGNORABLE = {UNAVAILABLE}
SHOWN = ("Description", "Parameters", "ParameterGroups")
NO_STACK = "None"
"""Value of the pseudo parameters for id and name while there is no stack."""


@ROUTER.post(
    "/validate",
    dependencies=[may("stacks:validate_template"), HEAVY],
    summary="Validate a template",
    responses=answers(Validation),
)
def validate(
    context: Context,
    body: Read[TemplateRequest],
    show_nested: Annotated[Flag, Query(description="Include nested templates.")] = False,
    ignore_errors: Annotated[str, Query(description="Codes of errors to ignore, separated by commas.")] = "",
) -> Response:
    """Validate a template. Parameters without values are no error here."""
    ignored = set(filter(None, ignore_errors.split(",")))
    unknown = sorted(ignored - IGNORABLE)
    if unknown:
        raise Rejected("HTTPBadRequest", f"ignore_errors: unknown error codes {', '.join(unknown)}")
    request = read_template(body, context)
    compiled, nested = context.service.stack_service.validate(
        Identity(NO_STACK, NO_STACK, context.project), request, ignored
    )
    shape = validate_shape(compiled)
    shown_max, count = (
        context.service.stack_service.quotas.previewed_max,
        sum(1 + stack.needs.stacks for stack in nested.values()),
    )
    if show_nested and count > shown_max:
        message = f"{count} nested templates are more than the {shown_max} that can be shown: leave show_nested out"
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
    inside = {"NestedParameters": _inside(nested, Redaction().of(compiled))} if show_nested else {}
    return Json(shape | inside, remedy="leave show_nested out, or validate the nested templates by themselves")


def _inside(nested: Mapping[str, Nested], redaction: Redaction) -> Entries:
    """Return, by resource, the parameters of the nested template; groups and chains have none.

    Each entry is built on demand: resources with the same template share it in memory.
    """
    return Entries((name, _nested(template, redaction)) for name, template in nested.items())


def _nested(nested: Nested, redaction: Redaction) -> dict[str, Any]:
    view: dict[str, Any] = {"Type": nested.type, "Description": NO_DESCRIPTION, "Parameters": {}}
    if nested.compiled is not None:
        redaction = redaction.of(nested.compiled)
        shape = validate_shape(nested.compiled)
        view |= {key: redaction.plain(shape[key], by_name=False) for key in SHOWN if key in shape}
    return view | ({"NestedParameters": _inside(nested.needs.nested, redaction)} if nested.needs.nested else {})
