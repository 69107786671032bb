"""Going back to a snapshot of a stack: resources have their data back from what was kept of it. Pure.

The template goes on saying what it said; a mark on the row remembers what that was, and what stands in its place: as
long as the template says the same, what was restored stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.world import Resource, World
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import kind_of

RESTORED = "restored"
"""Mark of a row: `{"run", "said": {property: as the template says it}}`; run — see `store.schema.stack`."""


@dataclass(frozen=True, slots=True)
class Restoration:
    """values — properties with what is restored in its place; mark — to be put on the row, None for none; renewed —
    properties that are asked for even where they are the same already."""

    values: dict[str, Any]
    mark: Mapping[str, Any] | None = None
    renewed: frozenset[str] = field(default_factory=frozenset)


def restoration(world: World, name: str, kind: ResourceType, said: dict[str, Any], row: Resource | None) -> Restoration:
    """said — properties as the template says them; row — that is to have them, None for a new one."""
    mark = (row.marks or {}).get(RESTORED) if row is not None else None
    kept = world.restored.get(name)
    place = kind.kept_as(kind.complete(said)) if kept is not None else ""
    if kept is not None and place:
        run = (world.stack.snapshot or {}).get("run")
        known = mark is not None and mark["run"] == run
        values = {**said, place: kept}
        return Restoration(values, {"run": run, "said": {place: said.get(place)}}, frozenset(() if known else (place,)))
    if row is None or mark is None or any(said.get(each) != value for each, value in mark["said"].items()):
        return Restoration(said)
    stays = {each: row.properties[each] for each in mark["said"] if each in row.properties}
    return Restoration({**said, **stays}, mark)


def marked(row: Resource, mark: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Marks of the row with this one, or without it."""
    others = {name: each for name, each in (row.marks or {}).items() if name != RESTORED}
    return {**others, RESTORED: dict(mark)} if mark is not None else others or None


def goes_down(world: World, row: Resource) -> bool:
    """Is a nested stack to go back with this one?"""
    return world.stack.restoring and kind_of(row.type) == "stack" and row.revision != world.stack.revision
