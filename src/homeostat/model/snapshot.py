"""The snapshot of a stack that is being taken or restored. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class StackSnapshot:
    """A snapshot in progress, from the view of one stack of its tree.

    Attributes:
        place: Names of the resources on the way down to this stack; none for the stack that the user has named.
        run: Identifies the request to restore; "" while the snapshot is taken.
    """

    id: str
    place: tuple[str, ...] = ()
    run: str = ""

    def inside(self, name: str) -> "StackSnapshot":
        """Return the snapshot from the view of the nested stack behind the resource `name`."""
        return replace(self, place=(*self.place, name))


def load(stored: Mapping[str, Any]) -> StackSnapshot:
    return StackSnapshot(stored["id"], tuple(stored["place"]), stored.get("run", ""))


def dump(snapshot: StackSnapshot) -> dict[str, Any]:
    stored = {"id": snapshot.id, "place": list(snapshot.place)}
    return {**stored, "run": snapshot.run} if snapshot.run else stored
