"""Routes for stacks: list, create, show, update, delete, and their templates, environments, files and outputs."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from sqlalchemy import Row
from starlette.datastructures import QueryParams
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.context import HEAVY, Ask, Body, Flag, RequestContext, StackId, StackName, described_body
from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json, nothing
from homeostat.api.orchestration import models, outputs
from homeostat.api.orchestration.bodies import (
    CreateRequest,
    UpdateRequest,
    read_intent,
    read_name,
    refuse_converge,
    refuse_revision,
)
from homeostat.api.orchestration.listing import StackQuery
from homeostat.api.orchestration.revision_text import environment_of, shown_template
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import is_deleted, link, stack_detail, stack_identity, stack_summary
from homeostat.store.stacks import stacks, views

ROUTER = router("stacks")


@ROUTER.get("/stacks", dependencies=[may("stacks:index")], summary="List stacks", responses=answers(models.Stacks))
def list_stacks(ask: Ask, query: Annotated[StackQuery, Query()], request: Request) -> Response:
    if query.global_tenant:
        ask.check("stacks:global_index")
    project = None if query.global_tenant else ask.listed_project
    listing = query.listing(project, ask.service.hidden_tags)
    with ask.db.read() as tx:
        rows = views.stacks_page(tx, listing)
        body: dict[str, Any] = {"stacks": [_item(ask, row, project) for row in rows]}
        if query.with_count:
            body["count"] = views.stacks_count(tx, listing)
    if listing.limit and len(rows) == listing.limit:
        body["links"] = [link("next", _next_page(ask, request.query_params, rows[-1].id))]
    return Json(body)


def _next_page(ask: RequestContext, params: QueryParams, marker: str) -> str:
    kept = [(name, value) for name, value in params.multi_items() if name != "marker"]
    return f"{ask.url(ask.project, 'stacks')}?{urlencode([*kept, ('marker', marker)])}"


@ROUTER.get(
    "/stacks/detail",
    dependencies=[may("stacks:detail")],
    summary="List stacks, as shown one by one",
    responses=answers(models.Stacks),
)
def list_stacks_detailed(ask: Ask) -> Response:
    """List live stacks that are neither nested nor hidden. Query parameters are ignored."""
    with ask.db.read() as tx:
        rows = views.stacks_page(tx, views.Listing(ask.listed_project, hidden_tags=ask.service.hidden_tags))
    return Json({"stacks": [_item(ask, row, ask.listed_project) for row in rows]})


def _item(ask: RequestContext, row: Row[Any], project: str | None) -> dict[str, Any]:
    """Build a list item; it names the project when all projects are listed."""
    return stack_summary(ask, row) if project is not None else {**stack_summary(ask, row), "project": row.project}


@ROUTER.post(
    "/stacks",
    dependencies=[may("stacks:create"), HEAVY],
    summary="Create a stack",
    status_code=201,
    responses=answers(models.CreatedStack, "Accepted; the stack is being created.", 201) | documented(409),
    openapi_extra=described_body(CreateRequest),
)
def create_stack(ask: Ask, body: Body) -> Response:
    name = read_name(body)
    refuse_converge(body)
    intent, document = read_intent(body, ask), body.get("adopt_stack_data") or None
    if document is None:
        stack_id = ask.service.intake.create(ask.project, ask.caller.user, name, intent, by=ask.caller)
    else:
        stack_id = ask.service.moving.adopt(ask.project, ask.caller.user, name, intent, document, ask.caller)
    with ask.db.read() as tx:
        row = stacks.get(tx, stack_id)
    return Json({"stack": stack_identity(ask, row)}, 201, {"Location": ask.stack_url(row)})


@ROUTER.get(STACK, dependencies=[may("stacks:show")], summary="Show a stack", responses=answers(models.ShownStack))
def show_stack(
    ask: Ask,
    stack_name: StackName,
    stack_id: StackId,
    resolve_outputs: Annotated[Flag, Query(description="Give the values of the outputs, too.")] = True,
) -> Response:
    """Show a stack, also a deleted one."""
    with ask.db.read() as tx:
        row = ask.stack(tx, stack_name, stack_id)
        graph = ask.service.graphs.described(tx, row)
        body = stack_detail(ask, tx, row, graph)
        if resolve_outputs and not is_deleted(row):
            body["outputs"] = outputs.resolved(tx, row, graph)
    return Json({"stack": body})


@ROUTER.put(
    STACK,
    dependencies=[may("stacks:update"), HEAVY],
    summary="Update a stack",
    status_code=202,
    response_class=Response,
    responses=answers(None, "Accepted; the stack is being updated.", 202),
    openapi_extra=described_body(UpdateRequest),
)
def update_stack(ask: Ask, stack_name: StackName, stack_id: StackId, body: Body) -> Response:
    """Replace template, parameters, environment, files and tags as a whole. Accepted in every state of the stack."""
    return _update(ask, stack_name, stack_id, body, patch=bool(body.get("existing")))


@ROUTER.patch(
    STACK,
    dependencies=[may("stacks:update_patch"), HEAVY],
    summary="Update parts of a stack",
    status_code=202,
    response_class=Response,
    responses=answers(None, "Accepted; the stack is being updated.", 202),
    openapi_extra=described_body(UpdateRequest),
)
def patch_stack(ask: Ask, stack_name: StackName, stack_id: StackId, body: Body) -> Response:
    """Update what the body has, and keep what it omits."""
    return _update(ask, stack_name, stack_id, body, patch=True)


def _update(ask: RequestContext, stack_name: str, stack_id: str, body: Body, *, patch: bool) -> Response:
    intent = read_intent(body, ask)
    refuse_revision(intent, patch=patch)
    with ask.db.read() as tx:
        ask.check_types_of(tx, ask.live_stack(tx, stack_name, stack_id))
    ask.service.intake.update(stack_id, intent, patch=patch, by=ask.caller)
    return nothing(202)


@ROUTER.delete(
    STACK,
    dependencies=[may("stacks:delete")],
    summary="Delete a stack",
    status_code=204,
    responses=answers(None, "Accepted; the stack is being deleted.", 204),
)
def delete_stack(ask: Ask, stack_name: StackName, stack_id: StackId) -> Response:
    with ask.db.read() as tx:
        ask.check_types_of(tx, ask.live_stack(tx, stack_name, stack_id))
    ask.service.intake.delete(stack_id, ask.caller)
    return nothing()


@ROUTER.get(
    f"{STACK}/template",
    dependencies=[may("stacks:template")],
    summary="Show the template of a stack",
    responses=answers(dict[str, Any]),
)
def show_template(ask: Ask, stack_name: StackName, stack_id: StackId) -> Response:
    with ask.db.read() as tx:
        graph = ask.service.graphs.described(tx, ask.stack(tx, stack_name, stack_id))
    return Json(shown_template(graph))


@ROUTER.get(
    f"{STACK}/environment",
    dependencies=[may("stacks:environment")],
    summary="Show the environment of a stack",
    responses=answers(models.Environment),
)
def show_environment(ask: Ask, stack_name: StackName, stack_id: StackId) -> Response:
    """Show the environment. Values of hidden parameters are not shown."""
    with ask.db.read() as tx:
        graph = ask.service.graphs.described(tx, ask.stack(tx, stack_name, stack_id))
    return Json(environment_of(graph))


@ROUTER.get(
    f"{STACK}/files",
    dependencies=[may("stacks:files")],
    summary="Show the files of a stack",
    responses=answers(dict[str, str]),
)
def show_files(ask: Ask, stack_name: StackName, stack_id: StackId) -> Response:
    with ask.db.read() as tx:
        graph = ask.service.graphs.described(tx, ask.stack(tx, stack_name, stack_id))
    return Json(dict(graph.desired.files))


@ROUTER.get(
    f"{STACK}/outputs",
    dependencies=[may("stacks:list_outputs")],
    summary="List the outputs of a stack",
    responses=answers(models.OutputNames),
)
def list_outputs(ask: Ask, stack_name: StackName, stack_id: StackId) -> Response:
    """List names and descriptions of the outputs, without values."""
    with ask.db.read() as tx:
        graph = ask.service.graphs.described(tx, ask.live_stack(tx, stack_name, stack_id))
    return Json({"outputs": outputs.declared(graph)})


@ROUTER.get(
    f"{STACK}/outputs/{{output_key}}",
    dependencies=[may("stacks:show_output")],
    summary="Show an output",
    responses=answers(models.ShownOutput),
)
def show_output(ask: Ask, stack_name: StackName, stack_id: StackId, output_key: str) -> Response:
    with ask.db.read() as tx:
        row = ask.live_stack(tx, stack_name, stack_id)
        output = outputs.resolved_one(tx, row, ask.service.graphs.described(tx, row), output_key)
    return Json({"output": output})
