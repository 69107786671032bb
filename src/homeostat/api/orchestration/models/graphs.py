"""The graph of a stack."""

from pydantic import BaseModel, Field

from homeostat.api.orchestration.models.resources import Unhealthy


class Counts(BaseModel):
    planned: int = Field(description="Resources and leftovers that have to come to rest.")
    done: int = Field(description="How many of them are at rest.")
    failed: int = Field(description="How many have failed.")


class NestedGraph(Counts):
    """The nested stack of a resource, with all that is nested in it."""

    stack_name: str
    stack_id: str
    status: str


class GraphResource(BaseModel):
    """One resource. What does not apply is left out."""

    name: str
    type: str
    status: str
    id: str | None = Field(None, description="Physical id.")
    reason: str | None = Field(None, description="Of its status, where that is not COMPLETE.")
    unhealthy: Unhealthy | None = None
    leaving: int = Field(0, description="How many things of its name are being removed.")
    requires: list[str] = Field([], description="Names of the resources that it requires.")
    nested: NestedGraph | None = None


class GraphOfStack(Counts):
    stack_name: str
    stack_status: str
    revision: int
    listed: bool = Field(description="Whether `resources` has all; where there are too many, it has none.")
    resources: list[GraphResource]


class ShownGraph(BaseModel):
    graph: GraphOfStack
