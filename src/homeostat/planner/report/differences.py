"""Differences of an existing resource from the newest template. Pure."""

from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected
from homeostat.model.world import Resource, World
from homeostat.planner.scope import RowScope, thing_of
from homeostat.planner.states.restore import restoration
from homeostat.resources.nested import public_properties
from homeostat.resources.registry import type_of
from homeostat.templates import UNKNOWN, evaluate


def compared(world: World, scope: RowScope, row: Resource, definition: Definition) -> dict[str, tuple[Any, Any]]:
    """Return each property as (value in the template now, value last applied), with defaults.

    The template's value is `UNKNOWN` if it depends on an absent or failed resource.
    """
    kind = type_of(row.type)
    applied = public_properties(thing_of(world, row, kind).properties)
    try:
        tree = definition.properties
        values = kind.check(tree if definition.static else evaluate(tree, scope), ("resources", definition.name))
    except Rejected:
        return {name: (UNKNOWN, value) for name, value in applied.items()}
    wanted = public_properties(kind.complete(restoration(world, row.name, kind, values, row).values))
    return {name: (wanted.get(name), applied.get(name)) for name in sorted(wanted.keys() | applied.keys())}
