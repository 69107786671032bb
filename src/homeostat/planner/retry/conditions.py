"""When a failure is tried again without anybody asking, and what must be there before anything is made (CV13). Pure."""

from collections.abc import Mapping

from homeostat.model.desired import Definition
from homeostat.model.observed import Condition, Presence, Remedy, Verdict
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, StackFacts, World
from homeostat.planner.actions import check
from homeostat.planner.retry.backoff import delay_s
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import type_of


def may_succeed(world: World, row: Resource, now: float, *, changed: bool) -> bool:
    """Is a failed resource of a stack at rest worth another try?

    changed — something that it requires has changed since it failed. One whose thing has gone meanwhile is made anew;
    one whose thing is broken is left to people, since to try again would replace it.
    """
    if not is_at_rest(world.stack) or not check.heals(world, row):
        return False
    kind = type_of(row.type)
    checked = row.action == Action.CHECK and (kind.mends_itself or row.handle == "")
    if row.action not in (Action.CREATE, Action.UPDATE) and not checked:
        return False
    if is_gone(world, row) or not changed:
        return is_gone(world, row)
    if row.handle == "" or row.action == Action.CREATE or kind.mends_itself:
        return True
    return kind.judge(thing_of(world, row), now).condition in (Condition.READY, Condition.DRIFTED)


def is_at_rest(stack: StackFacts) -> bool:
    """Was its newest revision brought about, and is nothing asked of it now?"""
    return stack.status != Status.IN_PROGRESS and not stack.halted


def due_at(row: Resource) -> float:
    """Time of the next try: the first is due at once, those after it at growing intervals."""
    return row.updated_at + (delay_s(row.attempts - 1) if row.attempts > 1 else 0.0)


def is_gone(world: World, row: Resource) -> bool:
    """Has it had a thing that was not there when it was looked at last?"""
    seen = world.seen.get(row.key)
    return row.handle != "" and seen is not None and seen.observation.presence is Presence.ABSENT


def absence(world: World, row: Resource) -> Verdict:
    """The verdict on a thing that is gone."""
    return Verdict(Condition.ABSENT, world.seen[row.key].observation.reason or "it is gone", Remedy.RECREATE)


def absent_requirements(world: World, definition: Definition, current: Mapping[str, Resource]) -> tuple[Resource, ...]:
    """Rows of what a resource requires whose things are known to be gone, in the order of their names."""
    required = (current[name] for name in sorted(definition.requires) if name in current)
    return tuple(row for row in required if is_gone(world, row) and not _late(world, row))


def _late(world: World, row: Resource) -> bool:
    """A cloud that lists late does not show yet what was just made."""
    return row.acted_at is not None and world.seen[row.key].observation.seen_at < row.acted_at + world.listing_lag_s
