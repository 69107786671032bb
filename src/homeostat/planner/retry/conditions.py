"""Conditions for retrying a failure without a request, and for any creation (CV13). Pure."""

from collections.abc import Mapping

from homeostat.model.desired import Definition
from homeostat.model.observed import Condition, Presence, Remedy, Verdict
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, StackFacts, World
from homeostat.planner.actions import check
from homeostat.planner.retry import causes
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import type_of


def may_succeed(world: World, row: Resource, now: float, *, changed: bool) -> bool:
    """Return whether a failed resource of a stack at rest is worth another try.

    A vanished thing is created again. A broken thing is left to users, since a retry would replace it.

    Args:
        changed: Whether a requirement has changed since the failure.
    """
    if not is_at_rest(world.stack) or not check.heals(world, row):
        return False
    kind = type_of(row.type)
    # Failed checks of all other things were judged before, see `lifecycle.failure`.
    checked = row.action == Action.CHECK and (kind.heals_itself or row.handle == "")
    if row.action not in (Action.CREATE, Action.UPDATE) and not checked:
        return False
    if is_gone(world, row) or causes.cause_of(row) is not None:
        return True
    if not changed:
        return False
    if row.handle == "" or row.action == Action.CREATE or kind.heals_itself:
        return True
    return kind.judge(thing_of(world, row), now).condition in (Condition.READY, Condition.DRIFTED)


def is_at_rest(stack: StackFacts) -> bool:
    """Return whether the stack has reached its newest revision, and no action is in progress."""
    return stack.status != Status.IN_PROGRESS and not stack.failed_early


def due_at(row: Resource) -> float:
    """Return the time of the next try: the first try is due at once, the next ones at growing intervals."""
    if causes.cause_of(row) is not None:
        return causes.due_at(row)
    return row.updated_at + RETRY.delay_after_s(row.attempts)


def is_gone(world: World, row: Resource) -> bool:
    """Return whether the newest look did not find the thing of a row."""
    seen = world.seen.get(row.key)
    return row.handle != "" and seen is not None and seen.observation.presence is Presence.ABSENT


def absence(world: World, row: Resource) -> Verdict:
    """Return the verdict on an absent thing."""
    return Verdict(Condition.ABSENT, world.seen[row.key].observation.reason or "it is gone", Remedy.RECREATE)


def absent_requirements(world: World, definition: Definition, current: Mapping[str, Resource]) -> tuple[Resource, ...]:
    """Return the rows of required resources whose things are known to be absent, sorted by name."""
    required = (current[name] for name in sorted(definition.requires) if name in current)
    return tuple(row for row in required if is_gone(world, row) and not _late(world, row))


def unmade_requirements(definition: Definition, current: Mapping[str, Resource]) -> tuple[Resource, ...]:
    """Return the rows of required resources whose creation is pending or has failed, sorted by name."""
    required = (current[name] for name in sorted(definition.requires) if name in current)
    return tuple(row for row in required if _is_unmade(row))


def _is_unmade(row: Resource) -> bool:
    return row.action == Action.INIT or (row.action == Action.CREATE and (row.busy or (row.failed and not row.handle)))


def _late(world: World, row: Resource) -> bool:
    """Return whether the cloud may not list a new thing yet."""
    return row.acted_at is not None and world.seen[row.key].observation.seen_at < row.acted_at + world.listing_lag_s
