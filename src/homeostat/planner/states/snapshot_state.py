"""Progress of the snapshot of a thing, in its row and in observations. Pure.

With the deletion policy Snapshot the intent of a row in deletion changes from an `OperationIntent` to `SnapshotMade`:
only then may the thing be deleted.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.model import intent
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource, World
from homeostat.resources.registry import type_of

SNAPSHOT = "snapshot"
"""The operation of the cloud port."""

CREATING, AVAILABLE, ERROR = "creating", "available", "error"
"""Status words of a snapshot."""

SNAPSHOT_FIRST = "a snapshot is made first, as its deletion policy says"
TOO_LATE = "it was gone before a snapshot of it could be made"
WAY_OUT = (
    "It is kept, since there is no snapshot of it: request the same once more, "
    "or give it another deletion policy (Delete or Retain) by an update of the stack"
)


def needed(row: Resource, policy: str) -> bool:
    """Return whether a snapshot precedes the deletion; a never complete resource has no data, as in Heat."""
    return policy == DeletionPolicy.SNAPSHOT and type_of(row.type).can_snapshot and row.changed > 0


def token_of(row: Resource) -> str:
    """Return the token of the snapshot that is being made; "" for none."""
    return intent.token_of(row.intent, SNAPSHOT)


def deletion_token(row: Resource) -> str:
    """Return the snapshot token of a row that is being deleted, else ""."""
    return token_of(row) if row.deleting else ""


def is_stack_snapshot(row: Resource) -> bool:
    """Return whether a snapshot is being made for a snapshot of the whole stack."""
    return row.action == Action.SNAPSHOT and row.busy and token_of(row) != ""


def snapshot_id(row: Resource) -> str:
    """Return the id of the snapshot after which the thing may be deleted; "" for none."""
    return intent.snapshot_of(row.intent) if row.deleting else ""


def observed(world: World, row: Resource) -> Mapping[str, Any] | None:
    """Return the newest observation of the requested snapshot, if any."""
    look = world.seen.get(row.key)
    snapshots = look.observation.properties.get("snapshots") if look is not None and look.observation.present else None
    return next((record for record in snapshots or () if record.get("token") == token_of(row)), None)


def end_reason(row: Resource, usual: str) -> str:
    """Return the reason for the end of a row, including the id of its snapshot."""
    return f"{usual}; its snapshot is {snapshot_id(row)}" if snapshot_id(row) else usual
