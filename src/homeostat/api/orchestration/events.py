"""Events of stacks and resources, in pages."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, Field
from sqlalchemy import Connection, Row
from starlette.responses import Response

from homeostat.api.answers import Json
from homeostat.api.asking import COUNT_MAX, Ask, Asked, ResourceName, StackId, StackName
from homeostat.api.orchestration import models
from homeostat.api.orchestration.renderings import Wire, event_detail, event_item, event_seq
from homeostat.api.orchestration.routing import STACK, answers, router
from homeostat.model.errors import Rejected
from homeostat.store import events, views

ROUTER = router("events")
SORTABLE = {"event_time": "seq", "resource_type": "type"}
FILTERS = {
    "resource_status": "status",
    "resource_action": "action",
    "resource_name": "name",
    "resource_type": "type",
}


class EventQuery(BaseModel):
    """Which events to list. Filters may be repeated: one of the values must fit."""

    limit: int | None = Field(None, ge=0, le=COUNT_MAX, description="Length of a page; 0 for all.")
    marker: str | None = Field(None, description="Id of the last event of the page before.")
    nested_depth: int = Field(0, ge=0, le=COUNT_MAX, description="Levels of nested stacks whose events to list, too.")
    sort_keys: list[str] = Field([], description=f"Of {', '.join(SORTABLE)}; others are ignored.")
    sort_dir: str | None = Field(None, pattern="^(asc|desc)$")
    resource_status: list[str] = []
    resource_action: list[str] = []
    resource_name: list[str] = []
    resource_type: list[str] = []

    def page(self, tx: Connection, stack_ids: Sequence[str], name: str | None = None) -> list[Row[Any]]:
        order = [SORTABLE[key] for key in self.sort_keys if key in SORTABLE]
        return events.page(
            tx,
            stack_ids,
            after=event_seq(self.marker) if self.marker else None,
            newest_first=self.sort_dir == "desc" if self.sort_dir or order else True,
            limit=self.limit or None,
            name=name,
            order_by=order[0] if order else "seq",
            only=self._only(),
        )

    def _only(self) -> dict[str, Sequence[str]]:
        return {column: getattr(self, name) for name, column in FILTERS.items() if getattr(self, name)}


@ROUTER.get(f"{STACK}/events", summary="List the events of a stack", responses=answers(models.Events))
def list_events(ask: Ask, stack_name: StackName, stack_id: StackId, query: Annotated[EventQuery, Query()]) -> Response:
    """Newest first, unless told otherwise."""
    with ask.db.read() as tx:
        top = ask.stack(tx, stack_name, stack_id)
        by_id = {row.id: row for row in (top, *views.descendants(tx, top, query.nested_depth))}
        found = query.page(tx, list(by_id))
    return Json({"events": _listed(ask, found, by_id, top if query.nested_depth else None)})


def _listed(ask: Asked, found: Sequence[Row[Any]], by_id: Mapping[str, Row[Any]], root: Row[Any] | None) -> list[Wire]:
    return [event_item(ask, event, by_id[event.stack_id], root) for event in found]


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/events",
    summary="List the events of a resource",
    responses=answers(models.Events),
)
def list_resource_events(
    ask: Ask,
    stack_name: StackName,
    stack_id: StackId,
    resource_name: ResourceName,
    query: Annotated[EventQuery, Query()],
) -> Response:
    with ask.db.read() as tx:
        stack = ask.stack(tx, stack_name, stack_id)
        found = query.page(tx, [stack.id], resource_name)
    if not found and not query.marker:
        raise Rejected("HTTPNotFound", f"No events found for resource {resource_name}")
    return Json({"events": _listed(ask, found, {stack.id: stack}, None)})


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/events/{{event_id}}",
    summary="Show an event",
    responses=answers(models.ShownEvent),
)
def show_event(
    ask: Ask,
    stack_name: StackName,
    stack_id: StackId,
    resource_name: ResourceName,
    wanted: Annotated[str, Path(alias="event_id")],
) -> Response:
    """The properties are those that the resource has now."""
    with ask.db.read() as tx:
        stack = ask.stack(tx, stack_name, stack_id)
        seq = event_seq(wanted)
        event = events.get(tx, stack.id, seq) if seq is not None else None
        if event is None or event.name != resource_name or events.event_id(stack.id, event.seq) != wanted.lower():
            raise Rejected("EntityNotFound", f"The Event ({wanted}) could not be found.")
        rows, _ = views.resources(tx, stack.id, [resource_name])
    properties = rows[event.key].properties if event.key in rows else {}
    return Json({"event": event_detail(ask, event, stack, properties)})
