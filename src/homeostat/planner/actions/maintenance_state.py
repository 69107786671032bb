"""Signs that a thing is suspended, resumed, locked or unlocked for its stack, and the marks that record it. Pure."""

from dataclasses import replace

from homeostat.model.intent import operation_of
from homeostat.model.marks import NO_MARKS, Marks
from homeostat.model.observed import READY, Condition, Remedy, Verdict
from homeostat.model.stack_actions import LOCKED, MAINTENANCE, STACK_ACTIONS, SUSPENDED
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, StackFacts, World
from homeostat.planner.scope import thing_of
from homeostat.resources.base import MaintenanceMethod
from homeostat.resources.registry import kind_of, type_of

ASLEEP = Verdict(Condition.BROKEN, "its stack is suspended", Remedy.OPERATE, Action.RESUME.lower())
"""Verdict on a nested stack that is still suspended (see `sleeps_on`)."""

UNLOCK = "unlock"
"""Operation in the intent of a row that is unlocked for its deletion."""
UNLOCK_FIRST = "it is unlocked first"


def verdict(world: World, row: Resource, now: float) -> Verdict:
    """Judge a thing; one under maintenance by whether that is done."""
    kind = type_of(row.type)
    thing = thing_of(world, row, kind)
    found = kind.judge(thing, now)
    if not (row.busy and row.action in MAINTENANCE):
        return found
    method = kind.maintenance_method(thing, row.action)
    if method is None or found.condition in (Condition.ABSENT, Condition.UNKNOWN):
        return found
    # Before the field is read: it may show the new value while the act is under way, or has failed.
    if method.gradual and _under_way_or_broken(found):
        return found
    if method.is_done(thing.seen.properties):
        return READY
    return Verdict(
        Condition.PENDING, f"its {method.observed_field} is {thing.seen.properties.get(method.observed_field)}"
    )


def _under_way_or_broken(found: Verdict) -> bool:
    """Return whether the thing is changing, or broken.

    A status that calls for an operation is not counted: it may merely be the status from before the act.
    """
    broken = found.condition is Condition.BROKEN and found.remedy is not Remedy.OPERATE
    return broken or found.condition is Condition.PENDING


def method_of(world: World, row: Resource, action: str) -> MaintenanceMethod | None:
    """Return how an action is carried out on a resource's thing; None to leave it alone.

    A thing that is not managed here (`external_id`) is always left alone.
    """
    if row.external_id is not None or row.handle == "" or kind_of(row.type) == "":
        return None
    kind = type_of(row.type)
    return kind.maintenance_method(thing_of(world, row, kind), action)


def has_mark(row: Resource, mark: str) -> bool:
    """Return whether a row carries the mark that an action leaves."""
    return row.marks is not None and mark in row.marks.maintained


def with_mark(row: Resource, action: str, now: float) -> Marks:
    """Return the marks of a row on which the action begins."""
    marks = row.marks or NO_MARKS
    return replace(marks, maintained={**marks.maintained, STACK_ACTIONS[action].mark: now})


def without_mark(row: Resource, action: str) -> Marks | None:
    """Return the marks of a row on which the action is done: without the mark that it undoes, if any."""
    marks, cleared = row.marks or NO_MARKS, STACK_ACTIONS[action].clears
    return replace(marks, maintained={name: at for name, at in marks.maintained.items() if name != cleared}) or None


def unlocking(row: Resource) -> bool:
    """Return whether a row is unlocked so that it may be deleted."""
    return row.deleting and row.busy and operation_of(row.intent) == UNLOCK


def at_rest(world: World, row: Resource, now: float) -> Verdict:
    """Judge a thing that is in progress with nothing."""
    found = type_of(row.type).judge(thing_of(world, row), now)
    return ASLEEP if found.condition is Condition.READY and sleeps_on(world, row) else found


def sleeps(world: World, row: Resource) -> bool:
    """Return whether it is a nested stack that is suspended."""
    seen = world.seen.get(row.key)
    asleep = seen is not None and kind_of(row.type) == "stack" and seen.observation.properties.get("suspended")
    return bool(asleep)


def sleeps_on(world: World, row: Resource) -> bool:
    """Return whether it is a nested stack that is still suspended although this stack was resumed."""
    return sleeps(world, row) and not world.stack.suspended and not world.stack.held


def unresumed(world: World, row: Resource) -> bool:
    """Return whether it was suspended with its stack, and not resumed with it."""
    return _marked_in_vain(world, row) or sleeps_on(world, row)


def held(stack: StackFacts, name: str, key: str = "", since: float | None = None) -> Waiting:
    """Return the reason why nothing is done about a resource of a stack that is held."""
    if stack.lock is None:
        return Waiting(name, Why.SUSPENDED, (), "the stack is suspended", since, key=key)
    owner, reason = stack.lock.get("owner"), stack.lock.get("reason")
    text = f"the stack is locked{f' by {owner}' if owner else ''}{f': {reason}' if reason else ''}"
    return Waiting(name, Why.LOCKED, (), text, since, stack.lock_ends_at, key)


def still_locked(world: World, row: Resource) -> bool:
    """Return whether it was locked with its stack, which is not locked any more.

    So it is where an update overtakes the deletion of a stack that could not be locked. One that has failed otherwise
    stays as it is, since to record an action would lose that it has.
    """
    unlocked = world.stack.lock is None and not world.stack.held
    return unlocked and has_mark(row, LOCKED) and (not row.failed or row.action in MAINTENANCE)


def wakes(world: World, row: Resource, verdict: Verdict) -> bool:
    """Return whether a judgement asks to end the suspension of what was suspended with its stack, which is resumed.

    The user has asked for that, also where an update has overtaken the resumption: no switch of convergence, and no
    health policy, concerns it.
    """
    return verdict.operation == Action.RESUME.lower() and _marked_in_vain(world, row) and not world.stack.held


def resumed_otherwise(world: World, row: Resource) -> bool:
    """Return whether it was suspended with its stack, and resumed by something else, such as an update."""
    if not _marked_in_vain(world, row) or world.stack.held:
        return False
    seen = world.seen.get(row.key)
    if seen is None or not seen.observation.present:
        return False
    method = method_of(world, row, Action.RESUME)
    return method is not None and method.is_done(seen.observation.properties)


def _marked_in_vain(world: World, row: Resource) -> bool:
    return has_mark(row, SUSPENDED) and not world.stack.suspended
