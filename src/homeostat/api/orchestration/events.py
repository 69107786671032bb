"""Routes for events of stacks and resources: page by page, and as a stream."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.event_streams import MEDIA_TYPE, PAGE, EventPage
from homeostat.api.http.inputs import COUNT_MAX
from homeostat.api.http.responses import Json, Stream, json_stream, nothing
from homeostat.api.orchestration.models.events import EventItem, Events, ShownEvent
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import event_detail, event_item, event_seq
from homeostat.desired.redaction import Redaction
from homeostat.json_pieces import Items
from homeostat.model.errors import Rejected
from homeostat.store import events
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import EventRow, StackRow
from homeostat.store.stacks import stacks, views

ROUTER = router("events")
SORTABLE = {"event_time": "seq", "resource_type": "type"}
FILTERS = {
    "resource_status": "status",
    "resource_action": "action",
    "resource_name": "name",
    "resource_type": "type",
}


class EventQuery(BaseModel):
    """Filters of the event list. A filter may be repeated; an event matches if it has one of the values."""

    limit: int | None = Field(None, ge=0, le=COUNT_MAX, description="Length of a page; 0 for all.")
    marker: str | None = Field(None, description="Id of the last event of the page before.")
    nested_depth: int = Field(0, ge=0, le=COUNT_MAX, description="Levels of nested stacks whose events to list, too.")
    sort_keys: list[str] = Field([], description=f"Any of {', '.join(SORTABLE)}; other keys are ignored.")
    sort_dir: str | None = Field(None, pattern="^(asc|desc)$")
    resource_status: list[str] = []
    resource_action: list[str] = []
    resource_name: list[str] = []
    resource_type: list[str] = []

    def all(self, db: Database, stack_ids: Sequence[str], name: str | None = None) -> Iterator[EventRow]:
        """Yield the events of one page, read some at a time."""
        order = [SORTABLE[key] for key in self.sort_keys if key in SORTABLE]
        after = event_seq(self.marker) if self.marker else None
        left = self.limit or COUNT_MAX
        while left:
            with db.read() as tx:
                page = events.page(
                    tx,
                    stack_ids,
                    after=after,
                    newest_first=self.sort_dir == "desc" if self.sort_dir or order else True,
                    limit=min(left, PAGE),
                    name=name,
                    order_by=order[0] if order else "seq",
                    only=self._only(),
                )
            yield from page
            left = left - len(page) if len(page) == PAGE else 0
            after = page[-1].seq if page else None

    def following(self, tx: Transaction, stack_ids: Sequence[str], after: int, until: int) -> list[EventRow]:
        """Read the next events of a stream."""
        return events.page(tx, stack_ids, after=after, until=until, limit=PAGE, only=self._only())

    def _only(self) -> dict[str, Sequence[str]]:
        return {column: getattr(self, name) for name, column in FILTERS.items() if getattr(self, name)}


STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Events,
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        "description": "Done; or, if the caller accepts an event stream, the events as they happen.",
    },
    204: {"description": "There will be no more events: the stack is deleted. (Only if events are followed.)"},
}


@ROUTER.get(
    f"{STACK}/events",
    dependencies=[may("events:index")],
    summary="List or follow the events of a stack",
    responses=STREAMED,
)
def list_events(
    request: Request,
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    query: Annotated[EventQuery, Query()],
    last: Annotated[str | None, Header(alias="last-event-id", description="The same as `marker`.")] = None,
) -> Response:
    """List events, newest first by default.

    With `Accept: text/event-stream` the connection stays open, and the response is a stream of events as they happen,
    from the marker on, oldest first. Heat has no such stream.
    """
    if MEDIA_TYPE in request.headers.get("accept", ""):
        return _streamed(context, stack_name, stack_id, query, last or query.marker)
    with context.db.read() as tx:
        top = context.stack(tx, stack_name, stack_id)
        by_id = {row.id: row for row in (top, *views.descendants(tx, top, query.nested_depth))}
    root = top if query.nested_depth else None
    rows = query.all(context.db, list(by_id))
    items = (event_item(context, event, by_id[event.stack_id], root) for event in rows)
    return json_stream({"events": Items(items, small=True)})


def _streamed(context: RequestContext, stack_name: str, stack_id: str, query: EventQuery, last: str | None) -> Response:
    if query.limit or query.sort_keys or query.sort_dir:
        message = "Events that are followed come in the order they happen: leave out limit, sort_keys and sort_dir"
        raise Rejected("HTTPBadRequest", message)
    cursor = 0 if last is None else event_seq(last)
    if cursor is None:
        raise Rejected("HTTPBadRequest", f"Last-Event-ID has to be the id of an event, not {last!r}")
    with context.db.read() as tx:
        top = context.stack(tx, stack_name, stack_id)
        if _is_over(tx, top, [row.id for row in _family(tx, top, query)], cursor):
            # 204 tells EventSource clients to stop reconnecting.
            return nothing()
    tail = context.service.tail
    tail.check_room(context.sharers)

    def read(after: int, until: int) -> EventPage:
        with context.db.read() as tx:
            return _read(context, tx, top.id, query, after, until)

    headers = {"X-Accel-Buffering": "no"}
    return Stream(tail.stream(top.root_id, read, cursor, context.sharers), 200, headers, MEDIA_TYPE)


def _read(
    context: RequestContext, tx: Transaction, stack_id: str, query: EventQuery, after: int, until: int
) -> EventPage:
    """Read the next events of a stack and of all current and former nested stacks, to the requested depth."""
    top = stacks.get(tx, stack_id)
    if top is None:
        return EventPage([], until, more=False, over=True)
    by_id = {row.id: row for row in _family(tx, top, query)}
    page = query.following(tx, list(by_id), after, until)
    last = max(after, until) if len(page) < PAGE else page[-1].seq
    items = _listed(context, page, by_id, top if query.nested_depth else None)
    return EventPage(items, last, more=len(page) == PAGE, over=_is_over(tx, top, list(by_id), last))


def _family(tx: Transaction, top: StackRow, query: EventQuery) -> list[StackRow]:
    """Return the stack and its current and former nested stacks."""
    return [top, *views.descendants(tx, top, query.nested_depth, deleted=True)]


def _is_over(tx: Transaction, top: StackRow, stack_ids: Sequence[str], last: int) -> bool:
    """Return whether the event with this number is the last of a deleted stack."""
    return top.deleted_at is not None and events.newest(tx, stack_ids) <= last


def _listed(
    context: RequestContext, page: Sequence[EventRow], by_id: Mapping[str, StackRow], root: StackRow | None
) -> list[EventItem]:
    return [event_item(context, event, by_id[event.stack_id], root) for event in page]


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/events",
    dependencies=[may("events:index")],
    summary="List the events of a resource",
    responses=answers(Events),
)
def list_resource_events(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    resource_name: ResourceName,
    query: Annotated[EventQuery, Query()],
) -> Response:
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
    rows = query.all(context.db, [stack.id], resource_name)
    first = next(rows, None)
    if first is None and not query.marker:
        raise Rejected("HTTPNotFound", f"No events found for resource {resource_name}")
    listed = chain([] if first is None else [first], rows)
    return json_stream({"events": Items((event_item(context, event, stack) for event in listed), small=True)})


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/events/{{event_id}}",
    dependencies=[may("events:show")],
    summary="Show an event",
    responses=answers(ShownEvent),
)
def show_event(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    resource_name: ResourceName,
    wanted: Annotated[str, Path(alias="event_id")],
) -> Response:
    """Show an event. Its properties are the current ones of the resource."""
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        seq = event_seq(wanted)
        event = events.get(tx, stack.id, seq) if seq is not None else None
        if event is None or event.name != resource_name or events.event_id(stack.id, event.seq) != wanted.lower():
            raise Rejected("EntityNotFound", f"The Event ({wanted}) could not be found.")
        rows, _ = views.resources(tx, stack.id, [resource_name])
        graph = context.service.graphs.described(tx, stack)
        redaction = Redaction.over(stack, graph.content, graph.compiled)
    stored = rows[event.key].properties if event.key in rows else {}
    properties = {name: redaction.shown(resource_name, name, value) for name, value in stored.items()}
    return Json({"event": event_detail(context, event, stack, properties)})
