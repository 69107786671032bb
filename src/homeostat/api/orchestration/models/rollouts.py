"""Rollouts to the members of groups."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from homeostat.api.http.bodies import Fault, RequestBody
from homeostat.api.http.inputs import COUNT_MAX
from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.rollout import PATTERNS, AppliesTo, MemberOrder, OnFailure, RolloutState, Steering
from homeostat.planner.report.rollouts import Awaited


class StepMembers(TypedDict):
    """Reports of the members of the current step."""

    succeeded: int
    failed: int
    waiting: Annotated[int, Field(description="Updated members that have not reported.")]


class Members(TypedDict):
    total: Annotated[int, Field(description="Members of the group.")]
    updated: Annotated[int, Field(description="Number of updated members.")]
    target: Annotated[int, Field(description="Number of updated members at the end of the step.")]
    targets_to_come: Annotated[
        list[int], Field(description="Number of updated members after each of the next few steps.")
    ]
    step: StepMembers


class FailedMember(TypedDict):
    """The report of a failed member."""

    resource_name: Annotated[str | None, Field(description="Its name in the stack of the members; null if it is gone.")]
    physical_resource_id: str
    reason: str


class Failures(TypedDict):
    count: Annotated[int, Field(description="Members of all steps that have failed.")]
    accepted: Annotated[int, Field(description="Failures that a user has accepted by resuming the rollout.")]
    max: Annotated[int, Field(description="Members that may fail, besides accepted failures.")]
    max_per_step: Annotated[int, Field(description="Members of one step that may fail, besides accepted failures.")]
    members: Annotated[list[FailedMember], Field(description="The last few failed members.")]


class Settings(TypedDict):
    """How the rollout proceeds."""

    applies_to: Annotated[
        str, Field(description=f"What rollouts of the group give to members: one of {', '.join(AppliesTo)}.")
    ]
    steps: Annotated[list[str], Field(description="Updated members after each step; empty: one by one.")]
    bake_time: Annotated[float, Field(description="Seconds to wait once a step has reported.")]
    progress_deadline: Annotated[
        float | None,
        Field(description="Seconds in which the members of a step have to report; null if no reports are needed."),
    ]
    min_success_percent: float
    on_failure: Annotated[str, Field(description=f"One of {', '.join(OnFailure)}.")]
    approval: Annotated[bool, Field(description="Whether a user has to approve each step.")]
    order: Annotated[str, Field(description=f"One of {', '.join(MemberOrder)}.")]
    wait_conditions: Annotated[list[str], Field(description="Names of the wait conditions to which members report.")]
    alarms: Annotated[list[str], Field(description="Names of the handles whose alarms stop the rollout.")]
    checks: Annotated[int, Field(description="Number of URLs that are checked after each step.")]


class Rollout(TypedDict):
    """A rollout. `due_at` is when it continues by time alone; null if only a report, a user or a worker moves it."""

    stack_name: str
    stack_id: str
    resource_name: str
    path: Annotated[list[str], Field(description="Names of the resources from the requested stack down to the group.")]
    state: Annotated[str, Field(description=f"One of {', '.join(RolloutState)}.")]
    pattern: Annotated[str, Field(description=f"One of {', '.join(PATTERNS[1:])}.")]
    gives: Annotated[str, Field(description=f"What this rollout gives to members: one of {', '.join(AppliesTo)}.")]
    step: Annotated[int, Field(description="Number of the step; 0 before the first.")]
    approved_step: Annotated[int, Field(description="The last step that a user approved; 0 for none.")]
    reason: str
    waits_for: Annotated[str, Field(description=f"One of {', '.join(Awaited)}.")]
    released_by: str
    actions: Annotated[list[str], Field(description=f"What you can do with it now: some of {', '.join(Steering)}.")]
    members: Members
    failures: Failures
    started_at: str
    step_at: str
    due_at: str | None
    seconds_left: Annotated[float | None, Field(description="Seconds until `due_at`.")]
    settings: Settings
    links: list[Link]


class ShownRollout(TypedDict):
    rollout: Rollout


class Rollouts(TypedDict):
    rollouts: list[Rollout]
    links: list[Link]


class Approval(RequestBody):
    """Approves a step."""

    unknown = "{key!r}: there is no such key; there may be {names}"

    step: Annotated[
        int | None,
        Field(ge=1, le=COUNT_MAX, description="The step to approve: another step is refused. Default: any."),
        Fault("it must be the number of a step, 1 or more"),
    ] = None
