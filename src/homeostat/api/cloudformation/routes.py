"""The single route of the CloudFormation API: the parameter `Action` selects the action."""

import logging
from collections.abc import Mapping

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from homeostat.api.cloudformation import resources, responses, stacks
from homeostat.api.cloudformation.authentication import Authenticator
from homeostat.api.cloudformation.context import Action, ActionContext
from homeostat.api.cloudformation.errors import Refused, refused
from homeostat.api.cloudformation.parameters import FORM, Parameters, read_pairs
from homeostat.api.cloudformation.responses import Xml
from homeostat.api.cloudformation.signatures import SignedRequest
from homeostat.api.context import RequestContext, Service, heavy_place
from homeostat.api.http.addresses import base_of
from homeostat.api.http.fair_places import address_of
from homeostat.api.http.responses import Json
from homeostat.api.http.shares import Shares
from homeostat.api.http.versions import version_of
from homeostat.model.errors import Rejected, Transient

LOG = logging.getLogger(__name__)
ROUTER = APIRouter(tags=["cloudformation"])
ACTIONS: Mapping[str, Action] = {**stacks.ACTIONS, **resources.ACTIONS}
CHANGES = frozenset({"CancelUpdateStack", "CreateStack", "DeleteStack", "SignalResource", "UpdateStack"})
FOR_STACK_USERS = frozenset({"DescribeStackResource", "SignalResource"})
"""Actions for servers and users created by templates."""
HEAVY = frozenset({"CreateStack", "EstimateTemplateCost", "UpdateStack", "ValidateTemplate"})
"""Actions that check templates, which need a place."""
QUERY = [
    {
        "name": name,
        "in": "query",
        "required": name == "Action",
        "description": description,
        "schema": {"type": "string", "enum": values},
    }
    for name, description, values in (
        ("Action", "The action; each has its own parameters.", sorted(ACTIONS)),
        ("ContentType", "Format of the response; default: XML.", ["JSON"]),
    )
]
FORM_BODY = {"requestBody": {"content": {FORM: {"schema": {"type": "object", "additionalProperties": True}}}}}


@ROUTER.get("/v1", summary="Show the API version, or act as the CloudFormation API", tags=["service"])
@ROUTER.get("/v1/", include_in_schema=False)
async def show_version_or_act(request: Request) -> Response:
    """Show the API version. With the parameter `Action`, this is the CloudFormation API, as for POST."""
    if "Action" not in request.query_params:
        return Json({"version": version_of(request)})
    return await _answered(request)


@ROUTER.post(
    "/v1",
    summary="Act as the CloudFormation API",
    response_class=Xml,
    responses=responses.documented("Done."),
    openapi_extra={"parameters": QUERY, **FORM_BODY},
)
@ROUTER.post("/v1/", include_in_schema=False)
async def act(request: Request) -> Response:
    """Carry out an action. Parameters are in the query or in a form.

    Errors have the codes of AWS, in an `ErrorResponse`.
    """
    return await _answered(request)


async def _answered(request: Request) -> Response:
    as_json = request.query_params.get("ContentType") == "JSON"
    try:
        sent = await _sent(request)
        parameters = Parameters.of((*sent.query, *sent.form))
        as_json = parameters.get("ContentType") == "JSON"
        shares: Shares = request.app.state.service.shares
        async with shares.logins.one(address_of(request.scope)):
            action = await to_thread.run_sync(_admitted, request, sent, parameters, limiter=shares.login_threads)
        name = parameters.get("Action") or ""
        sharers = action.context.sharers
        heavy = heavy_place(request, sharers, action.context.client)
        async with heavy if name in HEAVY else shares.requests.one(sharers):
            return await to_thread.run_sync(_act, action, name, as_json)
    except (Refused, Rejected, Transient) as error:
        problem = refused(error)
        if isinstance(error, Transient):
            LOG.warning("%s %s put off (%s): %s", request.method, request.url.path, request.state.request_id, error)
    return responses.error(problem, as_json=as_json)


async def _sent(request: Request) -> SignedRequest:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    return SignedRequest(
        request.method,
        # Signatures cover the path as it was sent, still encoded.
        request.scope.get("raw_path", request.scope["path"].encode()).decode("latin-1"),
        read_pairs(request.scope["query_string"]),
        read_pairs(body.strip()) if kind == FORM else (),
        [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.scope["headers"]],
        body,
    )


def _admitted(request: Request, sent: SignedRequest, parameters: Parameters) -> ActionContext:
    """Authenticate and authorize the request. Raise Refused, Rejected or Transient."""
    admission: Authenticator = request.app.state.admission
    admitted = admission.admit(sent)
    name = parameters.get("Action") or ""
    if name not in ACTIONS:
        raise Refused("InvalidAction", f"Action is one of {', '.join(sorted(ACTIONS))}, not {name!r}.")
    if admitted.holder is not None and name not in FOR_STACK_USERS:
        allowed = ", ".join(sorted(FOR_STACK_USERS))
        raise Refused("AccessDenied", f"The key of {admitted.holder.name} is for {allowed} only.")
    if admitted.by_link and name in CHANGES:
        raise Refused("AccessDenied", f"{name} needs POST, or a signature in the header Authorization.")
    service: Service = request.app.state.service
    caller = service.policy.known(admitted.caller)
    service.buckets.take(admitted.project, caller.key, admitted.holder and admitted.holder.name)
    service.policy.check(f"cloudformation:{name}", caller, admitted.project)
    request.state.caller, request.state.project = caller, admitted.project
    context = RequestContext(service, caller, admitted.project, f"{base_of(request)}/v1")
    return ActionContext(context, parameters, admitted.holder)


def _act(action: ActionContext, name: str, as_json: bool) -> Response:
    return responses.answer(name, ACTIONS[name](action), as_json=as_json)
