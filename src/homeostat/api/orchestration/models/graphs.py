"""The graph of a stack."""

from pydantic import BaseModel, Field

from homeostat.api.orchestration.models.resources import Unhealthy


class Counts(BaseModel):
    planned: int = Field(description="Resources and leftovers that have to come to rest.")
    done: int = Field(description="Number of them at rest.")
    failed: int = Field(description="Number of them that failed.")


class NestedGraph(Counts):
    """The nested stack of a resource, including its own nested stacks."""

    stack_name: str
    stack_id: str
    status: str


class GraphResource(BaseModel):
    """One resource. Keys that do not apply are omitted."""

    name: str
    type: str
    status: str
    id: str | None = Field(None, description="Physical id.")
    reason: str | None = Field(None, description="Reason of a status that is not COMPLETE.")
    unhealthy: Unhealthy | None = None
    leaving: int = Field(0, description="Number of things of this name that are being removed.")
    requires: list[str] = Field([], description="Names of the resources that it requires.")
    nested: NestedGraph | None = None


class GraphOfStack(Counts):
    stack_name: str
    stack_status: str
    revision: int
    listed: bool = Field(description="Whether `resources` lists all; if there are too many, it is empty.")
    resources: list[GraphResource]


class ShownGraph(BaseModel):
    graph: GraphOfStack
