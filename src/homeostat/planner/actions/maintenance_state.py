"""How it is seen that a thing is suspended, resumed, locked or unlocked for its stack, and the marks that tell of it.

Pure."""

from typing import Any

from homeostat.model.observed import READY, Condition, Remedy, Verdict
from homeostat.model.status import MAINTENANCE, Action
from homeostat.model.world import Resource, World
from homeostat.planner.scope import LOCKED, SUSPENDED, thing_of
from homeostat.resources.base import MaintenanceMethod
from homeostat.resources.registry import kind_of, type_of

MARKS = {Action.SUSPEND: SUSPENDED, Action.LOCK: LOCKED}
UNDOES = {Action.RESUME: SUSPENDED, Action.UNLOCK: LOCKED}
"""Actions that take such a mark away: they touch only what carries it."""

ASLEEP = Verdict(Condition.BROKEN, "its stack is suspended", Remedy.OPERATE, Action.RESUME.lower())
"""The verdict on a nested stack that sleeps on (see `sleeps_on`)."""

UNLOCK = "unlock"
UNLOCK_FIRST = "it is unlocked first"


def verdict(world: World, row: Resource, now: float) -> Verdict:
    """Is it as it should be? Of one that is being treated: is that done?"""
    kind = type_of(row.type)
    thing = thing_of(world, row, kind)
    found = kind.judge(thing, now)
    if not (row.busy and row.action in MAINTENANCE):
        return found
    treatment = kind.treatment(thing, row.action)
    if treatment is None or found.condition in (Condition.ABSENT, Condition.UNKNOWN):
        return found
    if treatment.gradual and _under_way_or_broken(found):
        return found
    if treatment.is_done(thing.seen.properties):
        return READY
    return Verdict(Condition.PENDING, f"its {treatment.shown} is {thing.seen.properties.get(treatment.shown)}")


def _under_way_or_broken(found: Verdict) -> bool:
    """Another status word than the one that is waited for may merely be the one it had before."""
    broken = found.condition is Condition.BROKEN and found.remedy is not Remedy.OPERATE
    return broken or found.condition is Condition.PENDING


def treatment_of(world: World, row: Resource, action: str) -> MaintenanceMethod | None:
    """How this action is carried out on it; None: it is left alone. What is somebody else's always is."""
    if row.external_id is not None or row.handle == "" or kind_of(row.type) == "":
        return None
    kind = type_of(row.type)
    return kind.treatment(thing_of(world, row, kind), action)


def with_mark(row: Resource, action: str, now: float) -> dict[str, Any] | None:
    """The marks of a row that this action begins on."""
    return {**(row.marks or {}), MARKS[Action(action)]: {"at": now}}


def without_mark(row: Resource, action: str) -> dict[str, Any] | None:
    """The marks of a row that this action is done on."""
    undone = UNDOES.get(Action(action))
    return {name: mark for name, mark in (row.marks or {}).items() if name != undone} or None


def unlocking(row: Resource) -> bool:
    """Is it unlocked so that it may be deleted?"""
    return row.leaving and row.busy and (row.intent or {}).get("operation") == UNLOCK


def at_rest(world: World, row: Resource, now: float) -> Verdict:
    """Is one that is not in progress as it should be?"""
    found = type_of(row.type).judge(thing_of(world, row), now)
    return ASLEEP if found.condition is Condition.READY and sleeps_on(world, row) else found


def sleeps_on(world: World, row: Resource) -> bool:
    """Is it a nested stack that was suspended with this one, and has not heard that this one was resumed?"""
    seen = world.seen.get(row.key)
    if seen is None or kind_of(row.type) != "stack" or world.stack.suspended or world.stack.held:
        return False
    return bool(seen.observation.properties.get("suspended"))


def unresumed(world: World, row: Resource) -> bool:
    """It was suspended with its stack, and not resumed with it."""
    marked = row.marks is not None and SUSPENDED in row.marks and not world.stack.suspended
    return marked or sleeps_on(world, row)
