"""Signed URLs: a request with a valid signature needs no account."""

from typing import Annotated, Any
from xml.etree import ElementTree

from fastapi import APIRouter, Path, Request
from starlette.responses import PlainTextResponse, Response

from homeostat.api.cloudformation import responses
from homeostat.api.cloudformation.responses import Xml
from homeostat.api.context import Service
from homeostat.api.http.faults import documented
from homeostat.api.http.inputs import SignalBody
from homeostat.api.http.path_convertors import ANY_PATH, SIGNED_ARN
from homeostat.api.http.responses import Json
from homeostat.builtin.inbox import SignalOutcome

ROUTER = APIRouter(prefix="/v1", tags=["signals"], responses=documented(400, 401, 403, 404, 405, 429, 500, 503))
TAKEN = responses.documented("Taken.")
"""Responses of signals: these paths belong to the CloudFormation API, so their errors have its format.

Only the errors 401 (no ARN in the address) and 405 are faults.
"""
SIGNED = f"{{arn:{ANY_PATH}}}"
EARLY = APIRouter(prefix="/v1", include_in_schema=False)
"""The same routes for addresses in the form of signed addresses, matched first.

Reporting fleets send only such requests, and matching all routes would take longer than the answer.
"""
Arn = Annotated[str, Path(description="`arn:openstack:heat::<project>:stacks/<name>/<id>/resources/<name>`.")]


@ROUTER.put(
    f"/waitcondition/{SIGNED}",
    summary="Signal a wait condition's handle at its signed address",
    response_class=Xml,
    responses=TAKEN,
)
def put_signal(request: Request, arn: Arn, body: SignalBody) -> Response:
    """Store a signal of a wait condition's handle.

    The response is sent as soon as the signal is stored. It names the resource; with `ContentType=JSON` it also has the
    metadata of the handle.
    """
    outcome = _signaled(request, body)
    if request.query_params.get("ContentType") == "JSON":
        return Json({"resource": outcome.name, "metadata": outcome.metadata})
    element = ElementTree.Element("resource")
    element.text = outcome.name
    return Xml(element)


@ROUTER.post(
    f"/signal/{SIGNED}",
    summary="Signal a resource at its signed address",
    response_class=PlainTextResponse,
    responses=TAKEN | {200: {"description": "Taken."}},
)
def post_signal(request: Request, arn: Arn, body: SignalBody) -> Response:
    """Store a signal of a resource. The response has no body."""
    _signaled(request, body)
    return PlainTextResponse()


@ROUTER.get(
    f"/metadata/{SIGNED}",
    summary="Show the metadata of a server at its signed address",
    responses={200: {"model": dict[str, Any], "description": "The metadata."}},
)
@ROUTER.head(f"/metadata/{SIGNED}", include_in_schema=False)
def show_metadata(request: Request, arn: Arn) -> Response:
    """Show the input of the agent on a server: the configs to apply, and the metadata of the template."""
    service: Service = request.app.state.service
    return Json(service.signals.metadata("GET", request.scope["path"], dict(request.query_params)))


EARLY.put(f"/waitcondition/{{arn:{SIGNED_ARN}}}")(put_signal)
EARLY.post(f"/signal/{{arn:{SIGNED_ARN}}}")(post_signal)
EARLY.api_route(f"/metadata/{{arn:{SIGNED_ARN}}}", methods=["GET", "HEAD"])(show_metadata)


def _signaled(request: Request, body: SignalBody) -> SignalOutcome:
    service: Service = request.app.state.service
    query = dict(request.query_params)
    return service.signals.signed(request.method, request.scope["path"], query, body)
