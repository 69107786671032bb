"""The end of taking a snapshot of a stack: the stored description of its resources.

The data of the resources stays in their clouds (`snapshots.parts`); the description records their definition and state.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.model.status import Action
from homeostat.model.world import Resource, StackFacts
from homeostat.planner.current import current_row
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of
from homeostat.store.database import Transaction
from homeostat.store.schema import Cell
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import action_end, snapshots, stacks, views

DATA_KEYS = {"server": "snapshot_image_id", "volume": "backup_id"}
"""Kind of a thing -> Heat's key in `resource_data` for the id of its snapshot."""
Snapshots = Mapping[tuple[tuple[str, ...], str], tuple[str, str]]
"""(place of a stack, name of a resource) -> (kind, id) of the cloud's snapshot of the resource.

The place of a nested stack is the sequence of resource names on the path from the snapshot's stack down to it.
"""
RESOURCES_MAX = 10_000
"""Resources in the description at most, including nested ones; the data of all resources is kept."""


def is_whole(stack: StackFacts | StackRow) -> bool:
    """Whether a snapshot of just this stack is being taken, which is complete when the stack's action is.

    A nested stack's snapshot is part of the snapshot of a stack above, which ends later.
    """
    return stack.action == Action.SNAPSHOT and stack.snapshot is not None and not stack.snapshot.place


def described(tx: Transaction, stack: StackFacts) -> Cell | None:
    """Return the encoded description of a stack for its snapshot; None while a shard is not at rest."""
    row = stacks.get(tx, stack.id)
    if row is None or stack.snapshot is None or not action_end.is_settled(tx, row, stack.revision):
        return None
    parts = snapshots.parts(tx, stack.snapshot.id)
    made_snapshots = {(tuple(part.place), part.name): (part.kind, part.made) for part in parts if part.made}
    return snapshots.cell(tx.database, {"resources": _Described(tx, made_snapshots, row.size).resources(row, ())})


class _Described:
    """Builder of the description of a stack including its nested stacks."""

    def __init__(self, tx: Transaction, made_snapshots: Snapshots, size: int) -> None:
        """Begin a description.

        Args:
            tx: A consistent read.
            made_snapshots: The clouds' snapshots of the resources.
            size: Number of resources of the outermost stack, without nested ones.
        """
        self._tx = tx
        self._snapshots = made_snapshots
        self._left = RESOURCES_MAX - size

    def resources(self, stack: StackRow, place: Sequence[str]) -> dict[str, Any]:
        """Return the entries of the resources of a stack at this place, by name, including nested resources."""
        by_name: dict[str, list[Resource]] = defaultdict(list)
        for row in views.resources(self._tx, stack.id)[0].values():
            by_name[row.name].append(row)
        facts = stacks.facts(stack)
        standing = [current_row(alike, facts) for alike in by_name.values()]
        return {row.name: self._entry(row, place) for row in standing if row is not None}

    def _entry(self, row: Resource, place: Sequence[str]) -> dict[str, Any]:
        kind, snapshot_id = self._snapshots.get((tuple(place), row.name), ("", ""))
        entry = {
            "name": row.name,
            "resource_id": row.handle or None,
            "type": row.shown_type,
            "action": row.action,
            "status": row.status,
            "metadata": row.metadata or {},
            "resource_data": {DATA_KEYS.get(kind, "snapshot_id"): snapshot_id} if snapshot_id else {},
        }
        nested = stacks.get(self._tx, row.handle) if row.handle and kind_of(row.type) == NestedStack.kind else None
        if nested is None or nested.size > self._left:
            return entry
        self._left -= nested.size
        return {**entry, "resources": self.resources(nested, [*place, row.name])}
