"""Requests that change no desired state: looks, convergence and checks (CV8, CV9). Pure.

A check finds out whether each resource matches its desired state, and changes nothing, as in Heat.
"""

from homeostat.model.intent import LeftAlone, OperationIntent, left_alone_for
from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import SETTLED, Decision, Operate, Settled, Step, event_of
from homeostat.model.stack_actions import MAINTENANCE
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.policies import unhealthy
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import is_outside, kind_of, type_of

LOOK_FIRST = "it is to be looked at first"
CONVERGE, CHECK = "converge", "check"
"""Requests of a parent to a nested stack. Requests for maintenance have the names of their actions."""


def unsettled(world: World) -> bool:
    """Return whether this shard has yet to reach the newest revision."""
    return world.settled_revision < world.stack.revision


def look_first(world: World, row: Resource) -> Waiting | None:
    """Return a reason to wait if decisions about a thing need a newer look; else None.

    After a request to check, converge or maintain its stack, or to converge the resource, the look has to be newer
    than the request.
    """
    asked_at = row.converge_requested_at or 0.0
    if unsettled(world):
        asked_at = max(asked_at, world.stack.look_from or 0.0)
    # A nested stack needs no look: its state is read from its own rows whenever the shard is loaded.
    if asked_at <= world.looked_at or not row.handle or not is_outside(row.type):
        return None
    return Waiting(row.name, Why.UNSEEN, (), world.blind or LOOK_FIRST, asked_at, key=row.key)


def heals(world: World, row: Resource) -> bool:
    """Return whether differences of the resource are healed, automatically or on request.

    Adopted things are not healed until the whole stack is adopted, and nothing is healed in a frozen stack.
    """
    if world.stack.frozen or (world.stack.adopting and row.converge_requested_at is None):
        return False
    # A member with a health policy is fenced and recovered by its actions, also during an update.
    if world.health is not None and world.health.policy_of(row.name) is not None:
        return row.converge_requested_at is not None
    if world.brake.leaves_alone(row.name):
        return row.converge_requested_at is not None
    # A revision in progress is completed even if continuous convergence is switched off.
    rolled_out = unsettled(world) and not world.stack.failed_early
    return world.stack.converges(row.name) or row.converge_requested_at is not None or rolled_out


def left_alone(row: Resource) -> str:
    """Return the known problem of a resource that is left alone, or ""."""
    return left_alone_for(row.intent)


def leave_alone(row: Resource, verdict: Verdict) -> None:
    row.intent = LeftAlone(verdict.reason)


def passed_on(world: World, row: Resource) -> str:
    """Return the operation that passes a request of this stack on to a nested stack, or ""."""
    stack = world.stack
    if kind_of(row.type) != "stack" or stack.look_from is None or not unsettled(world):
        return ""
    # Maintenance passes itself on, see `actions.maintenance`.
    if stack.action in MAINTENANCE:
        return ""
    # Already passed on, or acted on otherwise, at this revision.
    if row.revision == stack.revision:
        return ""
    return CHECK if stack.checking else CONVERGE


def pass_on(world: World, row: Resource, operation: str, now: float) -> Step:
    """Intend to pass a request on to a nested stack; the row is complete when the nested stack is."""
    action = Action.UPDATE if operation == CONVERGE else Action(operation.upper())
    events = outcome.begin(row, action)
    row.revision = world.stack.revision
    row.acted_at = row.due_at = row.converge_requested_at = None
    row.retries = 0
    # The stamp distinguishes this request from the last one, which the nested stack would not repeat.
    row.intent = OperationIntent(operation, world.next_stamp())
    row.updated_at = now
    return Step(row, Operate(operation, {}), events=events)


def only_finishes(world: World) -> bool:
    """Return whether a check or snapshot is taken of a stack that was never complete.

    Requirements of its resources may be missing, so no act begins.
    """
    return (world.stack.checking or world.stack.snapshotting) and world.stack.complete_revision != world.stack.revision


def check(world: World, row: Resource | None, now: float) -> Decision:
    """Check a resource that is not in progress; an earlier failure counts as a failure of the check."""
    if row is None or row.action == Action.INIT or row.revision == world.stack.revision:
        return SETTLED
    mark = unhealthy.mark_of(row)
    if mark is not None:
        # The row may have failed for another reason than the mark, which no check of the thing would show.
        return unhealthy.expire(world, row, now) if mark.is_over(now) else SETTLED
    if row.failed and row.action == Action.CREATE:
        return _unmade(world, row, now)
    if row.failed and row.action not in (Action.CHECK, Action.SNAPSHOT):
        return SETTLED
    operation = passed_on(world, row)
    if operation:
        return pass_on(world, row, operation, now)
    return look_first(world, row) or _judged(world, row, now)


def _judged(world: World, row: Resource, now: float) -> Decision:
    if not is_outside(row.type):
        return _checked(world, row, Status.COMPLETE, f"CHECK not supported for {row.type}", now)
    verdict = type_of(row.type).judge(thing_of(world, row), now)
    if verdict.condition is Condition.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, (), verdict.reason, row.updated_at, key=row.key)
    if verdict.condition is Condition.PENDING:
        return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, verdict.due_at, row.key)
    if verdict.condition in (Condition.ABSENT, Condition.BROKEN):
        return _checked(world, row, Status.FAILED, verdict.reason, now)
    return _checked(world, row, Status.COMPLETE, verdict.reason or outcome.CHANGED, now)


def _unmade(world: World, row: Resource, now: float) -> Decision:
    """Check a resource whose creation failed.

    Without a thing the check fails; a thing that became ready after the timeout is healthy; a broken thing is ignored.
    """
    if row.handle == "":
        return _checked(world, row, Status.FAILED, row.reason, now)
    if not outcome.is_looked_for(row) or row.external_id is not None:
        return SETTLED
    unseen = look_first(world, row)
    if unseen is not None or created_late(world, row, now) is None:
        return unseen or SETTLED
    row.changed = world.next_stamp()
    return _checked(world, row, Status.COMPLETE, outcome.CHANGED, now)


def created_late(world: World, row: Resource, now: float) -> Verdict | None:
    """Return the verdict on a thing whose creation timed out, if the thing works by now, else None."""
    if row.handle == "" or not is_outside(row.type) or row.external_id is not None:
        return None
    kind = type_of(row.type)
    thing = thing_of(world, row, kind)
    verdict = kind.judge(thing, now)
    fit = verdict.condition in (Condition.READY, Condition.DRIFTED) and not kind.lost_fields(thing)
    return verdict if fit else None


def _checked(world: World, row: Resource, status: Status, reason: str, now: float) -> Settled:
    """Record the result of a check.

    Drift is no failure, since an update would replace a resource after a failed check.
    """
    events = outcome.begin(row, Action.CHECK)
    row.enter(Action.CHECK, status, reason)
    row.revision = world.stack.revision
    row.converge_requested_at = None
    row.updated_at = now
    return Settled(Step(row, events=[*events, event_of(row)]))
