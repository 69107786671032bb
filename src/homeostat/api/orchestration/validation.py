"""Templates checked without creating anything."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from homeostat.api.answers import Json
from homeostat.api.asking import Ask, Body, Flag, described_body
from homeostat.api.existing import UNAVAILABLE
from homeostat.api.orchestration import models
from homeostat.api.orchestration.bodies import TemplateRequest, read_intent
from homeostat.api.orchestration.routing import answers, router
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.templates import validate_shape

ROUTER = router("templates")
IGNORABLE = {UNAVAILABLE}
NOBODY = "None"
"""What the pseudo parameters for id and name say while there is no stack."""


@ROUTER.post(
    "/validate",
    summary="Validate a template",
    responses=answers(models.Validation),
    openapi_extra=described_body(TemplateRequest),
)
def validate(
    ask: Ask,
    body: Body,
    show_nested: Annotated[Flag, Query(description="Tell of nested templates, too (there are none yet).")] = False,
    ignore_errors: Annotated[str, Query(description="Codes of errors to ignore, separated by commas.")] = "",
) -> Response:
    """Parameters without values are no error here."""
    ignored = set(filter(None, ignore_errors.split(",")))
    unknown = sorted(ignored - IGNORABLE)
    if unknown:
        raise Rejected("HTTPBadRequest", f"ignore_errors: unknown error codes {', '.join(unknown)}")
    intent = read_intent(body, ask.outbound)
    compiled = ask.service.intake.validate(Identity(NOBODY, NOBODY, ask.project), intent, ignored)
    shape = validate_shape(compiled)
    return Json(shape | {"NestedParameters": {}} if show_nested else shape)
