"""Resources with an act in progress: its end, its repetition, and its redirection by a newer revision. Pure."""

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.intent import arguments_of, changed_of, operation_of
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import SETTLED, Decision, Operate, Step, Update
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome, specs
from homeostat.planner.actions import check
from homeostat.planner.context import Context, changed_properties
from homeostat.planner.lifecycle import (
    adopt,
    create,
    deleted_around,
    external,
    heal,
    intents,
    recovery_state,
    rollouts,
    update,
)
from homeostat.planner.scope import thing_of
from homeostat.planner.states import absence
from homeostat.planner.states.maintenance_state import wait_while_frozen
from homeostat.resources.registry import type_of


def decide(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    if row.action == Action.ADOPT:
        return adopt.go_on(context, row, now)
    # Before waiting for the old act: a newer revision frees a resource from an act that would never end (CV14).
    if row.revision != intents.revision_of(context, definition):
        changed = redirect(context, definition, row, now) or rollouts.redirect(context, definition, row, now)
        changed = changed or _passed_on(context, row, now)
        if changed is not None:
            return changed
    # The intent is stored and its outcome unknown: after a crash, or a lost answer.
    if row.acted_at is None and not _is_missed(context, row):
        return _repeat(context, definition, row, now)
    verdict = _judge(context, row, now)
    ended = _ended(context, row, verdict, now)
    if ended is not None:
        return ended
    if verdict.condition in (Condition.ABSENT, Condition.BROKEN):
        return _brought_back(context, definition, row, verdict, now)
    if verdict.condition is Condition.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, reason=verdict.reason, since=row.updated_at, key=row.key)
    return rollouts.follow(context, row) or _building(row, verdict, verdict.due_at)


def _brought_back(context: Context, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
    """Decide about a thing that is gone or broken while an act is in progress."""
    if recovery_state.is_acting(row):
        # Its health policy decides: it may ask for fencing before the replacement.
        return context.acts.fail(row, verdict.reason, now, Action.CHECK)
    visible_at = (row.acted_at or now) + context.world.listing_lag_s
    # Otherwise a listing lag would lead to a second thing.
    if verdict.condition is Condition.ABSENT and row.action == Action.CREATE and now < visible_at:
        return _building(row, verdict, visible_at)
    return heal.apply_verdict(context, definition, row, verdict, now)


def finish(
    context: Context, definition: Definition, row: Resource, now: float, *, to_be_deleted: bool = False
) -> Decision:
    """Finish an act in progress without beginning another one.

    Args:
        to_be_deleted: Wait instead of failing, since an enclosing stack is being deleted.
    """
    if row.action == Action.ADOPT:
        return adopt.go_on(context, row, now)
    if row.external_id is not None:
        return external.watch(context, row, now)
    if row.handle == "" and row.action == Action.CREATE:
        if row.token:
            return create.find(context, row, now)
        return deleted_around.wait(definition, row, now) if to_be_deleted else _nothing_to_finish(context, row)
    if row.acted_at is None and not _is_missed(context, row):
        return _repeat(context, definition, row, now)
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    ended = _ended(context, row, verdict, now, begins=False)
    if ended is not None:
        return ended
    visible_at = (row.acted_at or now) + context.world.listing_lag_s
    # A cloud that lists late does not show a new thing: absent means nothing before `visible_at`.
    late = row.action == Action.CREATE and now < visible_at
    # Healing would be a new act, so a broken or absent thing fails.
    if verdict.condition is Condition.BROKEN or (verdict.condition is Condition.ABSENT and not late):
        if to_be_deleted:
            return deleted_around.wait(definition, row, now, verdict.reason)
        return context.acts.fail(row, verdict.reason, now)
    return _building(row, verdict, visible_at if late else verdict.due_at)


def _nothing_to_finish(context: Context, row: Resource) -> Decision:
    """Decide about a creation whose search found nothing, so that it would have to begin again."""
    stack = context.world.stack
    waits = stack.frozen and not stack.maintained
    return wait_while_frozen(stack, row.name, row.key, row.updated_at) if waits else SETTLED


def _ended(context: Context, row: Resource, verdict: Verdict, now: float, *, begins: bool = True) -> Decision | None:
    """Complete a resource whose act has ended, unless a rollout follows; None if the act has not ended.

    Args:
        begins: Whether a rollout may begin.
    """
    decided = rollouts.decide_staged(context, row, verdict, now, begins=begins)
    well = verdict.condition in (Condition.READY, Condition.DRIFTED)
    if not well and decided is None:
        return None
    outcome.judge_at_rest(context.world, row, verdict)
    if decided is None:
        rolled = rollouts.decide if begins else rollouts.finish
        decided = rolled(context, row, now)
    return decided or Step(row, events=outcome.complete(context.world, row, now).events)


def redirect(context: Context, definition: Definition, row: Resource, now: float) -> Decision | None:
    """Decide about a resource in progress after a newer revision (CV2, CV14).

    None if the newer revision changes nothing, or the outcome of the act has to be known first.
    """
    # It is unknown whether a thing was created: a replacement now could leave a second thing behind.
    if row.action == Action.CREATE and row.acted_at is None:
        return None
    # A recovery action ends first: a replacement by the newer revision needs its fence, too.
    if row.action != Action.CREATE and (recovery_state.is_marked(row) or recovery_state.is_acting(row)):
        return None
    if definition.type != row.type:
        return context.wait_if_failed(row.name) or _replace(context, definition, row, now)
    try:
        want = context.resolve(definition, row)
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now)
    # An unanswered update is first repeated as intended, which is idempotent, and then redirected.
    if not changed_properties(want, row) or row.acted_at is None:
        return None
    waiting = context.wait_if_failed(row.name)
    if waiting is not None:
        return waiting
    if row.action == Action.CREATE:
        return _replace(context, definition, row, now)
    return update.update_or_replace(context, want, row, now)


