"""Resources at rest: judged by their newest observation, and compared with their definition. Pure."""

from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import SETTLED, Decision, Settled, Step
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource
from homeostat.planner import outcome, request_outcome
from homeostat.planner.actions import check
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import heal, rollouts, update
from homeostat.planner.policies import healing
from homeostat.planner.states import maintenance_state, unkept
from homeostat.resources.registry import type_of


def decide(context: Context, definition: Definition, reached: Definition, row: Resource, now: float) -> Decision:
    """Judge a complete resource by its newest observation, and compare it with its definition.

    Args:
        definition: Desired state.
        reached: State to restore in healing, see `Context.reached`.
    """
    unseen = check.look_first(context.world, row)
    if unseen is not None:
        return unseen
    seen = context.world.seen.get(row.key)
    # A quick test, since most rows are no groups: see `rollouts.is_rolling_out`.
    staged = seen is not None and "staged" in seen.observation.properties
    if staged or row.new_metadata is not None or row.key in context.world.rollouts:
        rolling_out = rollouts.resume(context, row, now)
        if rolling_out is not None:
            return rolling_out
    # An update was intended and overtaken before the thing was changed; no look would show this.
    if outcome.is_unchanged(row) and not (context.failed_early or context.world.stack.frozen):
        return update.compare(context, definition, row, now)
    # Skip judging if nothing has changed since the last time: most rows of most passes end here.
    unjudged = seen is not None and seen.number != row.judged_observation
    # `_judge` may change these without returning a step; then the row has to be stored all the same.
    before = (row.intent, row.converge_requested_at, row.drains_until, row.marks)
    row.drains_until = None  # a draining resource that is wanted again
    if (
        unjudged
        or check.left_alone(row)
        or row.converge_requested_at is not None
        or maintenance_state.unresumed(context.world, row)
    ):
        judged = _judge(context, reached, row, now)
        if judged is not None:
            return judged
    judged_before, changed_before = row.judged_observation, row.changed
    if unjudged:
        row.judged_observation = context.world.seen[row.key].number
        _forget_kept(context, row)
        # The thing looks different from before, so dependants have to read its attributes again.
        row.changed = context.world.next_stamp()
    resumed = maintenance_state.resumed_otherwise(context.world, row)
    if resumed:
        row.marks = maintenance_state.without_mark(row, Action.RESUME)
    decision = _compared(context, definition, row, now)
    if isinstance(decision, Waiting):
        # Nothing is stored and the row will be judged again, so its dependants must not read anything anew yet.
        row.judged_observation, row.changed = judged_before, changed_before
        return decision
    is_changed = unjudged or resumed or before != (row.intent, row.converge_requested_at, row.drains_until, row.marks)
    return Settled(Step(row)) if is_changed and decision is SETTLED else decision


def _compared(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Compare a resource with its definition if one of them may have changed."""
    changes = context.is_newer(row) or definition.type != row.type or context.is_stale(definition, row)
    if not changes or context.world.stack.frozen:
        return SETTLED
    return update.compare(context, definition, row, now)


def _forget_kept(context: Context, row: Resource) -> None:
    """Forget the status in which a user has left a thing if it is ready again by other means."""
    if row.marks is not None and row.marks.kept:
        status = context.world.seen[row.key].observation.properties.get("status")
        if status in type_of(row.type).statuses.ready:
            request_outcome.keep(row, "")


def _judge(context: Context, definition: Definition, row: Resource, now: float) -> Decision | None:
    """Judge a resource at rest, and heal it unless convergence is switched off (CV8).

    None if it is healthy, is left alone, or will be repaired by the comparison with a newer revision.
    """
    if row.marks is not None and row.key in context.world.seen and context.world.seen[row.key].observation.present:
        healing.unmark_lost(row)
    verdict = maintenance_state.at_rest(context.world, row, now)
    unkept.forget(context.world, row, verdict)
    unkept_names = unkept.of(context.world, row, verdict) if row.converge_requested_at is None else ()
    if unkept_names and len(unkept_names) == len(verdict.drifted):
        check.leave_alone(row, replace(verdict, reason=unkept.reason(context.world, row, unkept_names)))
        return None
    if unkept_names:
        verdict = replace(verdict, drifted=tuple(name for name in verdict.drifted if name not in unkept_names))
    if outcome.unfit(verdict):
        newer = context.is_newer(row)
        # A newer revision repairs a failed nested stack, see `lifecycle.update`.
        if _is_failed_stack(context, row, verdict):
            return None if newer else context.acts.fail(row, verdict.reason, now, Action.CHECK)
        # The comparison with its newer definition resumes the thing.
        if verdict is maintenance_state.STILL_SUSPENDED and newer and not context.failed_early:
            return None
        awaited = verdict.condition is Condition.DRIFTED and context.gates.waits_for_reports(row)
        heals = check.heals(context.world, row) or maintenance_state.is_resumption(context.world, row, verdict)
        if heals and not _forbidden(definition, verdict) and not awaited:
            return heal.apply_verdict(context, definition, row, verdict, now)
        check.leave_alone(row, verdict)
    elif check.left_alone(row):
        row.intent = None
    row.converge_requested_at = None
    return None


def _is_failed_stack(context: Context, row: Resource, verdict: Verdict) -> bool:
    """Return whether a nested stack, which heals itself, has failed.

    The failure is only recorded, so the switches for convergence do not matter.
    """
    stack = context.world.stack
    failed = type_of(row.type).heals_itself and verdict.remedy is Remedy.MANUAL
    return failed and not stack.frozen and not stack.adopting


def _forbidden(definition: Definition, verdict: Verdict) -> bool:
    """Return whether the environment forbids the act that would heal the resource.

    Creating an absent thing again is always allowed, since nothing existing is touched.
    """
    if verdict.condition is Condition.ABSENT:
        return False
    action = {Remedy.UPDATE: "update", Remedy.RECREATE: "replace", Remedy.REPLACE: "replace"}.get(verdict.remedy)
    return action in definition.restricted
