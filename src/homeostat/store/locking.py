"""Locked stacks: the one place where whatever would change them is refused (LK2). See `schema.stack` for `lock`.

A lock is written to a stack and to all nested in it at once, so the row of a stack says all there is to know.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.model.errors import Rejected
from homeostat.model.status import Status
from homeostat.store import stacks
from homeostat.store.database import Database

REMEDY = 'unlock it first ({"unlock": null} as an action)'


def changeable(db: Database, tx: Connection, stack_id: str) -> Row[Any]:
    """The row of a live stack that may be changed, kept from other writers until the end of the transaction.

    Whatever changes a stack, or what is in it, begins with this. Fails: Rejected — EntityNotFound; StackLocked.
    """
    row = stacks.live(db, tx, stack_id)
    check_unlocked(row)
    return row


def removable(db: Database, tx: Connection, stack_id: str) -> Row[Any]:
    """The same for a stack that is to be deleted: that is a way out where locking or unlocking has failed (LK4)."""
    row = stacks.live(db, tx, stack_id)
    if row.status != Status.FAILED or row.parent_id is not None:
        check_unlocked(row)
    return row


def check_unlocked(stack: Row[Any]) -> None:
    """Fails: Rejected (StackLocked) naming who locked it, why, until when, and what to do."""
    if stack.lock is None:
        return
    nested = f", with the stack {stack.root_id} that it is nested in" if stack.parent_id is not None else ""
    raise Rejected("StackLocked", f"The stack {stack.name} is locked{nested}{told(stack.lock)}: {REMEDY}.")


def told(lock: dict[str, Any]) -> str:
    """Who has locked it, why and until when, to be put after `locked`."""
    owner = f" by {lock['owner']}" if lock.get("owner") else ""
    until = f" until {_time(lock['expires_at'])}" if lock.get("expires_at") else ""
    reason = f" ({lock['reason']})" if lock.get("reason") else ""
    return f"{owner}{until}{reason}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
