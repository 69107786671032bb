"""The graph of a stack."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from homeostat.api.orchestration.models.resources import Unhealthy


class Counts(TypedDict):
    planned: Annotated[int, Field(description="Resources and leftovers that have to come to rest.")]
    done: Annotated[int, Field(description="Number of them at rest.")]
    failed: Annotated[int, Field(description="Number of them that failed.")]


class NestedGraph(Counts):
    """The nested stack of a resource, including its own nested stacks."""

    stack_name: str
    stack_id: str
    status: str


class GraphResource(TypedDict):
    """One resource. Keys that do not apply are omitted."""

    name: str
    type: str
    status: str
    id: NotRequired[Annotated[str, Field(description="Physical id.")]]
    reason: NotRequired[Annotated[str, Field(description="Reason of a status that is not COMPLETE.")]]
    unhealthy: NotRequired[Unhealthy]
    leaving: NotRequired[Annotated[int, Field(description="Number of things of this name that are being removed.")]]
    requires: NotRequired[Annotated[list[str], Field(description="Names of the resources that it requires.")]]
    nested: NotRequired[NestedGraph]


class GraphOfStack(Counts):
    stack_name: str
    stack_status: str
    revision: int
    listed: Annotated[bool, Field(description="Whether `resources` lists all; if there are too many, it is empty.")]
    resources: list[GraphResource]


class ShownGraph(TypedDict):
    graph: GraphOfStack
