"""Resources: details, observations and marks."""

from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from homeostat.api.http.bodies import Fault, RequestBody, fault
from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.errors import Rejected

TARGETS_MAX = 1000
TEXT_MAX = 1000
"""Characters of a text that is written to many resources."""
LASTS_MAX_S = 86_400.0 * 365


class Observed(TypedDict):
    """The last observation of a resource."""

    presence: str
    seen_at: Annotated[str, Field(description="When a change was last observed.")]
    looked_at: Annotated[str, Field(description="When the resource was last observed.")]
    reason: str
    blind: NotRequired[Annotated[str, Field(description="Why the resource cannot be observed now.")]]
    properties: dict[str, Any]
    drift: list["Drift"]
    left_alone: NotRequired[
        Annotated[str, Field(description="A difference that is not corrected, because convergence is switched off.")]
    ]


class Drift(TypedDict):
    """A property that differs from its desired value."""

    property: str
    desired: Any
    observed: Any
    since: str


class Difference(TypedDict):
    """A property that is not the same in the template, as last applied, and as last observed."""

    property: str
    template: Annotated[
        Any, Field(description="Value in the newest template; `(not known yet)` if it cannot be evaluated.")
    ]
    applied: Annotated[Any, Field(description="Value last requested of the cloud.")]
    observed: Annotated[
        Any, Field(description="Value last reported by the cloud; null if the cloud does not report it.")
    ]
    since: Annotated[
        str | None, Field(description="When the difference was first seen; null if only the template differs.")
    ]


class Leftover(TypedDict):
    """A thing of the same name that is being removed."""

    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    updated_time: str


class Unhealthy(TypedDict):
    """The mark of an unhealthy resource."""

    reason: str
    reported_by: Annotated[str | None, Field(description="The user.")]
    reporter: Annotated[str | None, Field(description="The client of that user, such as a health checker.")]
    since: str
    expires_at: Annotated[
        str | None, Field(description="When the mark ends, if the service has not acted on it before.")
    ]


class Mark(RequestBody):
    """Marks a resource unhealthy, or healthy again."""

    unknown = "Unexpected parameter(s) {keys}; there may be {names}"

    mark_unhealthy: bool
    resource_status_reason: str | None = None


def _check_count(targets: list[str]) -> list[str]:
    if len(targets) > TARGETS_MAX:
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: resources has more than {TARGETS_MAX} items")
    return targets


class Marking(Mark):
    """Marks several resources."""

    resource_status_reason: str | None = Field(None, max_length=TEXT_MAX)
    resources: Annotated[
        list[Annotated[str, Field(min_length=1), Fault("it must be a name, a physical id or a path")]],
        Field(min_length=1, fail_fast=True, description="Names, physical ids, or paths like group/0/server."),
        AfterValidator(_check_count),
        Fault("it must be a list of names, physical ids or paths"),
    ]
    reporter: str | None = Field(None, max_length=TEXT_MAX, description="The client, such as a health checker.")
    expires_in: Annotated[
        float | None,
        Field(
            gt=0,
            le=LASTS_MAX_S,
            description="Seconds until the mark ends, if the service has not acted on it before.",
        ),
        Fault(f"it must be a number of seconds, at most {LASTS_MAX_S:.0f}"),
    ] = None

    @model_validator(mode="after")
    def _check_meaning(self) -> "Marking":
        for name in ("reporter", "expires_in"):
            if name in self.model_fields_set and not self.mark_unhealthy:
                raise fault(f"{name}: it has no meaning when a mark is removed; leave it out")
        return self


class MarkedResource(TypedDict):
    resource: Annotated[str, Field(description="As in the request.")]
    path: Annotated[list[str], Field(description="Names of the resources from the requested stack down to this one.")]
    resource_status: str
    changed: Annotated[
        bool,
        Field(
            description="Whether the state changed; false if the resource is being deleted or had this state already."
        ),
    ]


class Marked(TypedDict):
    resources: list[MarkedResource]


class Resource(TypedDict):
    resource_name: str
    logical_resource_id: str
    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    creation_time: str
    updated_time: str
    required_by: list[str]
    parent_resource: NotRequired[str]
    links: list[Link]
    observed: Observed | None
    asked_at: NotRequired[Annotated[str, Field(description="When convergence was requested; absent once it is done.")]]
    unhealthy: NotRequired[Annotated[Unhealthy, Field(description="The mark; absent if there is none.")]]
    deletion_policy: NotRequired[Annotated[str, Field(description="The deletion policy; absent if it is Delete.")]]
    waiting: NotRequired[str]
    leftovers: NotRequired[list[Leftover]]
    differences: NotRequired[Annotated[list[Difference], Field(description="Only with `with_differences`.")]]
    description: NotRequired[str]
    attributes: NotRequired[dict[str, Any]]


class Resources(TypedDict):
    resources: list[Resource]
    links: NotRequired[Annotated[list[Link], Field(description="`next`: the page after this one; only with a limit.")]]


class ShownResource(TypedDict):
    resource: Resource


class Metadata(TypedDict):
    metadata: dict[str, Any]
