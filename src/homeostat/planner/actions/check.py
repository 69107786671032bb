"""What users ask of what is there already: to look first, to mend or to leave alone, to check (CV8, CV9). Pure.

A check tells whether each resource is as it should be, and changes nothing (reference/heat/engine-semantics.md).
"""

from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import SETTLED, Decision, Settled, Step, Verb, Waiting, Why
from homeostat.model.status import MAINTENANCE, Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.actions import snapshot_state
from homeostat.planner.policies import unhealthy
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import is_outside, kind_of, type_of

LOOK_FIRST = "it is to be looked at first"
LEFT = "left"
"""Key of a row's intent: what is wrong with it and is left alone, since its convergence is switched off."""
CONVERGE, CHECK = "converge", "check"
"""Operations on a child stack: what was asked of its parent. The others have the names of actions of maintenance."""


_AS_ACTION = {CHECK: Action.CHECK, snapshot_state.SNAPSHOT: Action.SNAPSHOT}


def unsettled(world: World) -> bool:
    """Is the newest revision still to be brought about in this shard?"""
    return world.settled_revision < world.stack.revision


def look_first(world: World, row: Resource) -> Waiting | None:
    """Somebody wants it to be looked at before anything is said or done about it."""
    asked_at = row.asked_at or 0.0
    if unsettled(world):
        asked_at = max(asked_at, world.stack.look_from or 0.0)
    if asked_at <= world.looked_at or not row.handle or not is_outside(row.type):
        return None
    return Waiting(row.name, Why.UNSEEN, (), world.blind or LOOK_FIRST, asked_at, key=row.key)


def heals(world: World, row: Resource) -> bool:
    """Is it to be brought back when it is not as it should be: by itself, or because somebody asked?

    What is adopted is left as it is until all of it is adopted; nothing is brought back while the stack is locked or
    suspended.
    """
    if world.stack.held or (world.stack.adopting and row.asked_at is None):
        return False
    rolled_out = unsettled(world) and not world.stack.halted
    return world.stack.converges(row.name) or row.asked_at is not None or rolled_out


def left_alone(row: Resource) -> str:
    """What is known to be wrong with it and is left alone, or ""."""
    return str((row.intent or {}).get(LEFT, ""))


def leave_alone(row: Resource, verdict: Verdict) -> None:
    row.intent = {LEFT: verdict.reason}


def passed_on(world: World, row: Resource) -> str:
    """The operation with which a child stack is asked what this stack was asked, or ""."""
    stack = world.stack
    if kind_of(row.type) != "stack" or stack.look_from is None or not unsettled(world):
        return ""
    if stack.action in MAINTENANCE:
        return ""
    if row.revision == stack.revision:
        return ""
    return CHECK if stack.checking else CONVERGE


def pass_on(world: World, row: Resource, operation: str, now: float) -> Step:
    """Ask the child stack; the row is done when its child is."""
    action = Action.UPDATE if operation == CONVERGE else Action(operation.upper())
    goes_on = row.busy and row.action == action
    row.action, row.status, row.reason = action, Status.IN_PROGRESS, outcome.CHANGED
    row.revision = world.stack.revision
    row.acted_at = row.due_at = row.asked_at = None
    row.retries = 0
    row.intent = {"operation": operation, "stamp": world.next_stamp()}
    row.updated_at = now
    events = [] if goes_on else [outcome.event_of(row, row.status, row.reason)]
    return Step(Verb.OPERATE, row, operation=operation, events=events)


def only_finishes(world: World) -> bool:
    """A stack is looked at that was never complete: what its resources require may be missing, so none is begun."""
    return (world.stack.checking or world.stack.snapshotting) and world.stack.complete_revision != world.stack.revision


def check(world: World, row: Resource | None, now: float) -> Decision:
    """Check one resource that is not in progress. What failed before stays as it is: it counts as a failure."""
    if row is None or row.action == Action.INIT or row.revision == world.stack.revision:
        return SETTLED
    mark = unhealthy.mark_of(row)
    if mark is not None and not mark.is_over(now):
        return SETTLED
    if row.failed and row.action == Action.CREATE:
        return _unmade(world, row, now)
    if row.failed and row.action not in (Action.CHECK, Action.SNAPSHOT):
        return SETTLED
    operation = passed_on(world, row)
    if operation:
        return pass_on(world, row, operation, now)
    return look_first(world, row) or _told(world, row, now)


def _told(world: World, row: Resource, now: float) -> Decision:
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
    """Of what could not be made it is told that it is not there. What came to be all the same, after its time was over,
    is well; what is there and of no use stays as it is."""
    if row.handle == "":
        return _checked(world, row, Status.FAILED, row.reason, now)
    if not outcome.is_looked_for(row) or row.external_id is not None:
        return SETTLED
    unseen = look_first(world, row)
    if unseen is not None or came_to_be(world, row, now) is None:
        return unseen or SETTLED
    row.changed = world.next_stamp()
    return _checked(world, row, Status.COMPLETE, outcome.CHANGED, now)


def came_to_be(world: World, row: Resource, now: float) -> Verdict | None:
    """The verdict on a thing that could not be made in its time, where it is there by now, and of use."""
    if row.handle == "" or not is_outside(row.type) or row.external_id is not None:
        return None
    kind = type_of(row.type)
    thing = thing_of(world, row, kind)
    verdict = kind.judge(thing, now)
    fit = verdict.condition in (Condition.READY, Condition.DRIFTED) and not kind.missed(thing)
    return verdict if fit else None


def _checked(world: World, row: Resource, status: Status, reason: str, now: float) -> Settled:
    """What differs in a property only is no failure: it would be replaced for it."""
    begun = outcome.event_of(row, Status.IN_PROGRESS, outcome.CHANGED, Action.CHECK)
    row.action, row.status, row.reason = Action.CHECK, status, reason
    row.revision = world.stack.revision
    row.asked_at = None
    row.updated_at = now
    return Settled(Step(Verb.RECORD, row, events=[begun, outcome.event_of(row, status, reason)]))
