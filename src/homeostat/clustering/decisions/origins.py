"""Origins of moved nodes: a move must not change the definition of a node, which has its first name and id. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from homeostat.clustering.decisions.names import replacements
from homeostat.resources import groups

ORIGIN = "origin"
"""Key of the origin in the data of a node."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of the name, id and index of a node at its creation.

    Attributes:
        seed: Id of the root stack of its group.
        form: Format of node names there.
        index: Index of the node there.
    """

    seed: str
    form: str
    index: int

    def filled(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return properties with the original name, id and index of the node: its server was created with them."""
        result: Any = dict(properties)
        for word, value in replacements(self.form, self.seed, self.index).items():
            result = groups.replaced(result, value, word)
        return dict(result)


def origin_of(data: Mapping[str, Any]) -> Origin | None:
    """Return the origin of a node from its data; None if the node has never moved."""
    return Origin(**data[ORIGIN]) if ORIGIN in data else None


def with_origin(data: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """Return the new data of a node that moves; a node that moved before keeps its first origin."""
    return {ORIGIN: asdict(origin), **data}
