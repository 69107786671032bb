"""Resources at rest: judged by what was seen of them, and compared with what they should be. Pure."""

from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import SETTLED, Decision, Settled, Step, Verb
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource
from homeostat.planner import outcome, request_outcome
from homeostat.planner.actions import check, maintenance_state
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import heal, rollouts, update
from homeostat.planner.policies import healing, unkept
from homeostat.resources.registry import type_of


def decide(context: Context, definition: Definition, reached: Definition, row: Resource, now: float) -> Decision:
    """Judge a resource that is complete by what was seen since, and compare it with what it should be.

    Args:
        context: The shard.
        definition: What it should be.
        reached: What it is brought back to where it is not as it was, see `Context.reached`.
        row: The row.
        now: The time.
    """
    unseen = check.look_first(context.world, row)
    if unseen is not None:
        return unseen
    seen = context.world.seen.get(row.key)
    # Asked here, since most rows are no groups: see `rollouts.is_rolling_out`.
    staged = seen is not None and "staged" in seen.observation.properties
    if staged or row.new_metadata is not None or row.key in context.world.rollouts:
        rolling_out = rollouts.resume(context, row, now)
        if rolling_out is not None:
            return rolling_out
    # An update was intended and then overtaken before the thing was changed; no look would show that.
    if outcome.is_unchanged(row) and not (context.failed_early or context.world.stack.frozen):
        return update.compare(context, definition, row, now)
    # Judging is skipped where nothing has changed since the last time: most rows of most passes end here.
    unjudged = seen is not None and seen.number != row.judged_observation
    # `_judge` may note something in the row without giving a step; the note has to be stored all the same.
    before = (row.intent, row.converge_requested_at, row.drains_until, row.marks)
    row.drains_until = None  # it is wanted again
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
        # Something was seen that differs from before, so whatever reads the attributes has to read them again.
        row.changed = context.world.next_stamp()
    resumed = maintenance_state.resumed_otherwise(context.world, row)
    if resumed:
        row.marks = maintenance_state.without_mark(row, Action.RESUME)
    decision = _compared(context, definition, row, now)
    if isinstance(decision, Waiting):
        # Nothing of it is stored, and it is judged again: those that read it have to read nothing anew for now.
        row.judged_observation, row.changed = judged_before, changed_before
        return decision
    noted = unjudged or resumed or before != (row.intent, row.converge_requested_at, row.drains_until, row.marks)
    return Settled(Step(Verb.RECORD, row)) if noted and decision is SETTLED else decision


def _compared(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Compare it with what it should be, where that may have changed since."""
    changes = context.is_newer(row) or definition.type != row.type or context.is_stale(definition, row)
    if not changes or context.world.stack.frozen:
        return SETTLED
    return update.compare(context, definition, row, now)


def _forget_kept(context: Context, row: Resource) -> None:
    """Forget the status in which a user has left a thing that is ready again: others have brought it back."""
    if row.marks is not None and row.marks.kept:
        status = context.world.seen[row.key].observation.properties.get("status")
        if status in type_of(row.type).statuses.ready:
            request_outcome.keep(row, "")


def _judge(context: Context, definition: Definition, row: Resource, now: float) -> Decision | None:
    """Judge a resource at rest; bring it back, or leave it alone where that is switched off (CV8).

    None where it is as it should be, is left alone, or is mended by comparing it with a newer revision.
    """
    if row.marks is not None and row.key in context.world.seen and context.world.seen[row.key].observation.present:
        healing.found_again(row)
    verdict = maintenance_state.at_rest(context.world, row, now)
    unkept.forget(context.world, row, verdict)
    left = unkept.of(context.world, row, verdict) if row.converge_requested_at is None else ()
    if left and len(left) == len(verdict.drifted):
        check.leave_alone(row, replace(verdict, reason=unkept.reason(context.world, row, left)))
        return None
    if left:
        verdict = replace(verdict, drifted=tuple(name for name in verdict.drifted if name not in left))
    if outcome.unfit(verdict):
        newer = context.is_newer(row)
        # A newer revision mends it, see `lifecycle.update`.
        if _is_failed_stack(context, row, verdict):
            return None if newer else context.acts.fail(row, verdict.reason, now, Action.CHECK)
        # So it does here, by the comparison with its definition.
        if verdict is maintenance_state.ASLEEP and newer and not context.failed_early:
            return None
        waits = verdict.condition is Condition.DRIFTED and context.gates.waits_for_reports(row)
        heals = check.heals(context.world, row) or maintenance_state.wakes(context.world, row, verdict)
        if heals and not _forbidden(definition, verdict) and not waits:
            return heal.bring_back(context, definition, row, verdict, now)
        check.leave_alone(row, verdict)
    elif check.left_alone(row):
        row.intent = None
    row.converge_requested_at = None
    return None


def _is_failed_stack(context: Context, row: Resource, verdict: Verdict) -> bool:
    """Return whether it is a nested stack that has failed, and heals itself.

    That is only recorded, so it holds whatever the switches say.
    """
    stack = context.world.stack
    failed = type_of(row.type).heals_itself and verdict.remedy is Remedy.MANUAL
    return failed and not stack.frozen and not stack.adopting


def _forbidden(definition: Definition, verdict: Verdict) -> bool:
    """Return whether the environment forbids the act that would bring the resource back.

    Creating again what is gone is always allowed: it touches nothing.
    """
    if verdict.condition is Condition.ABSENT:
        return False
    action = {Remedy.UPDATE: "update", Remedy.RECREATE: "replace", Remedy.REPLACE: "replace"}.get(verdict.remedy)
    return action in definition.restricted
