"""Scope of template functions: references and attributes of the resources of a shard."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.model.errors import Absent, InvalidTemplateAttribute, invalid
from homeostat.model.marks import Marks
from homeostat.model.observed import Observation, Presence
from homeostat.model.stack_actions import STACK_ACTIONS
from homeostat.model.status import Action
from homeostat.model.world import Resource, World
from homeostat.planner.names import physical_name
from homeostat.resources.base import ResourceType, Thing
from homeostat.resources.registry import type_of

UNREADABLE = "untold"
"""Property of an observation of a nested stack: why its attributes cannot be read."""
_NOT_THERE = frozenset({Action.CREATE, Action.ADOPT, Action.DELETE})
"""Actions during which a thing may not exist."""
NEVER_SEEN = Observation(Presence.UNKNOWN, reason="not looked at yet")


def thing_of(world: World, row: Resource, kind: ResourceType | None = None) -> Thing:
    """Return a row as its resource type sees it."""
    kind = kind or type_of(row.type)
    seen = world.seen.get(row.key)
    return Thing(
        row.key,
        row.name,
        physical_name(world.stack.name, row.name, row.key, kind.name_limit),
        kind.complete(row.properties),
        seen.observation if seen is not None else NEVER_SEEN,
        row.handle,
        row.acted_at or 0.0,
        row.action,
        row.metadata or {},
        _treated(world, row.marks) if row.marks is not None else (),
        row.marks.kept if row.marks is not None else "",
        row.marks.accepted if row.marks is not None else {},
    )


def _treated(world: World, marks: Marks) -> tuple[str, ...]:
    """Return the actions whose marks a row carries.

    SUSPEND is omitted for a thing that stayed suspended although its stack was resumed: the suspension is not desired.
    """
    marked = [(action, rules) for action, rules in STACK_ACTIONS.items() if rules.mark in marks.maintained]
    return tuple(action for action, rules in marked if not rules.suspends or world.stack.suspended)


class RowScope:
    """Resolves `get_resource` and `get_attr` from rows and their newest observations.

    Raises:
        Rejected: The attributes of a resource cannot be read; the error names it.
    """

    unknown: Any = None
    """Value of an unknown reference at run time."""

    def __init__(self, world: World, current: Mapping[str, Resource]) -> None:
        self._world = world
        self._current = current

    def reference(self, resource: str) -> Any:
        row = self._known(resource)
        return resource if row is None else type_of(row.type).reference(thing_of(self._world, row))

    def attribute(self, resource: str, name: str, path: Sequence[str | int]) -> Any:
        row = self._known(resource)
        if row is None:
            return None
        kind = type_of(row.type)
        try:
            return kind.resolve(thing_of(self._world, row, kind), name, path)
        except (Absent, InvalidTemplateAttribute):
            # Null before the creation and during the deletion: only outputs are read then.
            if row.busy and row.action in _NOT_THERE:
                return None
            raise

    def attributes(self, resource: str) -> Any:
        row = self._known(resource)
        if row is None:
            return None
        kind = type_of(row.type)
        return kind.all_attributes(thing_of(self._world, row, kind))

    def _known(self, resource: str) -> Resource | None:
        row = self._current.get(resource)
        # A row in INIT has no thing yet, and must not look as if there were one.
        if row is None or row.action == Action.INIT:
            return None
        seen = self._world.seen.get(row.key)
        if seen is not None and UNREADABLE in seen.observation.properties:
            raise invalid(seen.observation.properties[UNREADABLE], "resources", resource)
        return row
