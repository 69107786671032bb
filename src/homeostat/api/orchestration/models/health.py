"""Health of the members of groups, as health policies find it."""

from pydantic import BaseModel, Field

from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.health_policy import DetectionType, Mode
from homeostat.model.node_health import Finding

FINDINGS = f"One of {', '.join(Finding)}; unknown where nothing could be seen."


class DetectedHealth(BaseModel):
    """What one detection has found."""

    type: str = Field(description=f"One of {', '.join(DetectionType)}.")
    finding: str = Field(description=FINDINGS)
    since: str
    evidence: str = Field(description="What was seen.")


class Recovery(BaseModel):
    """A recovery that has begun."""

    step: int = Field(description="Number of the action of the policy; 0 for what its status suggests.")
    begun_at: str
    tried: list[str] = Field(description="What was tried in vain.")
    fenced: list[str] = Field(description="What is confirmed cut off.")
    rounds: int = Field(description="How often all actions were tried in vain.")


class MemberHealth(BaseModel):
    """Health of a resource that a health policy holds for."""

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
    """A health policy that holds for a resource, or for the members of a group."""

    path: list[str] = Field(description="Names of the resources down to it; empty for the members of this very stack.")
    members: bool = Field(description="Whether it holds for the members of what `path` names.")
    mode: str = Field(description=f"One of {', '.join(Mode)}.")
    interval: int = Field(description="Seconds between two looks.")
    detection: list[str] = Field(description=f"Some of {', '.join(DetectionType)}.")
    actions: list[str] = Field(description="Names of the actions of a recovery, in their order.")
    fencing: list[str] = Field(description="What is cut off before another one is made.")
    max_unhealthy: str | None = Field(
        description="With more unhealthy ones than that none is recovered: a number, or a share such as `40%`."
    )
    max_per_hour: int | None = Field(description="Most recoveries that begin in an hour.")


class DeclaredHost(BaseModel):
    """A host of servers that is declared down, since a member had to be cut off."""

    host: str
    since: str = Field(description="When the cloud confirmed that it is declared down.")
    path: list[str] = Field(description="Names of the resources from the requested stack down to that member.")
    reason: str = Field(description="What was found of the member: the evidence for which it was cut off.")
    released_by: str = Field(description="Who lifts that, and how.")


class StackHealth(BaseModel):
    health: list[MemberHealth]
    policies: list[HoldingPolicy]
    hosts: list[DeclaredHost] = Field(description="Until they are seen not to be declared down any more.")
    links: list[Link]
