"""Routes for the resources of stacks: list, show, metadata."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field
from starlette.datastructures import QueryParams
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.inputs import COUNT_MAX, Flag
from homeostat.api.http.responses import Json, json_stream
from homeostat.api.orchestration.inventory import Entry, Inventory
from homeostat.api.orchestration.models import resources as models
from homeostat.api.orchestration.models.resources import Metadata, Resources, ShownResource
from homeostat.api.orchestration.resource_parts import some_at_a_time
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import link
from homeostat.builtin.group_metadata import INSTANCES, VirtualLocation, instance_metadata
from homeostat.builtin.signals import metadata_of
from homeostat.json_pieces import Entries, Items
from homeostat.model.errors import Rejected
from homeostat.model.status import joined
from homeostat.resources.registry import shown_id
from homeostat.store.database import Transaction
from homeostat.store.stacks import views

ROUTER = router("resources")
Listed = tuple[str, models.Resource]
"""A resource of a list: its marker and its response."""


class ResourceQuery(BaseModel):
    """Filters of the resource list. All but `type` may be repeated; a resource needs one of the values."""

    limit: int | None = Field(None, ge=0, le=COUNT_MAX, description="Length of a page; 0 for all.")
    marker: str | None = Field(
        None, description="The last resource of the page before: its name, or ID/NAME with the id of a nested stack."
    )
    nested_depth: int = Field(0, ge=0, le=COUNT_MAX, description="Levels of nested stacks to list, too.")
    with_detail: Flag = Field(False, description="With descriptions and attributes.")
    with_differences: Flag = Field(
        False, description="With the properties that differ between template, last applied values and cloud."
    )
    type: list[str] = Field([], max_length=1, description="Part of the type's name.")
    name: list[str] = []
    status: list[str] = Field([], description="COMPLETE, or joined with the action: CREATE_COMPLETE.")
    action: list[str] = []
    id: list[str] = Field([], description="Physical id, like physical_resource_id.")
    physical_resource_id: list[str] = []

    @cached_property
    def takes_all(self) -> bool:
        return not (self.type or self.name or self.status or self.action or self.id or self.physical_resource_id)

    def fits(self, entry: Entry) -> bool:
        if self.takes_all:
            return True
        handle = shown_id(entry.row.type, entry.row.handle) if entry.row is not None else ""
        states = (entry.status, joined(entry.action, entry.status))
        return (
            all(part in entry.type for part in self.type)
            and (not self.name or entry.name in self.name)
            and (not self.action or entry.action in self.action)
            and (not self.status or any(state in self.status for state in states))
            and all(not wanted or handle in wanted for wanted in (self.id, self.physical_resource_id))
        )


@ROUTER.get(
    f"{STACK}/resources",
    dependencies=[may("resource:index")],
    summary="List the resources of a stack",
    responses=answers(Resources),
)
def list_resources(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    query: Annotated[ResourceQuery, Query()],
    request: Request,
) -> Response:
    """List the desired resources, started or not, and the resources that are being removed.

    Unknown query parameters are refused.
    """
    unknown = sorted(request.query_params.keys() - ResourceQuery.model_fields.keys())
    if unknown:
        raise Rejected("HTTPBadRequest", f"Invalid filter parameters {unknown}")
    with context.db.read() as tx:
        top = context.stack(tx, stack_name, stack_id)
        ids = [stack.id for stack in (top, *views.descendants(tx, top, query.nested_depth))]
    url = f"{context.stack_url(top)}/resources"
    return json_stream(Entries(_page(context, query, ids, url, request.query_params)))


def _page(
    context: RequestContext, query: ResourceQuery, ids: Sequence[str], url: str, params: QueryParams
) -> Iterator[tuple[str, Any]]:
    """Yield the entries of the response; the link comes last, since it depends on the resources."""
    items = _fitting(context, query, ids)
    last: list[str] = []
    # Without details a resource is about as large as its row, of which few bytes are read at once.
    small = not (query.with_detail or query.with_differences)
    yield "resources", Items(_counted(items, query.limit, last), small=small)
    if last:
        asked = [(name, value) for name, value in params.multi_items() if name != "marker"]
        yield "links", [link("next", f"{url}?{urlencode([*asked, ('marker', last[0])])}")]


def _counted(items: Iterator[Listed], limit: int | None, last: list[str]) -> Iterator[models.Resource]:
    """Yield a page; put the marker of its end into `last` if further resources follow."""
    marker = ""
    for count, item in enumerate(items):
        if limit and count == limit:
            last.append(marker)
            return
        marker, view = item
        yield view


def _fitting(context: RequestContext, query: ResourceQuery, ids: Sequence[str]) -> Iterator[Listed]:
    """Yield the resources that match the query, each with its marker, after the marker of the query.

    Raises:
        Rejected: HTTPBadRequest: The marker's resource is gone.
    """
    top = ids[0]
    of, _, after = (query.marker or "").rpartition("/")
    if of and of not in ids:
        raise Rejected("HTTPBadRequest", f"the marker's stack {of} is gone: begin with the first page")
    for stack_id in ids[ids.index(of) if of else 0 :]:
        listed = some_at_a_time(context, stack_id, partial(_listed, context, query), after, query.name)
        prefix = "" if stack_id == top else f"{stack_id}/"
        yield from ((f"{prefix}{name}", view) for name, view in listed if view is not None)
        after = ""


def _listed(
    context: RequestContext, query: ResourceQuery, inventory: Inventory, entry: Entry
) -> tuple[str, models.Resource | None]:
    """Return the name of a resource and its response; None instead of the response if the query excludes it."""
    if not query.fits(entry):
        return entry.name, None
    view = inventory.detail(context, entry) if query.with_detail else inventory.wire(context, entry)
    if query.with_differences:
        view["differences"] = inventory.differences(context, entry)
    return entry.name, view


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}",
    dependencies=[may("resource:show")],
    summary="Show a resource",
    responses=answers(ShownResource),
)
def show_resource(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    resource_name: ResourceName,
    with_attr: Annotated[Sequence[str], Query(description="Attributes to show besides those always shown.")] = (),
) -> Response:
    with context.db.read() as tx:
        inventory = _inventory(context, tx, stack_name, stack_id, resource_name)
        view = inventory.detail(context, inventory.entry(resource_name), with_attr)
    return Json({"resource": view})


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/metadata",
    dependencies=[may("resource:metadata")],
    summary="Show the metadata of a resource",
    responses=answers(Metadata),
)
def show_metadata(context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName) -> Response:
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        context.check_stack_user(tx, stack, resource_name)
        entry = Inventory(tx, stack, context.service.graphs.wanted(tx, stack), [resource_name]).entry(resource_name)
        metadata = metadata_of(tx, stack.project, entry.row, stack.parent_key) if entry.row is not None else {}
    return Json({"metadata": metadata})


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/instances/{{instance_id}}/metadata",
    dependencies=[may("resource:metadata")],
    summary="Show the metadata of a group as one of its members has them",
    responses=answers(Metadata),
)
def show_instance_metadata(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    resource_name: ResourceName,
    instance_id: Annotated[str, Path(description="Id of the member: the physical id of its resource.")],
) -> Response:
    """Show the new metadata to members that a rollout has reached, and the previous metadata to the remaining ones."""
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        metadata = instance_metadata(tx, stack.id, VirtualLocation(resource_name, instance_id))
        if metadata is None:
            raise Rejected(
                "EntityNotFound",
                f"The group {resource_name} with the member {instance_id} could not be found in stack {stack_name}.",
            )
        context.check_stack_user(tx, stack, f"{resource_name}{INSTANCES}{instance_id}")
    return Json({"metadata": metadata})


def _inventory(
    context: RequestContext, tx: Transaction, stack_name: str, stack_id: str, resource_name: str
) -> Inventory:
    """Load the resource of this name, if it exists."""
    stack = context.stack(tx, stack_name, stack_id)
    return Inventory(tx, stack, context.service.graphs.wanted(tx, stack), [resource_name])