def _passed_on(context: Context, row: Resource, now: float) -> Step | None:
    """Pass a convergence request on to a nested stack during its update; None if there is none.

    At once, since the update may wait for the request: a user has to confirm the loss of a group that seems to be gone.
    """
    if row.action != Action.UPDATE or row.acted_at is None or context.failed_early:
        return None
    operation = check.passed_on(context.world, row)
    return check.pass_on(context.world, row, operation, now) if operation == check.CONVERGE else None


def _replace(context: Context, definition: Definition, row: Resource, now: float) -> Step:
    """Replace a thing during an act; delete a never complete thing first.

    Such a thing holds no data, but may hold claims that its replacement needs, as a server holds its port.
    """
    if row.action != Action.CREATE:
        return context.acts.replace(definition, row, now)
    restricted = context.restricted(definition, "replace", row, now)
    return restricted or context.acts.delete_first(definition, row, now)


def _repeat(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Repeat an act with an unknown outcome; search first if a repetition could create a second thing."""
    if row.due_at is not None and row.due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
    if row.action == Action.CREATE and row.handle == "":
        if row.token:
            return create.find(context, row, now)
        # The search found nothing and the token was given up: create with a new token.
        return context.missing_requirements(definition) or context.acts.begin(definition, row, now)
    operation = operation_of(row.intent)
    if operation:
        return Step(row, Operate(operation, arguments_of(row.intent)))
    return Step(row, Update(specs.requested_spec(context, row), changed_of(row.intent)))


def _judge(context: Context, row: Resource, now: float) -> Verdict:
    """Judge a thing with an act in progress.

    A thing found after a lost answer is BROKEN if it needs a field that only the answer contained.
    """
    kind = type_of(row.type)
    thing = thing_of(context.world, row, kind)
    lost = kind.lost_fields(thing) if row.action == Action.CREATE and thing.seen.present else ()
    if lost:
        return Verdict(Condition.BROKEN, f"its {', '.join(lost)} was lost with an answer", Remedy.RECREATE)
    return kind.judge(thing, now)


def _is_missed(context: Context, row: Resource) -> bool:
    """Return whether the thing to update was not found.

    The update is not repeated then; the row is judged instead, which leads to a second look for its thing.
    """
    return outcome.is_changed_outside(row) and absence.is_gone(context.world, row)


def _building(row: Resource, verdict: Verdict, due_at: float | None) -> Waiting:
    return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, due_at, row.key)
