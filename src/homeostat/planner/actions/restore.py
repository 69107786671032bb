"""Restoring a snapshot of a stack: resources get their data back from it. Pure.

The template is unchanged. A mark on the row has the values of the template that were replaced: as long
as the template has these values, what was restored stays (ADR 0033).
"""

from dataclasses import dataclass, field
from typing import Any

from homeostat.model.marks import RestoredMark
from homeostat.model.world import Resource, World
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import kind_of


@dataclass(frozen=True, slots=True)
class Restoration:
    """Desired properties of a resource, with what is restored in its place.

    Attributes:
        mark: Mark of this on the row; None for none.
        renewed: Properties that are requested even where they are the same already.
    """

    values: dict[str, Any]
    mark: RestoredMark | None = None
    renewed: frozenset[str] = field(default_factory=frozenset)


def restoration(
    world: World, name: str, kind: ResourceType, template_values: dict[str, Any], row: Resource | None
) -> Restoration:
    """Return the properties that a resource should have, from those in its template.

    Args:
        template_values: Properties as the template has them.
        row: The row that should have them; None for a new one.
    """
    mark = row.marks.restored if row is not None and row.marks is not None else None
    snapshot = world.restored.get(name)
    place = kind.snapshot_property(kind.complete(template_values)) if snapshot is not None else ""
    if snapshot is not None and place:
        run = (world.stack.snapshot or {}).get("run")
        # Each request to go back has a run of its own, in which the data is restored once, though the value stays the
        # same.
        known = mark is not None and mark.run == run
        values = {**template_values, place: snapshot}
        restored = RestoredMark(run, {place: template_values.get(place)})
        return Restoration(values, restored, frozenset(() if known else (place,)))
    if row is None or mark is None:
        return Restoration(template_values)
    if any(template_values.get(name) != value for name, value in mark.template_values.items()):
        return Restoration(template_values)  # the user has changed the template, which overrides restored data
    stays = {name: row.properties[name] for name in mark.template_values if name in row.properties}
    return Restoration({**template_values, **stays}, mark)


def goes_down(world: World, row: Resource) -> bool:
    """Return whether a nested stack has to go back to the snapshot with this one."""
    return world.stack.restoring and kind_of(row.type) == "stack" and row.revision != world.stack.revision
