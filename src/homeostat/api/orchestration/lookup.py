"""Routes that find a stack by name or id alone: redirects to the address with both, as in Heat.

They answer all methods and the short sub-addresses: some clients repeat the same method at the new address, others only
read the address.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext
from homeostat.api.http.inputs import quoted
from homeostat.api.http.path_convertors import ANY_PATH
from homeostat.api.http.responses import nothing
from homeostat.api.orchestration.routes import answers, router
from homeostat.model.errors import stack_not_found
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks

ROUTER = router("stacks")
BELOW = router("stacks")
"""Routes that must come before those with name and id, whose patterns also match their addresses."""
ARN = "/stacks/arn:openstack:heat::{arn_project}:stacks/{stack_name}/{stack_id}"
READ = (
    "resources",
    "events",
    "template",
    "actions",
    "convergence",
    "environment",
    "files",
    "explain",
    "graph",
    "revisions",
    "rollouts",
)
POSTED = ("resources", "events", "template", "actions")
FOUND = answers(None, "See the address in Location, with the same method.", 302)
Below = Annotated[str, Path(description="Address below the stack.")]
Stack = Annotated[str, Path(description="Name or id of the stack; deleted stacks are found by id.")]


def _redirect(context: RequestContext, row: StackRow, request: Request, *below: str) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return nothing(302, {"Location": "/".join([context.stack_url(row), *below]) + query})


def _find(context: RequestContext, name_or_id: str) -> StackRow:
    with context.db.read() as tx:
        row = context.find(tx, name_or_id)
    if row is None:
        raise stack_not_found(name_or_id)
    return row


def look_up(context: Context, stack: Stack, request: Request) -> Response:
    return _redirect(context, _find(context, stack), request)


def look_up_below(context: Context, stack: Stack, request: Request) -> Response:
    return _redirect(context, _find(context, stack), request, request.url.path.rpartition("/")[2])


def look_up_arn(context: Context, arn_project: str, stack_name: str, stack_id: str, request: Request) -> Response:
    return _redirect(context, _named(context, arn_project, stack_name, stack_id), request)


def look_up_below_arn(
    context: Context, arn_project: str, stack_name: str, stack_id: str, below: Below, request: Request
) -> Response:
    """Redirect to the address below a stack given by its ARN, as clients address resources of nested stacks."""
    return _redirect(
        context, _named(context, arn_project, stack_name, stack_id), request, *map(quoted, below.split("/"))
    )


def _named(context: RequestContext, arn_project: str, stack_name: str, stack_id: str) -> StackRow:
    with context.db.read() as tx:
        row = stacks.get(tx, stack_id)
    if row is None or (row.project, row.name) != (arn_project, stack_name) or not context.reaches(row):
        raise stack_not_found(f"{stack_name}/{stack_id}")
    return row


def _add(to: APIRouter, path: str, method: str, handler: Any, summary: str) -> None:
    place = path.replace("{stack}", "any").strip("/").replace("/", "_").split("arn:")[0] or "arn"
    to.add_api_route(
        path,
        handler,
        methods=[method],
        dependencies=[may("stacks:lookup")],
        summary=summary,
        status_code=302,
        response_class=Response,
        responses=FOUND,
        operation_id=f"{handler.__name__}_{place}_{method.lower()}",
    )


for _part in READ:
    _add(BELOW, f"/stacks/{{stack}}/{_part}", "GET", look_up_below, f"Find the {_part} of a stack by its name or id")
for _part in POSTED:
    _add(BELOW, f"/stacks/{{stack}}/{_part}", "POST", look_up_below, f"Find the {_part} of a stack by its name or id")
for _method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
    _add(ROUTER, "/stacks/{stack}", _method, look_up, "Find a stack by its name or id")
    _add(ROUTER, ARN, _method, look_up_arn, "Find a stack by its ARN")
    _add(BELOW, f"{ARN}/{{below:{ANY_PATH}}}", _method, look_up_below_arn, "Find what is below a stack by its ARN")
