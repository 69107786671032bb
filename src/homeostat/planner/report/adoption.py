"""Preview of an adoption: decisions about things just adopted (ADR 0025). Pure."""

import sys
from collections.abc import Mapping
from typing import Any

from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.desired import Definition
from homeostat.model.intent import LeftAlone
from homeostat.model.observed import Condition
from homeostat.model.status import Action
from homeostat.model.world import Resource, World
from homeostat.planner.lifecycle import update
from homeostat.planner.report.preview import Fate, Inside, PreviewScope, ShardPreviewer
from homeostat.planner.scope import RowScope, thing_of
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of, type_of
from homeostat.templates import UNKNOWN, evaluate
from homeostat.templates.tree import holds


class LookedScope(RowScope):
    """Resolves references and attributes as far as they can be known before an adoption.

    Nested stacks and the service's own records are created again, with new references.
    """

    unknown: Any = UNKNOWN

    def reference(self, resource: str) -> Any:
        return UNKNOWN if self._is_new(resource, STACK) else super().reference(resource)

    def attribute(self, resource: str, name: str, path: Any) -> Any:
        return UNKNOWN if self._is_new(resource) else super().attribute(resource, name, path)

    def attributes(self, resource: str) -> Any:
        return UNKNOWN if self._is_new(resource) else super().attributes(resource)

    def _is_new(self, resource: str, *kinds: str) -> bool:
        row = self._current.get(resource)
        if row is None or row.action == Action.INIT or kind_of(row.type) in (*BUILTIN_KINDS, *kinds):
            return True
        return row.key not in self._world.seen


class _AdoptedScope(PreviewScope):
    """Resolves references and attributes as far as they are known after an adoption, using the notes."""

    def reference(self, resource: str) -> Any:
        return UNKNOWN if self._made_again(resource, STACK) else super().reference(resource)

    def attribute(self, resource: str, name: str, path: Any) -> Any:
        return UNKNOWN if self._made_again(resource) else super().attribute(resource, name, path)

    def _made_again(self, resource: str, *kinds: str) -> bool:
        row = self._current.get(resource)
        return row is not None and kind_of(row.type) in (*BUILTIN_KINDS, *kinds)


class AdoptionPreviewer(ShardPreviewer):
    """Previews the acts on a stack after its adoption.

    Args:
        world: The stack with its rows right after the adoption.
        values: Resolved properties by resource name; the rows have only the known ones.
        inside: Previews the nested stack behind a resource.
    """

    def __init__(self, world: World, values: Mapping[str, dict[str, Any]], inside: Inside) -> None:
        super().__init__(world, inside)
        self._values = values
        for row in world.rows.values():
            # All values were read just now; dependants of things yet to be created are compared in `_preview`.
            row.resolved = sys.maxsize

    def scope(self, world: World, current: dict[str, Resource]) -> RowScope:
        return _AdoptedScope(world, current, self._notes)

    def _preview(self, definition: Definition, now: float) -> None:
        super()._preview(definition, now)
        row, note = self._current.get(definition.name), self._notes[definition.name]
        if row is None or note.fate is not Fate.UNCHANGED:
            return
        if isinstance(row.intent, LeftAlone):
            note.why = f"it is left alone: {row.intent.reason}"
        if any(self._is_made(name) for name in definition.requires):
            note.before = note.after = row.properties = self._read_so_far(definition)
            update.compare(self._context, definition, row, now)
        elif row.key in self._world.seen:
            verdict = type_of(row.type).judge(thing_of(self._world, row), now)
            note.why = verdict.reason if verdict.condition is Condition.PENDING else note.why

    def _read_so_far(self, definition: Definition) -> dict[str, Any]:
        """Return the known properties, without values that depend on things yet to be created.

        Values from records created again by the adoption itself stay unknown, and count as equal.
        """
        read = evaluate(definition.properties, PreviewScope(self._world, self._current, self._notes))
        values = self._values[definition.name]
        return {
            name: value
            for name, value in values.items()
            if not holds(value, UNKNOWN) or not holds(read.get(name), UNKNOWN)
        }

    def _is_made(self, name: str) -> bool:
        return name in self._notes and self._notes[name].fate in (Fate.ADDED, Fate.REPLACED)
