"""Resources marked unhealthy by users or their programs (MU2, MU7). Pure."""

from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.marks import UnhealthyMark
from homeostat.model.plan import Decision
from homeostat.model.status import Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner.actions import check
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import recovery
from homeostat.planner.policies import unhealthy


def decide(context: Context, definition: Definition, row: Resource, mark: UnhealthyMark, now: float) -> Decision:
    """Replace a resource marked unhealthy, or wait for an update that replaces it (MU2, MU7)."""
    if mark.is_over(now):
        return unhealthy.expire(context.world, row, now)
    decision = _replace(context, definition, row, mark, now)
    if isinstance(decision, Waiting) and not row.failed:  # a snapshot was taken of it meanwhile, say
        return unhealthy.fails_again(row, mark, now)
    return decision


def _replace(context: Context, definition: Definition, row: Resource, mark: UnhealthyMark, now: float) -> Decision:
    stack = context.world.stack
    # Only healing is subject to switches and the healing policy; an update replaces a marked resource in any case.
    updated = stack.status == Status.IN_PROGRESS or (context.is_newer(row) and not context.failed_early)
    restricted = "replace" in definition.restricted and row.converge_requested_at is None
    if not updated and (restricted or not check.heals(context.world, row)):
        return Waiting(row.name, Why.UNHEALTHY, (), mark.reason, mark.since, mark.expires_at, row.key)
    # In a failed stack, replace a formerly healthy resource in its former state; a never complete one waits.
    waiting = context.wait_if_failed(row.name) if mark.before is not None or not row.handle else None
    if waiting is not None and row.converge_requested_at is None:
        # Examine it again when the mark expires: without the mark the thing may be healthy.
        return replace(waiting, due_at=mark.expires_at)
    waiting = context.missing_requirements(definition)
    if waiting is not None:
        return waiting
    stopped = context.gates.postpone_healing(row, mark.reason, now, destroys=not updated, alive=True)
    if isinstance(stopped, Waiting) and mark.expires_at is not None:
        return replace(stopped, due_at=min(mark.expires_at, stopped.due_at or mark.expires_at))
    if stopped is not None:
        return stopped
    cut_off = recovery.fence_first(context, row, mark.reason, now)
    if cut_off is not None:
        return cut_off
    row.attempts = 0
    step = context.acts.replace(definition, row, now, f"it is marked unhealthy: {mark.reason}")
    context.gates.begin_healing(step)
    return step
