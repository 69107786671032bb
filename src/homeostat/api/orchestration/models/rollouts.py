"""Rollouts to the members of groups."""

from typing import Annotated

from pydantic import BaseModel, Field

from homeostat.api.http.bodies import Fault, RequestBody
from homeostat.api.http.inputs import COUNT_MAX
from homeostat.api.orchestration.models.stacks import Link
from homeostat.model.rollout import PATTERNS, AppliesTo, MemberOrder, OnFailure, RolloutState, Steering
from homeostat.planner.report.rollouts import Awaited


class StepMembers(BaseModel):
    """Reports of the members of the current step."""

    succeeded: int
    failed: int
    waiting: int = Field(description="Updated members that have not reported.")


class Members(BaseModel):
    total: int = Field(description="Members of the group.")
    updated: int = Field(description="Number of updated members.")
    target: int = Field(description="Number of updated members at the end of the step.")
    targets_to_come: list[int] = Field(description="Number of updated members after each of the next few steps.")
    step: StepMembers


class FailedMember(BaseModel):
    """The report of a failed member."""

    resource_name: str | None = Field(description="Its name in the stack of the members; null if it is gone.")
    physical_resource_id: str
    reason: str


class Failures(BaseModel):
    count: int = Field(description="Members of all steps that have failed.")
    accepted: int = Field(description="Failures that a user has accepted by resuming the rollout.")
    max: int = Field(description="Members that may fail, besides accepted failures.")
    max_per_step: int = Field(description="Members of one step that may fail, besides accepted failures.")
    members: list[FailedMember] = Field(description="The last few failed members.")


class Settings(BaseModel):
    """How the rollout proceeds."""

    applies_to: str = Field(description=f"What rollouts of the group give to members: one of {', '.join(AppliesTo)}.")
    steps: list[str] = Field(description="Updated members after each step; empty: one by one.")
    bake_time: float = Field(description="Seconds to wait once a step has reported.")
    progress_deadline: float | None = Field(
        description="Seconds in which the members of a step have to report; null if no reports are needed."
    )
    min_success_percent: float
    on_failure: str = Field(description=f"One of {', '.join(OnFailure)}.")
    approval: bool = Field(description="Whether a user has to approve each step.")
    order: str = Field(description=f"One of {', '.join(MemberOrder)}.")
    wait_conditions: list[str] = Field(description="Names of the wait conditions to which members report.")
    alarms: list[str] = Field(description="Names of the handles whose alarms stop the rollout.")
    checks: int = Field(description="Number of URLs that are checked after each step.")


class Rollout(BaseModel):
    """A rollout. `due_at` is when it continues by time alone; null if only a report, a user or a worker moves it."""

    stack_name: str
    stack_id: str
    resource_name: str
    path: list[str] = Field(description="Names of the resources from the requested stack down to the group.")
    state: str = Field(description=f"One of {', '.join(RolloutState)}.")
    pattern: str = Field(description=f"One of {', '.join(PATTERNS[1:])}.")
    gives: str = Field(description=f"What this rollout gives to members: one of {', '.join(AppliesTo)}.")
    step: int = Field(description="Number of the step; 0 before the first.")
    approved_step: int = Field(description="The last step that a user approved; 0 for none.")
    reason: str
    waits_for: str = Field(description=f"One of {', '.join(Awaited)}.")
    released_by: str
    actions: list[str] = Field(description=f"What you can do with it now: some of {', '.join(Steering)}.")
    members: Members
    failures: Failures
    started_at: str
    step_at: str
    due_at: str | None
    seconds_left: float | None = Field(description="Seconds until `due_at`.")
    settings: Settings
    links: list[Link]


class ShownRollout(BaseModel):
    rollout: Rollout


class Rollouts(BaseModel):
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
