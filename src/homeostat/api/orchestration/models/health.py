"""Health of the members of groups, as health policies find it."""

from pydantic import BaseModel, Field

from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.health_policy import DetectionType
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


class StackHealth(BaseModel):
    health: list[MemberHealth]
    links: list[Link]
