"""Where a node was made that has moved since: what its definition says of it must not change with the move. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from homeostat.clustering.decisions.names import replacements
from homeostat.resources import groups

ORIGIN = "origin"
"""Key, in the data of a node, of where it was made."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the name, the id and the index of a node followed from when it was made.

    Attributes:
        seed: Id of the stack that its group was in.
        form: Format of the names there.
        index: Its index there.
    """

    seed: str
    form: str
    index: int

    def filled(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return properties with the name, the id and the index that the node had: its server was made with them."""
        found: Any = dict(properties)
        for word, value in replacements(self.form, self.seed, self.index).items():
            found = groups.replaced(found, value, word)
        return dict(found)


def origin_of(data: Mapping[str, Any]) -> Origin | None:
    """Return where a node was made, from its data; None if it has not moved since."""
    return Origin(**data[ORIGIN]) if ORIGIN in data else None


def with_origin(data: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """Return the data of a node that moves; one that has moved before keeps its first origin."""
    return {ORIGIN: asdict(origin), **data}
