"""Actions on existing things: suspend, resume, lock and unlock. Pure.

These actions are revisions with the same desired state, like a check (ADR 0020, ADR 0037). They create, change and
delete nothing: acts in progress end, resources without a thing are skipped, and the type of a thing knows the method.
A suspended or locked stack is frozen: nothing in it changes until it is resumed or unlocked.
"""

from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import SETTLED, Decision, Operate, Settled, Step, event_of
from homeostat.model.stack_actions import LOCKED, MAINTENANCE, STACK_ACTIONS
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, StackFacts
from homeostat.planner import outcome, specs
from homeostat.planner.actions import check
from homeostat.planner.context import Context
from homeostat.planner.scope import thing_of
from homeostat.planner.states import maintenance_state
from homeostat.resources.base import MaintenanceMethod
from homeostat.resources.registry import kind_of, type_of

STACKS = "stacks"
"""Level of a lock that does not lock things in the cloud."""


def required_action(stack: StackFacts, row: Resource) -> str:
    """Return the action that the maintenance of a stack requires of a resource, or "" for none."""
    action = stack.action
    if kind_of(row.type) == "stack":
        return action
    # Locked again at a lower level: unlock the things of the earlier lock.
    if action == Action.LOCK and (stack.lock or {}).get("level") == STACKS:
        action = Action.UNLOCK
    if action == Action.UNLOCK:
        # Unlock only things locked for the stack, not those locked by others (LK5).
        failed = row.failed and row.action == action
        return action if failed or row.action == Action.LOCK or maintenance_state.has_mark(row, LOCKED) else ""
    return action


def maintain(context: Context, row: Resource | None, now: float) -> Decision:
    """Decide about a resource without an act in progress."""
    stack = context.world.stack
    if row is None or row.action == Action.INIT:
        return SETTLED
    # Done at this revision; a failure ends the maintenance unless the action is thorough.
    if row.revision == stack.revision and row.action in MAINTENANCE and not row.busy:
        failure = Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        return failure if row.failed and not stack.thorough else SETTLED
    action = required_action(stack, row)
    if not action:
        return SETTLED
    if row.failed and row.action not in MAINTENANCE and not _reaches_failed(context, row, action):
        return _refuse(context, row) if _is_refused(context, row, action) else SETTLED
    if kind_of(row.type) == "stack":
        return check.pass_on(context.world, row, action.lower(), now)
    method = maintenance_state.method_of(context.world, row, action)
    if method is None:
        return _record_done(context, row, action, now)
    return check.look_first(context.world, row) or _apply(context, row, action, method, now)


def unlock(context: Context, row: Resource, now: float) -> Decision:
    """Unlock a thing that stayed locked in an unlocked stack, without changing its revision for later comparison."""
    method, revision = maintenance_state.method_of(context.world, row, Action.UNLOCK), row.revision
    if method is None:
        decision: Decision = _record_done(context, row, Action.UNLOCK, now)
    else:
        decision = check.look_first(context.world, row) or _apply(context, row, Action.UNLOCK, method, now)
    row.revision = revision
    return decision


def _reaches_failed(context: Context, row: Resource, action: str) -> bool:
    """Return whether an action is executed on a resource with a failed action of another sort.

    Usually not, since recording the action would lose the failure. But a nested stack keeps its own failure, so it is
    locked, and resumed if suspended.
    """
    if action == Action.LOCK:
        return kind_of(row.type) == "stack" and row.handle != "" and not row.deleting
    return action == Action.RESUME and maintenance_state.is_suspended_stack(context.world, row)


def _is_refused(context: Context, row: Resource, action: str) -> bool:
    """Return whether a stack fails since an action skips a failed resource.

    A failed resource must not be suspended, and skipping a lockable thing would leave it unprotected.
    """
    if action != Action.LOCK:
        return action == Action.SUSPEND
    if kind_of(row.type) == "stack":
        return row.handle != ""
    method = maintenance_state.method_of(context.world, row, action)
    seen = context.world.seen.get(row.key)
    return method is not None and not (seen is not None and method.is_done(seen.observation.properties))


def _refuse(context: Context, row: Resource) -> Settled:
    """Refuse an action on a failed resource, which fails the stack."""
    # Only a failure at this revision fails the stack.
    row.revision = context.world.stack.revision
    return Settled(Step(row))


