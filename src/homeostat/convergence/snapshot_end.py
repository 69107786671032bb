"""The end of taking a snapshot of a stack: the description of its resources that is stored with it.

The data of the resources stays in their clouds (`snapshots.parts`); the description says what they were.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from homeostat.model.status import Action
from homeostat.model.world import Resource, StackFacts
from homeostat.planner.current import current_row
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of
from homeostat.store.database import Database
from homeostat.store.schema import Cell
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import action_end, snapshots, stacks, views

DATA_KEYS = {"server": "snapshot_image_id", "volume": "backup_id"}
"""Kind of a thing -> name, as in Heat, under which the id of its snapshot stands in `resource_data`."""
Snapshots = Mapping[tuple[tuple[str, ...], str], tuple[str, str]]
"""(place of a stack, name of a resource) -> (kind, id) of the cloud's snapshot of it.

The place of a stack is the sequence of resource names on the way down to it from the stack whose snapshot it is.
"""
RESOURCES_MAX = 10_000
"""Resources, nested ones included, that the description names at most; the data of all is kept."""


def is_whole(stack: StackFacts | StackRow) -> bool:
    """Whether a snapshot of just this stack is being taken, so that it is complete when the stack's action is.

    For a nested stack it is a part of the snapshot of a stack above, which ends later.
    """
    return stack.action == Action.SNAPSHOT and stack.snapshot is not None and not stack.snapshot["place"]


def described(db: Database, tx: Connection, stack: StackFacts) -> Cell | None:
    """Return the description of a stack of which a snapshot was taken, encoded; None while a shard is not at rest."""
    row = stacks.get(tx, stack.id)
    if row is None or stack.snapshot is None or not action_end.is_settled(tx, row, stack.revision):
        return None
    parts = snapshots.parts(tx, stack.snapshot["id"])
    made_snapshots = {(tuple(each.place), each.name): (each.kind, each.made) for each in parts if each.made}
    return snapshots.cell(db, {"resources": _Described(tx, made_snapshots, row.size).resources(row, ())})


class _Described:
    """Builder of the description of a stack and of everything nested in it."""

    def __init__(self, tx: Connection, made_snapshots: Snapshots, size: int) -> None:
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
        """Return the entries of the resources of a stack at this place, by name, nested ones inside them."""
        by_name: dict[str, list[Resource]] = defaultdict(list)
        for row in views.resources(self._tx, stack.id)[0].values():
            by_name[row.name].append(row)
        facts = stacks.facts(stack)
        standing = [current_row(alike, facts) for alike in by_name.values()]
        return {row.name: self._entry(row, place) for row in standing if row is not None}

    def _entry(self, row: Resource, place: Sequence[str]) -> dict[str, Any]:
        kind, made = self._snapshots.get((tuple(place), row.name), ("", ""))
        entry = {
            "name": row.name,
            "resource_id": row.handle or None,
            "type": row.shown_type,
            "action": row.action,
            "status": row.status,
            "metadata": row.metadata or {},
            "resource_data": {DATA_KEYS.get(kind, "snapshot_id"): made} if made else {},
        }
        nested = stacks.get(self._tx, row.handle) if row.handle and kind_of(row.type) == NestedStack.kind else None
        if nested is None or nested.size > self._left:
            return entry
        self._left -= nested.size
        return {**entry, "resources": self.resources(nested, [*place, row.name])}
