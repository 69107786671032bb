"""Routes for stacks: list, create, show, update, delete, and their templates, environments, files and outputs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import HEAVY, Context, RequestContext, StackId, StackName
from homeostat.api.http.bodies import Read
from homeostat.api.http.faults import documented
from homeostat.api.http.inputs import COUNT_MAX, Flag
from homeostat.api.http.responses import Json, json_stream, nothing
from homeostat.api.orchestration import outputs
from homeostat.api.orchestration.bodies import (
    CreateRequest,
    UpdateRequest,
    read_request,
    refuse_revision,
)
from homeostat.api.orchestration.listing import StackQuery
from homeostat.api.orchestration.models.stacks import (
    CreatedStack,
    Environment,
    OutputNames,
    ShownOutput,
    ShownStack,
    Stack,
    StackDetail,
    Stacks,
    StackSummary,
)
from homeostat.api.orchestration.revision_match import IfMatch, check_match, tag_of
from homeostat.api.orchestration.revision_text import AS_YAML, environment_of, shown_template, text_or_json
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import is_deleted, link, stack_detail, stack_identity, stack_summary
from homeostat.json_pieces import Entries, Items
from homeostat.model.errors import Transient
from homeostat.revision_diff import yaml_text
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks, views
from homeostat.store.stacks.views import Listing

ROUTER = router("stacks")
READ_MAX = 500
"""Stacks that a list reads at once."""


@ROUTER.get("/stacks", dependencies=[may("stacks:index")], summary="List stacks", responses=answers(Stacks))
def list_stacks(context: Context, query: Annotated[StackQuery, Query()], request: Request) -> Response:
    if query.global_tenant:
        context.check("stacks:global_index")
    project = None if query.global_tenant else context.listed_project
    listing = query.listing(project, context.service.hidden_tags)
    return json_stream(Entries(_page(context, request, query, listing)))


def _page(context: RequestContext, request: Request, query: StackQuery, listing: Listing) -> Iterator[tuple[str, Any]]:
    """Yield the entries of the response; the link comes last, since it depends on the stacks."""
    last: list[str] = []
    yield "stacks", Items(_items(context, listing, last), small=True)
    if query.with_count:
        with context.db.read() as tx:
            count = views.stacks_count(tx, listing)
        yield "count", count
    if last:
        yield "links", [link("next", _next_page(context, request.query_params, last[0]))]


def _items(context: RequestContext, listing: Listing, last: list[str]) -> Iterator[StackSummary]:
    """Yield the stacks of a list, read in parts; put the id of the last into `last` if further stacks may follow."""
    left, marker = listing.limit or COUNT_MAX, listing.marker
    while left:
        count = min(left, READ_MAX)
        with context.db.read() as tx:
            if marker != listing.marker and stacks.get(tx, marker or "") is None:
                raise Transient("the list changed while it was read")
            rows = views.stacks_page(tx, replace(listing, marker=marker, limit=count))
        for row in rows:
            yield _item(context, row, listing.project)
        left -= len(rows)
        if len(rows) < count:
            return
        marker = rows[-1].id
    if marker is not None:
        last.append(marker)


def _next_page(context: RequestContext, params: QueryParams, marker: str) -> str:
    parameters = [(name, value) for name, value in params.multi_items() if name != "marker"]
    return f"{context.url(context.project, 'stacks')}?{urlencode([*parameters, ('marker', marker)])}"


@ROUTER.get(
    "/stacks/detail",
    dependencies=[may("stacks:detail")],
    summary="List stacks, as shown one by one",
    responses=answers(Stacks),
)
def list_stacks_detailed(context: Context) -> Response:
    """List live stacks that are neither nested nor hidden. Query parameters are ignored."""
    listing = Listing(context.listed_project, hidden_tags=context.service.hidden_tags)
    return json_stream({"stacks": Items(_items(context, listing, []), small=True)})


def _item(context: RequestContext, row: StackRow, project: str | None) -> StackSummary:
    """Build a list item; it names the project when all projects are listed."""
    return (
        stack_summary(context, row) if project is not None else {**stack_summary(context, row), "project": row.project}
    )


@ROUTER.post(
    "/stacks",
    dependencies=[may("stacks:create"), HEAVY],
    summary="Create a stack",
    status_code=201,
    responses=answers(CreatedStack, "Accepted; the stack is being created.", 201) | documented(409),
)
def create_stack(context: Context, body: Read[CreateRequest]) -> Response:
    name, document = body.stack_name, body.adopt_stack_data or None
    request = read_request(body, context)
    if document is None:
        stack_id = context.service.stack_service.create(
            context.project, context.caller.user, name, request, by=context.caller
        )
    else:
        stack_id = context.service.transfer.adopt(
            context.project, context.caller.user, name, request, document, context.caller
        )
    with context.db.read() as tx:
        row = stacks.get(tx, stack_id)
    return Json({"stack": stack_identity(context, row)}, 201, {"Location": context.stack_url(row)})


@ROUTER.get(STACK, dependencies=[may("stacks:show")], summary="Show a stack", responses=answers(ShownStack))
def show_stack(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    resolve_outputs: Annotated[Flag, Query(description="Include the values of the outputs.")] = True,
) -> Response:
    """Show a stack, also a deleted one."""
    with context.db.read() as tx:
        row = context.stack(tx, stack_name, stack_id)
        graph = context.service.graphs.described(tx, row)
        body: StackDetail = stack_detail(context, tx, row, graph)
        if resolve_outputs and not is_deleted(row):
            with_outputs: Stack = {**body, "outputs": outputs.resolved(tx, row, graph)}
            body = with_outputs
    return Json({"stack": body}, headers=tag_of(row.revision))


@ROUTER.put(
    STACK,
    dependencies=[may("stacks:update"), HEAVY],
    summary="Update a stack",
    status_code=202,
    response_class=Response,
    responses=answers(None, "Accepted; the stack is being updated.", 202) | documented(412),
)
def update_stack(
    context: Context, stack_name: StackName, stack_id: StackId, body: Read[UpdateRequest], if_match: IfMatch = None
) -> Response:
    """Replace template, parameters, environment, files and tags as a whole. Accepted in every state of the stack.

    With `If-Match`, the stack must still be at this revision. The response has the `ETag` of the new revision.
    """
    return _update(context, stack_name, stack_id, body, if_match, patch=bool(body.existing))


@ROUTER.patch(
    STACK,
    dependencies=[may("stacks:update_patch"), HEAVY],
    summary="Update parts of a stack",
    status_code=202,
    response_class=Response,
    responses=answers(None, "Accepted; the stack is being updated.", 202) | documented(412),
)
def patch_stack(
    context: Context, stack_name: StackName, stack_id: StackId, body: Read[UpdateRequest], if_match: IfMatch = None
) -> Response:
    """Update the parts in the body and keep all omitted ones; `If-Match` as for a whole update."""
    return _update(context, stack_name, stack_id, body, if_match, patch=True)


def _update(
    context: RequestContext, stack_name: str, stack_id: str, body: UpdateRequest, if_match: str | None, *, patch: bool
) -> Response:
    request = read_request(body, context)
    refuse_revision(request, patch=patch)
    with context.db.read() as tx:
        context.check_types_of(tx, context.live_stack(tx, stack_name, stack_id))
        check_match(tx, stack_id, if_match)

    def check_again(tx: Transaction) -> None:
        check_match(tx, stack_id, if_match)

    service = context.service.stack_service
    number = service.update(stack_id, request, patch=patch, by=context.caller, first=check_again)
    return nothing(202, tag_of(number))


@ROUTER.delete(
    STACK,
    dependencies=[may("stacks:delete")],
    summary="Delete a stack",
    status_code=204,
    responses=answers(None, "Accepted; the stack is being deleted.", 204),
)
def delete_stack(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    with context.db.read() as tx:
        context.check_types_of(tx, context.live_stack(tx, stack_name, stack_id))
    context.service.stack_service.delete(stack_id, context.caller)
    return nothing()


@ROUTER.get(
    f"{STACK}/template",
    dependencies=[may("stacks:template")],
    summary="Show the template of a stack",
    responses=answers(dict[str, Any], more=AS_YAML),
)
def show_template(context: Context, stack_name: StackName, stack_id: StackId, request: Request) -> Response:
    with context.db.read() as tx:
        graph = context.service.graphs.described(tx, context.stack(tx, stack_name, stack_id))
    template = shown_template(graph)
    return text_or_json(request, template, lambda: yaml_text(template))


@ROUTER.get(
    f"{STACK}/environment",
    dependencies=[may("stacks:environment")],
    summary="Show the environment of a stack",
    responses=answers(Environment),
)
def show_environment(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    """Show the environment. Values of hidden parameters are not shown."""
    with context.db.read() as tx:
        graph = context.service.graphs.described(tx, context.stack(tx, stack_name, stack_id))
    return Json(environment_of(graph))


@ROUTER.get(
    f"{STACK}/files",
    dependencies=[may("stacks:files")],
    summary="Show the files of a stack",
    responses=answers(dict[str, str]),
)
def show_files(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    with context.db.read() as tx:
        graph = context.service.graphs.described(tx, context.stack(tx, stack_name, stack_id))
    return Json(dict(graph.content.files))


@ROUTER.get(
    f"{STACK}/outputs",
    dependencies=[may("stacks:list_outputs")],
    summary="List the outputs of a stack",
    responses=answers(OutputNames),
)
def list_outputs(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    """List names and descriptions of the outputs, without values."""
    with context.db.read() as tx:
        graph = context.service.graphs.described(tx, context.live_stack(tx, stack_name, stack_id))
    return Json({"outputs": outputs.declared(graph)})


@ROUTER.get(
    f"{STACK}/outputs/{{output_key}}",
    dependencies=[may("stacks:show_output")],
    summary="Show an output",
    responses=answers(ShownOutput),
)
def show_output(context: Context, stack_name: StackName, stack_id: StackId, output_key: str) -> Response:
    with context.db.read() as tx:
        row = context.live_stack(tx, stack_name, stack_id)
        output = outputs.resolved_one(tx, row, context.service.graphs.described(tx, row), output_key)
    return Json({"output": output})
