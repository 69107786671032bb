"""Restoring the data of resources from a snapshot of their stack. Pure.

The template is unchanged. A mark on the row has the replaced values of the template: as long as the template has these
values, the restored values stay (ADR 0033).
"""

from dataclasses import field
from typing import Any

from homeostat.model.marks import RestoredMark
from homeostat.model.record import record
from homeostat.model.world import Resource, World
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import kind_of


@record
class Restoration:
    """Desired properties of a resource, including restored values.

    Attributes:
        mark: Mark of the restoration on the row, if any.
        renewed: Properties to request even if they are equal already.
    """

    values: dict[str, Any]
    mark: RestoredMark | None = None
    renewed: frozenset[str] = field(default_factory=frozenset)


def restoration(
    world: World, name: str, kind: ResourceType, template_values: dict[str, Any], row: Resource | None
) -> Restoration:
    """Return the desired properties of a resource: its template's, with restored values.

    Args:
        template_values: Properties in the template.
        row: Row of the resource; None for a new row.
    """
    mark = row.marks.restored if row is not None and row.marks is not None else None
    snapshot = world.restored.get(name)
    place = kind.snapshot_property(kind.complete(template_values)) if snapshot is not None else ""
    if snapshot is not None and place:
        run = world.stack.snapshot.run if world.stack.snapshot is not None else ""
        # Each restore request has its own run, which restores the data once, even if the value stays the same.
        is_restored = mark is not None and mark.run == run
        values = {**template_values, place: snapshot}
        restored = RestoredMark(run, {place: template_values.get(place)})
        return Restoration(values, restored, frozenset(() if is_restored else (place,)))
    if row is None or mark is None:
        return Restoration(template_values)
    if any(template_values.get(name) != value for name, value in mark.template_values.items()):
        return Restoration(template_values)  # the user has changed the template, which overrides restored data
    stays = {name: row.properties[name] for name in mark.template_values if name in row.properties}
    return Restoration({**template_values, **stays}, mark)


def is_restored_inside(world: World, row: Resource) -> bool:
    """Return whether a nested stack has to be restored together with this stack."""
    return world.stack.restoring and kind_of(row.type) == "stack" and row.revision != world.stack.revision
