"""What a stack at rest says of itself: no more than what its resources allow (ADR 0047).

A stack whose newest revision is complete, and one of whose resources has failed since, becomes CHECK_FAILED; when none
of them is FAILED any more it becomes CHECK_COMPLETE. One that could not be deleted is DELETE_COMPLETE once nothing is
left of it. The parents of a nested stack follow, since each is a resource of the one above it.
"""

from typing import Any

from sqlalchemy import Connection, Row, and_, exists, or_, select

from homeostat.model.status import WELL, Action, Status, stack_may
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

WELL_AGAIN = "Stack CHECK completed successfully: all its resources are well again"
LATER_S = 1.0
"""A nested stack is judged so long after its parent was found to be busy with something that asks for its status."""


def disagrees(stack: Any, failures: int, *, at_rest: bool) -> bool:
    """May what a stack says of itself be wrong, by the failures of one shard, which is at rest or is not?

    stack — its facts or its row.
    """
    if stack.status == Status.IN_PROGRESS or stack.lock is not None:
        return False
    if stack.action == Action.DELETE:
        return at_rest and not failures and bool(stack.status == Status.FAILED)
    if stack.suspended or stack.complete_revision != stack.revision:
        return False
    if failures:
        return bool(stack.status == Status.COMPLETE)
    return at_rest and stack_may((stack.action, stack.status), WELL)


def tell(
    db: Database, tx: Connection, stack_id: str, number: int, failures: int, now: float, *, at_rest: bool
) -> float | None:
    """Have a stack say what its resources allow.

    Takes: number, failures, at_rest — one of its shards, so many of whose resources are FAILED now, counted already.
    Gives the time at which to ask again, where its parent is just asking for its status. Whoever calls has locked the
    row of the stack before the shard.
    """
    row = stacks.for_update(db, tx, stack_id)
    if row is None or not disagrees(row, failures, at_rest=at_rest):
        return None
    if row.action == Action.DELETE:
        if not _is_left(tx, row) and not _busy_elsewhere(tx, row, number):
            stacks.finish(db, tx, row, now)
        return None
    if _asked_by_parent(tx, row):
        return now + LATER_S
    reason = stacks.failed_resources(tx, row)
    if reason and row.status == Status.COMPLETE:
        stacks.become(tx, row, Action.CHECK, Status.FAILED, reason, now)
    elif not reason and row.status == Status.FAILED and not _busy_elsewhere(tx, row, number):
        stacks.become(tx, row, Action.CHECK, Status.COMPLETE, WELL_AGAIN, now)
    return None


def _is_left(tx: Connection, row: Row[Any]) -> bool:
    """Is anything left of it? Shards that its lock has kept from going on may count as done."""
    return bool(tx.execute(select(exists().where(schema.resource.c.stack_id == row.id))).scalar_one())


def _asked_by_parent(tx: Connection, row: Row[Any]) -> bool:
    """Is its parent doing something that ends with the status of this stack, and changes nothing of it?"""
    parent = stacks.get(tx, row.parent_id) if row.parent_id is not None else None
    return parent is not None and parent.status == Status.IN_PROGRESS and parent.action in stacks.CHANGING_NOTHING


def _busy_elsewhere(tx: Connection, row: Row[Any], number: int) -> bool:
    """Is something of it not at rest? That of the shard which asks is. The last one to come to rest asks again."""
    table = schema.shard
    behind = table.c.settled_revision < row.revision
    others = and_(table.c.number != number, table.c.done < table.c.planned)
    mine = (table.c.stack_id == row.id, table.c.number < row.shards)
    return bool(tx.execute(select(exists().where(*mine, or_(behind, others)))).scalar_one())
