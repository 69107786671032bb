"""Events."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from homeostat.api.orchestration.models.stacks import Link


class EventItem(TypedDict):
    id: str
    event_time: str
    resource_name: str
    logical_resource_id: str
    physical_resource_id: str | None
    resource_status: str
    resource_status_reason: str
    requested_by: Annotated[
        str | None, Field(description="Who sent the request that made the change; null for the service.")
    ]
    request_id: Annotated[str | None, Field(description="Id of the request, as in its response.")]
    links: list[Link]


class Event(EventItem):
    resource_type: str
    resource_properties: dict[str, Any]


class Events(TypedDict):
    events: list[EventItem]


class ShownEvent(TypedDict):
    event: Event
