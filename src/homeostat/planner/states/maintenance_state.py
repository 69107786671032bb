"""State of maintenance: signs that a thing is suspended, resumed, locked or unlocked, and marks of rows. Pure."""

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

STILL_SUSPENDED = Verdict(Condition.BROKEN, "its stack is suspended", Remedy.OPERATE, Action.RESUME.lower())
"""Verdict on a nested stack that is still suspended (see `is_still_suspended`)."""

UNLOCK = "unlock"
"""Operation in the intent of a row that is being unlocked for its deletion."""
UNLOCK_FIRST = "it is unlocked first"


def verdict(world: World, row: Resource, now: float) -> Verdict:
    """Judge a thing; a thing under maintenance is ready when the maintenance is done."""
    kind = type_of(row.type)
    thing = thing_of(world, row, kind)
    verdict = kind.judge(thing, now)
    if not (row.busy and row.action in MAINTENANCE):
        return verdict
    method = kind.maintenance_method(thing, row.action)
    if method is None or verdict.condition in (Condition.ABSENT, Condition.UNKNOWN):
        return verdict
    # Before reading the field, which may show the new value during the act or after its failure.
    if method.gradual and _under_way_or_broken(verdict):
        return verdict
    if method.is_done(thing.seen.properties):
        return READY
    return Verdict(
        Condition.PENDING, f"its {method.observed_field} is {thing.seen.properties.get(method.observed_field)}"
    )


def _under_way_or_broken(verdict: Verdict) -> bool:
    """Return whether the thing is changing, or broken.

    A status that calls for an operation does not count: it may be the status from before the act.
    """
    broken = verdict.condition is Condition.BROKEN and verdict.remedy is not Remedy.OPERATE
    return broken or verdict.condition is Condition.PENDING


def method_of(world: World, row: Resource, action: str) -> MaintenanceMethod | None:
    """Return the method for an action on a resource's thing; None to skip the thing, such as an external one."""
    if row.external_id is not None or row.handle == "" or kind_of(row.type) == "":
        return None
    kind = type_of(row.type)
    return kind.maintenance_method(thing_of(world, row, kind), action)


def has_mark(row: Resource, mark: str) -> bool:
    """Return whether a row carries this mark of an action."""
    return row.marks is not None and mark in row.marks.maintained


def with_mark(row: Resource, action: str, now: float) -> Marks:
    """Return the marks of a row at the beginning of an action."""
    marks = row.marks or NO_MARKS
    return replace(marks, maintained={**marks.maintained, STACK_ACTIONS[action].mark: now})


def without_mark(row: Resource, action: str) -> Marks | None:
    """Return the marks of a row at the end of an action: without the mark that the action clears, if any."""
    marks, cleared = row.marks or NO_MARKS, STACK_ACTIONS[action].clears
    return replace(marks, maintained={name: at for name, at in marks.maintained.items() if name != cleared}) or None


def unlocking(row: Resource) -> bool:
    """Return whether a row is being unlocked for its deletion."""
    return row.deleting and row.busy and operation_of(row.intent) == UNLOCK


def at_rest(world: World, row: Resource, now: float) -> Verdict:
    """Judge a thing without an act in progress."""
    verdict = type_of(row.type).judge(thing_of(world, row), now)
    return STILL_SUSPENDED if verdict.condition is Condition.READY and is_still_suspended(world, row) else verdict


def is_suspended_stack(world: World, row: Resource) -> bool:
    """Return whether a resource is a suspended nested stack."""
    seen = world.seen.get(row.key)
    suspended = seen is not None and seen.observation.properties.get("suspended")
    return bool(suspended) and kind_of(row.type) == "stack"


def is_still_suspended(world: World, row: Resource) -> bool:
    """Return whether a resource is a nested stack that is still suspended although this stack was resumed."""
    return is_suspended_stack(world, row) and not world.stack.suspended and not world.stack.frozen


def unresumed(world: World, row: Resource) -> bool:
    """Return whether a resource was suspended with its stack and not resumed with it."""
    return _is_mark_left(world, row) or is_still_suspended(world, row)


def wait_while_frozen(stack: StackFacts, name: str, key: str = "", since: float | None = None) -> Waiting:
    """Return the wait of a resource in a frozen stack."""
    if stack.lock is None:
        return Waiting(name, Why.SUSPENDED, (), "the stack is suspended", since, key=key)
    owner, reason = stack.lock.get("owner"), stack.lock.get("reason")
    text = f"the stack is locked{f' by {owner}' if owner else ''}{f': {reason}' if reason else ''}"
    return Waiting(name, Why.LOCKED, (), text, since, stack.lock_ends_at, key)


def still_locked(world: World, row: Resource) -> bool:
    """Return whether a resource is still locked although its stack is unlocked.

    An update that overtakes the deletion of a partly locked stack leads to this state. A resource with another failure
    is left out, since recording the unlocking would lose the failure.
    """
    unlocked = world.stack.lock is None and not world.stack.frozen
    return unlocked and has_mark(row, LOCKED) and (not row.failed or row.action in MAINTENANCE)


def is_resumption(world: World, row: Resource, verdict: Verdict) -> bool:
    """Return whether a verdict asks to resume a thing that stayed suspended in a resumed stack.

    The user has requested the resumption, even if an update has overtaken it: switches for convergence and health
    policies do not matter.
    """
    return verdict.operation == Action.RESUME.lower() and _is_mark_left(world, row) and not world.stack.frozen


def resumed_otherwise(world: World, row: Resource) -> bool:
    """Return whether a resource was suspended with its stack, and resumed by other means, such as an update."""
    if not _is_mark_left(world, row) or world.stack.frozen:
        return False
    seen = world.seen.get(row.key)
    if seen is None or not seen.observation.present:
        return False
    method = method_of(world, row, Action.RESUME)
    return method is not None and method.is_done(seen.observation.properties)


def _is_mark_left(world: World, row: Resource) -> bool:
    return has_mark(row, SUSPENDED) and not world.stack.suspended
