"""Rollouts of a new definition to the members of a group: how the group's row waits for their end. Pure.

The stack of such a group is staged (`policies.definition_rollout`), which the observation of it shows. The row begins
the rollout as soon as that stack is at rest, waits whatever becomes of that stack in the meantime, and is judged by it
again once the rollout is over.
"""

from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import Decision, Step, Verb
from homeostat.model.rollout import Rollout, RolloutEnd, RolloutState
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import metadata_updates


def decide(context: Context, row: Resource, verdict: Verdict, now: float, *, begins: bool = True) -> Decision | None:
    """Decide about a group in progress; None without a rollout of a definition, or if the usual judgement applies.

    Args:
        context: The shard.
        row: Row of the group.
        verdict: The judgement of its stack.
        now: The time.
        begins: Whether a rollout may start. If not, only rollouts that end unaided are waited for.
    """
    subject, rollout = metadata_updates.subject_of(context, row), context.world.rollouts.get(row.key)
    about = rollout.subject if rollout is not None else None
    if (subject is None and about is None) or verdict.condition in (Condition.ABSENT, Condition.UNKNOWN):
        return None
    if not begins and metadata_updates.is_left(context, row):
        return None
    if rollout is not None and about is not None and RolloutState(rollout.state).ended and subject in (None, about):
        return _ended(context, row, rollout, verdict, now, carried_out=subject is None)
    if subject is None and verdict.condition is Condition.PENDING:
        return None
    if subject is None:
        # A newer revision has brought all members to one definition at once.
        context.world.rollouts.pop(row.key, None)
        return Step(Verb.RECORD, row, rollout=RolloutEnd(row.key))
    if rollout is None or about != subject:
        waits = verdict.condition is Condition.PENDING
        return None if waits or not begins else metadata_updates.begin_gated(context, row, now)
    return metadata_updates.wait(context, row, rollout, now)


def _ended(
    context: Context, row: Resource, rollout: Rollout, verdict: Verdict, now: float, *, carried_out: bool
) -> Decision | None:
    """Conclude a rollout once the members have what its end has led to."""
    if not carried_out:
        return Waiting(row.name, Why.ROLLOUT, (), rollout.reason, rollout.step_at, key=row.key)
    if verdict.condition is Condition.PENDING:
        return None
    if rollout.state != RolloutState.SUCCEEDED:
        return metadata_updates.fail(context, row, rollout, now)
    if verdict.condition is not Condition.BROKEN:
        return metadata_updates.succeed(context, row, now)
    del context.world.rollouts[row.key]
    step = context.acts.fail(row, verdict.reason, now)
    step.rollout = RolloutEnd(row.key)
    return step
