"""Routes for the resources of stacks: list, show, metadata."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.inputs import COUNT_MAX, Flag
from homeostat.api.http.responses import Json, json_stream
from homeostat.api.orchestration.inventory import Entry, Inventory, some_at_a_time
from homeostat.api.orchestration.models.resources import Metadata, Resources, ShownResource
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import Wire
from homeostat.builtin.group_metadata import INSTANCES, VirtualLocation, instance_metadata
from homeostat.builtin.signals import metadata_of
from homeostat.json_pieces import Encoded, Items
from homeostat.model.errors import Rejected
from homeostat.model.status import joined
from homeostat.resources.registry import shown_id
from homeostat.store.stacks import views

ROUTER = router("resources")


class ResourceQuery(BaseModel):
    """Filters of the resource list. All but `type` may be repeated; a resource needs one of the values."""

    nested_depth: int = Field(0, ge=0, le=COUNT_MAX, description="Levels of nested stacks to list, too.")
    with_detail: Flag = Field(False, description="With descriptions and attributes.")
    with_differences: Flag = Field(
        False, description="With the properties that differ between the template, what was last applied and the cloud."
    )
    type: list[str] = Field([], max_length=1, description="Part of the type's name.")
    name: list[str] = []
    status: list[str] = Field([], description="COMPLETE, or joined with the action: CREATE_COMPLETE.")
    action: list[str] = []
    id: list[str] = Field([], description="Of the thing itself, like physical_resource_id.")
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
    """List the resources that should exist, started or not, and those that are being removed.

    Unknown query parameters are refused.
    """
    unknown = sorted(request.query_params.keys() - ResourceQuery.model_fields.keys())
    if unknown:
        raise Rejected("HTTPBadRequest", f"Invalid filter parameters {unknown}")
    with context.db.read() as tx:
        top = context.stack(tx, stack_name, stack_id)
        ids = [stack.id for stack in (top, *views.descendants(tx, top, query.nested_depth))]
    show = partial(_listed, context, query)
    return json_stream({"resources": Items(found for each in ids for found in some_at_a_time(context, each, show))})


def _listed(context: RequestContext, query: ResourceQuery, inventory: Inventory) -> list[Wire | Encoded]:
    shown = inventory.detail if query.with_detail else inventory.wire
    entries = [entry for entry in inventory.entries() if query.fits(entry)]
    if not query.with_differences:
        # Without details a resource is about as large as its row, and need not be weighed.
        return [shown(context, entry) if query.with_detail else Encoded(shown(context, entry)) for entry in entries]
    return [{**shown(context, entry), "differences": inventory.differences(context, entry)} for entry in entries]


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
        shown = inventory.detail(context, inventory.entry(resource_name), with_attr)
    return Json({"resource": shown})


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
        shown = metadata_of(tx, stack.project, entry.row, stack.parent_key) if entry.row is not None else {}
    return Json({"metadata": shown})


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
    """Show the new metadata to members that a rollout has reached, and the metadata before to the others."""
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        shown = instance_metadata(tx, stack.id, VirtualLocation(resource_name, instance_id))
        if shown is None:
            raise Rejected(
                "EntityNotFound",
                f"The group {resource_name} with the member {instance_id} could not be found in stack {stack_name}.",
            )
        context.check_stack_user(tx, stack, f"{resource_name}{INSTANCES}{instance_id}")
    return Json({"metadata": shown})


def _inventory(
    context: RequestContext, tx: Connection, stack_name: str, stack_id: str, resource_name: str
) -> Inventory:
    """Load the resource of that name, if there is one."""
    stack = context.stack(tx, stack_name, stack_id)
    return Inventory(tx, stack, context.service.graphs.wanted(tx, stack), [resource_name])
