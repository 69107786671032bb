"""Absence of things, by the newest looks: conditions for retries and for any creation (CV13). Pure."""

from collections.abc import Mapping

from homeostat.model.desired import Definition
from homeostat.model.observed import Condition, Presence, Remedy, Verdict
from homeostat.model.status import Action
from homeostat.model.world import Resource, World


def is_gone(world: World, row: Resource) -> bool:
    """Return whether the newest look did not find the thing of a row."""
    seen = world.seen.get(row.key)
    return row.handle != "" and seen is not None and seen.observation.presence is Presence.ABSENT


def verdict(world: World, row: Resource) -> Verdict:
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
    # A look from before the creation, or within the listing lag after it, says nothing about the new thing.
    return row.acted_at is not None and world.seen[row.key].observation.seen_at < row.acted_at + world.listing_lag_s
