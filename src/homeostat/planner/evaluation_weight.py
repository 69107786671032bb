"""What functions make for all resources of a shard weighs something together, too: a thousand values, each as heavy as
it may be, would fill the memory of whoever loads them. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.world import Resource, World
from homeostat.templates.tree import VALUE_MAX
from homeostat.templates.weights import TooHeavy, weight

VALUES_MAX = 16 * 1024 * 1024
"""Weight of the properties and metadata of all resources of one shard that are not written out in its template."""


class ShardWeight:
    """Weighs what the resources of one world are to be. current — name -> the row that stands for it."""

    def __init__(self, world: World, current: Mapping[str, Resource]) -> None:
        self._world = world
        self._current = current
        self._weights: dict[str, int] | None = None
        self._total = 0

    def put(self, name: str, properties: Any, metadata: Any) -> None:
        """Make this what a resource is to be. Fails: Rejected when it is too much, alone or with all others."""
        if self._weights is None:
            self._weights = self._of_rows()
            self._total = sum(self._weights.values())
        place = ("resources", name)
        try:
            mine = weight([properties, metadata], VALUE_MAX)
        except TooHeavy as error:
            raise Rejected("StackValidationFailed", f"its properties and metadata: {error}", path=place) from error
        except ValueError as error:
            raise Rejected("StackValidationFailed", str(error), path=place) from error
        total = self._total - self._weights.get(name, 0) + mine
        if total > VALUES_MAX:
            message = f"what functions make for the resources of this stack weighs more than {VALUES_MAX} in all"
            raise Rejected("StackValidationFailed", f"{message}: make several stacks of it", path=place)
        self._weights[name], self._total = mine, total

    def _of_rows(self) -> dict[str, int]:
        found = {}
        for name, row in self._current.items():
            definition = self._world.definitions.get(name)
            if definition is not None and not definition.static and row.properties:
                found[name] = _weight_of(row)
        return found


def _weight_of(row: Resource) -> int:
    try:
        return weight([row.properties, row.metadata], VALUES_MAX)
    except ValueError:  # it is from before there was a limit
        return VALUES_MAX
