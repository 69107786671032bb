"""Arrangement of resources in a tree: below the last dependency, or below the owner of their nested stack."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from homeostat.cli.views import Key, ResourceView

INDENT_MAX = 12
"""Deeper branches are drawn at this depth, since a chain of a thousand resources has to fit on a screen."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the tree; `prefix` draws its branches."""

    prefix: str
    resource: ResourceView


def requirements(resources: Sequence[ResourceView]) -> Mapping[Key, tuple[Key, ...]]:
    """Return each resource's dependencies, the inverse of the API's `required_by`."""
    needs: dict[Key, list[Key]] = defaultdict(list)
    for resource in resources:
        for name in resource.required_by:
            needs[resource.stack, name].append(resource.key)
    return {key: tuple(required) for key, required in needs.items()}


def arrange(resources: Sequence[ResourceView]) -> list[Line]:
    """Arrange all resources as a tree. A resource is drawn below its deepest dependency."""
    needs = requirements(resources)
    by_key = {resource.key: resource for resource in resources}
    owners = {resource.nested: resource.key for resource in resources if resource.nested}
    depths = _depths(by_key, needs)
    below: dict[Key | None, list[Key]] = defaultdict(list)
    for resource in resources:
        # In a cycle (an update reverses dependencies) no resource is deeper than another.
        known = [key for key in needs.get(resource.key, ()) if depths.get(key, inf) < depths[resource.key]]
        above = max(known, key=depths.__getitem__, default=owners.get(resource.stack))
        below[above].append(resource.key)
    return [Line(prefix, by_key[key]) for prefix, key in branches(below)]


def _depths(resources: Mapping[Key, ResourceView], needs: Mapping[Key, tuple[Key, ...]]) -> dict[Key, int]:
    """Return the length of each resource's longest chain of dependencies, without recursion."""
    depths = dict.fromkeys(resources, 0)
    left = {key: sum(need in resources for need in needs.get(key, ())) for key in resources}
    ready = [key for key, count in left.items() if not count]
    while ready:
        key = ready.pop()
        for name in resources[key].required_by:
            dependant = (key[0], name)
            if dependant not in resources:
                continue
            depths[dependant] = max(depths[dependant], depths[key] + 1)
            left[dependant] -= 1
            if not left[dependant]:
                ready.append(dependant)
    return depths


def branches(below: Mapping[Any, Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    """Yield each key with its branches, depth first; roots are below None."""
    pending = [(key, "", "") for key in reversed(below.get(None, ()))]
    while pending:
        key, branch, stem = pending.pop()
        yield branch, key
        inner = stem if len(stem) < 2 * INDENT_MAX else stem[: 2 * INDENT_MAX]
        items = below.get(key, ())
        for number, item in reversed(list(enumerate(items))):
            last = number == len(items) - 1
            pending.append((item, inner + ("└ " if last else "├ "), inner + ("  " if last else "│ ")))
