"""Resources: details, observations and marks."""

from typing import Any

from pydantic import BaseModel, Field

from homeostat.api.orchestration.models.stacks import Link


class Observed(BaseModel):
    """The last observation of a resource."""

    presence: str
    seen_at: str = Field(description="When a change was last observed.")
    looked_at: str = Field(description="When the resource was last observed.")
    reason: str
    blind: str | None = Field(None, description="Why the resource cannot be observed now.")
    properties: dict[str, Any]
    drift: list["Drift"]
    left_alone: str | None = Field(
        None, description="A difference that is not corrected, because convergence is switched off."
    )


class Drift(BaseModel):
    """A property that differs from its desired value."""

    property: str
    desired: Any
    observed: Any
    since: str


class Difference(BaseModel):
    """A property that is not the same in the template, as last applied, and as last observed."""

    property: str
    template: Any = Field(description="Value in the newest template; `(not known yet)` if it cannot be evaluated.")
    applied: Any = Field(description="Value last requested of the cloud.")
    observed: Any = Field(description="Value last reported by the cloud; null if the cloud does not report it.")
    since: str | None = Field(description="When the difference was first seen; null if only the template differs.")


class Leftover(BaseModel):
    """A thing of the same name that is being removed."""

    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    updated_time: str


class Unhealthy(BaseModel):
    """The mark of an unhealthy resource."""

    reason: str
    reported_by: str | None = Field(description="The user.")
    reporter: str | None = Field(description="The client of that user, such as a health checker.")
    since: str
    expires_at: str | None = Field(description="When the mark ends, if the service has not acted on it before.")


class Mark(BaseModel):
    """Marks a resource unhealthy, or healthy again."""

    mark_unhealthy: bool
    resource_status_reason: str | None = None


class Marking(Mark):
    """Marks several resources."""

    resources: list[str] = Field(min_length=1, description="Names, physical ids, or paths like group/0/server.")
    reporter: str | None = Field(None, description="The client, such as a health checker.")
    expires_in: float | None = Field(
        None, gt=0, description="Seconds until the mark ends, if the service has not acted on it before."
    )


class MarkedResource(BaseModel):
    resource: str = Field(description="As in the request.")
    path: list[str] = Field(description="Names of the resources from the requested stack down to this one.")
    resource_status: str
    changed: bool = Field(
        description="Whether the state changed; false if the resource is being deleted or had this state already."
    )


class Marked(BaseModel):
    resources: list[MarkedResource]


class Resource(BaseModel):
    resource_name: str
    logical_resource_id: str
    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    creation_time: str
    updated_time: str
    required_by: list[str]
    parent_resource: str | None = None
    links: list[Link]
    observed: Observed | None = None
    asked_at: str | None = Field(None, description="When convergence was requested; absent once it is done.")
    unhealthy: Unhealthy | None = Field(None, description="The mark; absent if there is none.")
    deletion_policy: str | None = Field(None, description="The deletion policy; absent if it is Delete.")
    waiting: str | None = None
    leftovers: list[Leftover] | None = None
    differences: list[Difference] | None = Field(None, description="Only with `with_differences`.")
    description: str | None = None
    attributes: dict[str, Any] | None = None


class Resources(BaseModel):
    resources: list[Resource]
    links: list[Link] | None = Field(None, description="`next`: the page after this one; only with a limit.")


class ShownResource(BaseModel):
    resource: Resource


class Metadata(BaseModel):
    metadata: dict[str, Any]
