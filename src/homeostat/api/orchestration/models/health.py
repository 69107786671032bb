"""Health of the members of groups, as health policies find it."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.health_policy import DetectionType, Mode
from homeostat.model.node_health import Finding

FINDINGS = f"One of {', '.join(Finding)}; unknown if nothing could be observed."


class DetectedHealth(TypedDict):
    """The finding of one detection."""

    type: Annotated[str, Field(description=f"One of {', '.join(DetectionType)}.")]
    finding: Annotated[str, Field(description=FINDINGS)]
    since: str
    evidence: Annotated[str, Field(description="The observation behind the finding.")]


class Recovery(TypedDict):
    """A recovery that has begun."""

    step: Annotated[
        int, Field(description="Number of the action of the policy; 0 for the action that the status suggests.")
    ]
    begun_at: str
    tried: Annotated[list[str], Field(description="Actions that did not help.")]
    fenced: Annotated[list[str], Field(description="Fencing that is confirmed.")]
    rounds: Annotated[int, Field(description="Number of rounds in which no action helped.")]


class MemberHealth(TypedDict):
    """Health of a resource to which a health policy applies."""

    stack_name: str
    stack_id: str
    resource_name: str
    path: Annotated[list[str], Field(description="Names of the resources from the requested stack down to this one.")]
    physical_resource_id: str
    resource_status: str
    finding: Annotated[str, Field(description=FINDINGS)]
    since: str
    reason: str
    detected: list[DetectedHealth]
    recovery: NotRequired[Recovery]


class HoldingPolicy(TypedDict):
    """A health policy that applies to a resource, or to the members of a group."""

    path: Annotated[
        list[str],
        Field(
            description="Names of the resources down to the resource or group; empty: members of the requested stack."
        ),
    ]
    members: Annotated[bool, Field(description="Whether it applies to the members of the group that `path` names.")]
    mode: Annotated[str, Field(description=f"One of {', '.join(Mode)}.")]
    interval: Annotated[int, Field(description="Seconds between two checks.")]
    detection: Annotated[list[str], Field(description=f"Some of {', '.join(DetectionType)}.")]
    actions: Annotated[list[str], Field(description="Names of the actions of a recovery, in their order.")]
    fencing: Annotated[list[str], Field(description="What is cut off before a member is replaced.")]
    max_unhealthy: Annotated[
        str | None,
        Field(description="If more members are unhealthy, none is recovered: a number, or a share such as `40%`."),
    ]
    max_per_hour: Annotated[int | None, Field(description="Maximum number of recoveries that begin in an hour.")]


class DeclaredHost(TypedDict):
    """A host of servers that is declared down, since a member had to be cut off."""

    host: str
    since: Annotated[str, Field(description="When the cloud confirmed that the host is declared down.")]
    path: Annotated[list[str], Field(description="Names of the resources from the requested stack down to the member.")]
    reason: Annotated[str, Field(description="The evidence for which the member was cut off.")]
    released_by: Annotated[str, Field(description="Who brings the host back into service, and how.")]


class StackHealth(TypedDict):
    health: list[MemberHealth]
    policies: list[HoldingPolicy]
    hosts: Annotated[list[DeclaredHost], Field(description="Hosts that were last seen to be declared down.")]
    links: list[Link]
