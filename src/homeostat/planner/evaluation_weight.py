"""Limit on the weight of all values that functions produce for one shard. Pure.

A limit for each resource is not enough: a thousand values of the maximum weight would fill the memory of every worker
(ADR 0038).
"""

from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.world import Resource, World
from homeostat.templates.tree import VALUE_MAX
from homeostat.templates.weights import TooHeavy, weight

VALUES_MAX = 16 * 1024 * 1024
"""Maximum weight of all properties and metadata of a shard that its template does not contain literally."""


class ShardWeight:
    """Weighs the desired values of the resources of one world; `current` maps a name to its current row."""

    def __init__(self, world: World, current: Mapping[str, Resource]) -> None:
        self._world = world
        self._current = current
        self._weights: dict[str, int] | None = None
        self._total = 0

    def put(self, name: str, properties: Any, metadata: Any) -> None:
        """Set the desired values of a resource.

        Raises:
            Rejected: The values are too heavy, alone or in the sum of the shard.
        """
        if self._weights is None:
            # Weighed on first use only: most passes resolve nothing.
            self._weights = self._of_rows()
            self._total = sum(self._weights.values())
        place = ("resources", name)
        try:
            weight_of_values = weight([properties, metadata], VALUE_MAX)
        except TooHeavy as error:
            raise Rejected("StackValidationFailed", f"its properties and metadata: {error}", path=place) from error
        except ValueError as error:
            raise Rejected("StackValidationFailed", str(error), path=place) from error
        total = self._total - self._weights.get(name, 0) + weight_of_values
        if total > VALUES_MAX:
            message = f"what functions make for the resources of this stack weighs more than {VALUES_MAX} in all"
            raise Rejected("StackValidationFailed", f"{message}: make several stacks of it", path=place)
        self._weights[name], self._total = weight_of_values, total

    def _of_rows(self) -> dict[str, int]:
        weights = {}
        for name, row in self._current.items():
            definition = self._world.definitions.get(name)
            if definition is not None and not definition.static and row.properties:
                weights[name] = _weight_of(row)
        return weights


def _weight_of(row: Resource) -> int:
    try:
        return weight([row.properties, row.metadata], VALUES_MAX)
    except ValueError:
        # The row is older than the limit. Count it as the whole allowance: no value is accepted until it shrinks.
        return VALUES_MAX
