"""Health of the members of groups, as health policies find it."""

from pydantic import BaseModel, Field

from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.health_policy import DetectionType, Mode
from homeostat.model.node_health import Finding

FINDINGS = f"One of {', '.join(Finding)}; unknown if nothing could be observed."


class DetectedHealth(BaseModel):
    """The finding of one detection."""

    type: str = Field(description=f"One of {', '.join(DetectionType)}.")
    finding: str = Field(description=FINDINGS)
    since: str
    evidence: str = Field(description="The observation behind the finding.")


class Recovery(BaseModel):
    """A recovery that has begun."""

    step: int = Field(description="Number of the action of the policy; 0 for the action that the status suggests.")
    begun_at: str
    tried: list[str] = Field(description="Actions that did not help.")
    fenced: list[str] = Field(description="Fencing that is confirmed.")
    rounds: int = Field(description="Number of rounds in which no action helped.")


class MemberHealth(BaseModel):
    """Health of a resource to which a health policy applies."""

    stack_name: str
    stack_id: str
    resource_name: str
    path: list[str] = Field(description="Names of the resources from the requested stack down to this one.")
    physical_resource_id: str
    resource_status: str
    finding: str = Field(description=FINDINGS)
    since: str
    reason: str
    detected: list[DetectedHealth]
    recovery: Recovery | None = None


class HoldingPolicy(BaseModel):
    """A health policy that applies to a resource, or to the members of a group."""

    path: list[str] = Field(
        description="Names of the resources down to the resource or group; empty for members of the requested stack."
    )
    members: bool = Field(description="Whether it applies to the members of the group that `path` names.")
    mode: str = Field(description=f"One of {', '.join(Mode)}.")
    interval: int = Field(description="Seconds between two checks.")
    detection: list[str] = Field(description=f"Some of {', '.join(DetectionType)}.")
    actions: list[str] = Field(description="Names of the actions of a recovery, in their order.")
    fencing: list[str] = Field(description="What is cut off before a member is replaced.")
    max_unhealthy: str | None = Field(
        description="If more members are unhealthy, none is recovered: a number, or a share such as `40%`."
    )
    max_per_hour: int | None = Field(description="Maximum number of recoveries that begin in an hour.")


class DeclaredHost(BaseModel):
    """A host of servers that is declared down, since a member had to be cut off."""

    host: str
    since: str = Field(description="When the cloud confirmed that the host is declared down.")
    path: list[str] = Field(description="Names of the resources from the requested stack down to the member.")
    reason: str = Field(description="The evidence for which the member was cut off.")
    released_by: str = Field(description="Who brings the host back into service, and how.")


class StackHealth(BaseModel):
    health: list[MemberHealth]
    policies: list[HoldingPolicy]
    hosts: list[DeclaredHost] = Field(description="Hosts that were last seen to be declared down.")
    links: list[Link]
