"""The end of taking a snapshot of a stack: what is remembered of its resources, besides what their clouds keep."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.model.world import Resource
from homeostat.planner.current import current_row
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of
from homeostat.store import snapshots, stacks, views

DATA_KEYS = {"server": "snapshot_image_id", "volume": "backup_id"}
"""Kind of a thing -> what the id of its snapshot is called in `resource_data` (reference/heat/engine-semantics.md)."""
Kept = Mapping[tuple[tuple[str, ...], str], tuple[str, str]]
"""(place, name of a resource) -> (kind, id) of the cloud's snapshot of it."""


def finish(tx: Connection, stack: Row[Any]) -> None:
    """Complete the snapshot that was taken of a stack. One that was taken of a stack around it is not complete yet."""
    if stack.snapshot is None or stack.snapshot["place"]:
        return
    id = stack.snapshot["id"]
    kept = {(tuple(each.place), each.name): (each.kind, each.made) for each in snapshots.parts(tx, id) if each.made}
    data = {"resources": _resources(tx, stack, kept, ())}
    snapshots.complete(tx, id, data, f"Stack {stack.action} completed successfully")


def _resources(tx: Connection, stack: Row[Any], kept: Kept, place: Sequence[str]) -> dict[str, Any]:
    """Name -> how it is, with what is nested in it."""
    by_name: dict[str, list[Resource]] = defaultdict(list)
    for row in views.resources(tx, stack.id)[0].values():
        by_name[row.name].append(row)
    facts = stacks.facts(stack)
    standing = [current_row(alike, facts) for alike in by_name.values()]
    return {row.name: _entry(tx, row, kept, place) for row in standing if row is not None}


def _entry(tx: Connection, row: Resource, kept: Kept, place: Sequence[str]) -> dict[str, Any]:
    kind, made = kept.get((tuple(place), row.name), ("", ""))
    entry = {
        "name": row.name,
        "resource_id": row.handle or None,
        "type": row.shown_type,
        "action": row.action,
        "status": row.status,
        "metadata": row.metadata or {},
        "resource_data": {DATA_KEYS.get(kind, "snapshot_id"): made} if made else {},
    }
    child = stacks.get(tx, row.handle) if row.handle and kind_of(row.type) == NestedStack.kind else None
    return entry if child is None else {**entry, "resources": _resources(tx, child, kept, [*place, row.name])}