def _apply(context: Context, row: Resource, action: str, method: MaintenanceMethod, now: float) -> Decision:
    thing = thing_of(context.world, row)
    verdict = type_of(row.type).judge(thing, now)
    if verdict.condition is Condition.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, (), verdict.reason, row.updated_at, key=row.key)
    if verdict.condition is Condition.ABSENT:
        return _record_missing(context, row, action, verdict, now)
    if verdict.condition is Condition.PENDING and not row.failed:
        return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, verdict.due_at, row.key)
    cleared = STACK_ACTIONS[action].clears
    # Without a mark the thing was not touched for the stack, so there is nothing to undo.
    if cleared and not maintenance_state.has_mark(row, cleared):
        return _record_done(context, row, action, now)
    # After a failure the field proves nothing for a gradual method, so repeat it: a stack in another region shows the
    # action SUSPEND also after a failed suspension.
    if method.is_done(thing.seen.properties) and not (row.failed and method.gradual):
        # Already suspended by other means: mark it to be resumed with its stack.
        if action == Action.SUSPEND:
            row.marks = maintenance_state.with_mark(row, action, now)
        return _record_done(context, row, action, now)
    return _begin(context, row, action, method, now)


def _record_missing(context: Context, row: Resource, action: str, verdict: Verdict, now: float) -> Decision:
    """Skip an absent thing, except for a lock, which fails since nothing is protected."""
    if action != Action.LOCK:
        return _record_done(context, row, action, now, verdict)
    begin_events = outcome.begin(row, action)
    step = context.acts.fail(row, verdict.reason, now, action)
    step.events = [*begin_events, *step.events]
    return step


def _record_done(context: Context, row: Resource, action: str, now: float, absent: Verdict | None = None) -> Step:
    """Record an action as done without an act on the thing.

    Args:
        absent: Verdict on an absent thing, noted in the row and reported after the end of the maintenance.
    """
    events = outcome.begin(row, action)
    row.enter(action, Status.COMPLETE, outcome.CHANGED)
    row.revision = context.world.stack.revision
    row.marks = maintenance_state.without_mark(row, action)
    row.acted_at = row.acted_at or now
    row.due_at = row.converge_requested_at = None
    row.updated_at = now
    if absent is not None:
        check.leave_alone(row, absent)
    events.append(event_of(row))
    return Step(row, events=events)


def _begin(context: Context, row: Resource, action: str, method: MaintenanceMethod, now: float) -> Step:
    """Intend the action on the thing.

    The mark is stored before the act, so that the act is undone later even if its answer is lost.
    """
    act = specs.maintenance_act(context, row, method)
    events = outcome.begin(row, action)
    row.revision = context.world.stack.revision
    row.acted_at = row.due_at = row.converge_requested_at = None
    row.retries = 0
    row.intent = specs.intent_of(act)
    if STACK_ACTIONS[action].mark:
        row.marks = maintenance_state.with_mark(row, action, now)
    row.updated_at = now
    return Step(row, act, events)


def go_on(context: Context, row: Resource, now: float) -> Decision:
    """Decide about a resource that is being suspended, resumed, locked or unlocked."""
    stack = context.world.stack
    if row.acted_at is None and row.revision != stack.revision and stack.maintained:
        # Not acted yet, and overtaken by another action.
        return maintain(context, row, now)
    verdict = maintenance_state.verdict(context.world, row, now)
    if verdict.condition is Condition.ABSENT:
        return _record_missing(context, row, row.action, verdict, now)
    if verdict.condition in (Condition.READY, Condition.DRIFTED) and _is_reflected(row):
        outcome.judge_at_rest(context.world, row, verdict)
        return Step(row, events=outcome.complete(context.world, row, now).events)
    if row.acted_at is None:
        # Maintenance methods are idempotent, so a lost answer needs no search.
        return _repeat(context, row, now)
    if verdict.condition is Condition.BROKEN:
        return _fail(context, row, verdict, now)
    why = Why.UNSEEN if verdict.condition is Condition.UNKNOWN else Why.BUILDING
    return Waiting(row.name, why, (), verdict.reason, row.updated_at, verdict.due_at, row.key)


def _fail(context: Context, row: Resource, verdict: Verdict, now: float) -> Step:
    """Fail a resource at its action, but keep the revision during a newer action, which then handles the resource.

    Otherwise the failure would count for the newer action, and leave a nested stack suspended during a resume.
    """
    overtaken = row.revision if context.world.stack.status == Status.IN_PROGRESS else context.world.stack.revision
    step = context.acts.fail(row, verdict.reason, now)
    row.revision = overtaken
    return step


def _is_reflected(row: Resource) -> bool:
    """Return whether the thing shows the result; a nested stack without the request still shows its former state."""
    return row.acted_at is not None or kind_of(row.type) != "stack"


def _repeat(context: Context, row: Resource, now: float) -> Decision:
    """Repeat a request that may not have reached the thing."""
    if row.due_at is not None and row.due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
    method = maintenance_state.method_of(context.world, row, row.action)
    if method is None:
        return Step(row, Operate(row.action.lower(), {}))
    return Step(row, specs.maintenance_act(context, row, method))
