"""What a row remembers of the snapshot of its thing, and what was seen of that. Pure.

With the deletion policy Snapshot the intent of a leaving thing goes from `{"operation": "snapshot", "token": …}` to
`{"snapshot": id}`: only then may the thing be deleted.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource, World
from homeostat.resources.registry import type_of

SNAPSHOT = "snapshot"
"""The operation of the cloud port."""

CREATING, AVAILABLE, ERROR = "creating", "available", "error"

FIRST = "a snapshot is made first, as its deletion policy says"
TOO_LATE = "it was gone before a snapshot of it could be made"
WAY_OUT = (
    "It is kept, since there is no snapshot of it: ask for the same once more, "
    "or give it another deletion policy (Delete or Retain) by an update of the stack"
)


def needed(row: Resource, policy: str) -> bool:
    """Has it data to keep? What never came to be has none (engine-semantics.md section 5)."""
    return policy == DeletionPolicy.SNAPSHOT and type_of(row.type).can_snapshot and row.changed > 0


def token_of(row: Resource) -> str:
    """Token of the snapshot that is being made; empty when none is."""
    intent = row.intent or {}
    return str(intent.get("token", "")) if intent.get("operation") == SNAPSHOT else ""


def asked(row: Resource) -> str:
    """The same of a thing that leaves."""
    return token_of(row) if row.leaving else ""


def taken(row: Resource) -> bool:
    """Is it made for a snapshot of the whole stack?"""
    return row.action == Action.SNAPSHOT and row.busy and token_of(row) != ""


def made(row: Resource) -> str:
    """Id of the snapshot after which the thing may be deleted; empty when there is none."""
    return str((row.intent or {}).get(SNAPSHOT, "")) if row.leaving else ""


def seen(world: World, row: Resource) -> Mapping[str, Any] | None:
    """What was last seen of the snapshot that was asked for; None when nothing was."""
    look = world.seen.get(row.key)
    known = look.observation.properties.get("snapshots") if look is not None and look.observation.present else None
    return next((each for each in known or () if each.get("token") == token_of(row)), None)


def farewell(row: Resource, usual: str) -> str:
    """Why the row goes away, with the snapshot that stays behind."""
    return f"{usual}; its snapshot is {made(row)}" if made(row) else usual
