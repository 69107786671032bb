"""Explanations: why a stack or a resource is not at rest."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from homeostat.api.orchestration.models.resources import Resource
from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.waiting import Why


class Cause(TypedDict):
    """The origin of the waiting: another resource, possibly of a nested stack."""

    path: Annotated[list[str], Field(description="Names of the resources from the requested stack down to this one.")]
    why: str
    reason: str
    released_by: str


class Reason(TypedDict):
    """The reason why a resource or leftover is not at rest, and the event or user to release it."""

    resource_name: str
    path: Annotated[list[str], Field(description="Names of the resources from the requested stack down to this one.")]
    resource_type: str
    physical_resource_id: str
    resource_status: str
    leftover: Annotated[
        bool,
        Field(description="Whether it is a leftover, which should not exist; its name may belong to another resource."),
    ]
    why: Annotated[str, Field(description=f"One of {', '.join(Why)}.")]
    reason: str
    waits_for: Annotated[list[str], Field(description="Names of resources of the same stack.")]
    since: Annotated[str | None, Field(description="Since when it waits, if known.")]
    released_by: str
    due_at: Annotated[str | None, Field(description="When the wait ends by itself.")]
    next: Annotated[
        str, Field(description="create, adopt, find, observe, update, operate, delete, record, look or compare.")
    ]
    next_at: str | None
    fails_at: Annotated[str | None, Field(description="Deadline of the operation in progress.")]
    blocks: Annotated[list[str], Field(description="Names of resources that wait for it, the first few.")]
    blocks_count: int
    cause: Cause | None
    links: list[Link]


class Progress(TypedDict):
    """Number of resources to bring to rest, and how many are.

    `stacks` is the number of stacks counted; null if there are too many nested stacks to count.
    """

    planned: int
    done: int
    stacks: int | None


class PathLink(TypedDict):
    """One resource of the critical path.

    `seconds` is the time it still needs; null if no resource of its type was timed yet.
    """

    resource_name: str
    resource_type: str
    action: str
    seconds: float | None


class Kind(TypedDict):
    resource_type: str
    action: str


class CriticalPath(TypedDict):
    """The chain of unfinished resources that takes longest, estimated from earlier resources of the same types.

    `unknown` lists the types and actions without such times.
    """

    seconds: float | None
    unknown: list[Kind]
    resources: list[PathLink]


class Estimate(TypedDict):
    """Time until everything is at rest. `by` is the method: `critical_path`, or `rate` (resources a second)."""

    seconds: float
    by: str
    rate: float | None


class StackWaiting(TypedDict):
    """The reason why a stack in progress waits, besides its resources: a pause, or a worker to finish the action."""

    why: str
    reason: str
    due_at: str | None
    released_by: str


class Unseen(TypedDict):
    """Present while the cloud does not answer. `since`: when all things were last observed; null for never."""

    reason: str
    since: str | None


class Explanation(TypedDict):
    id: str
    stack_name: str
    stack_status: str
    stack_status_reason: str
    begun_at: str
    deadline: str | None
    waiting: StackWaiting | None
    unseen: Unseen | None
    progress: Progress
    critical_path: CriticalPath | None
    estimate: Estimate | None
    resources: list[Reason]
    links: list[Link]


class ExplainedStack(TypedDict):
    explanation: Explanation


class ExplainedResource(TypedDict):
    """Reasons of the resource and its leftovers, then of nested resources; empty if the resource is at rest."""

    explanation: "ResourceExplanation"


class ResourceExplanation(TypedDict):
    at_rest: bool
    resource: Resource
    reasons: list[Reason]
