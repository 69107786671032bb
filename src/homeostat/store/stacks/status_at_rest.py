"""The status that a stack at rest reports, which is never better than the status of its resources (ADR 0047).

A stack whose newest revision is complete becomes CHECK_FAILED if a resource fails later, and CHECK_COMPLETE when none
is FAILED any more. A stack whose deletion failed becomes DELETE_COMPLETE once nothing is left of it. Its ancestors
follow, since each nested stack is a resource of its parent.
"""

from typing import Any

from sqlalchemy import and_, exists, or_, select

from homeostat.model.stack_actions import CHECK_COMPLETE, NON_CHANGING_ACTIONS, stack_may
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.stacks import action_end, stack_state, stacks

WELL_AGAIN = "Stack CHECK completed successfully: all its resources are well again"
LATER_S = 1.0
"""Delay before a nested stack is judged again, if its parent is in an action that waits for its present status."""
MARKED_LATER_S = 30.0
"""Delay before a nested stack is judged again, if an ancestor is in an action that its marks must not fail.

Only the status of the nested stack waits for the action, which may take hours.
"""


def may_be_wrong(stack: Any, failures: int, *, at_rest: bool) -> bool:
    """Return whether the status of a stack may be wrong, as far as one of its shards can tell.

    Cheap, and without a lock: `correct` decides.
    """
    # An action in progress ends with its own status. A locked stack keeps its status: nothing is healed in it.
    if stack.status == Status.IN_PROGRESS or stack.lock is not None:
        return False
    if stack.action == Action.DELETE:
        return at_rest and not failures and bool(stack.status == Status.FAILED)
    # A suspended stack keeps its status as well. A revision that failed stays FAILED, as the answer to its request.
    if stack.suspended or stack.complete_revision != stack.revision:
        return False
    if failures:
        return bool(stack.status == Status.COMPLETE)
    return at_rest and stack_may((stack.action, stack.status), CHECK_COMPLETE)


def correct(
    tx: Transaction,
    stack_id: str,
    number: int,
    failures: int,
    now: float,
    *,
    at_rest: bool,
    merely_marked: bool = False,
) -> float | None:
    """Correct the status that a stack reports, if it is wrong.

    The caller has locked the row of the stack before the shard, and has stored the shard's count of failures.

    Args:
        merely_marked: Whether users have marked all these resources unhealthy, and nothing else is wrong with them.

    Returns:
        When to call again, if an ancestor is in an action that waits for the present status; otherwise None.
    """
    row = stacks.for_update(tx, stack_id)
    if row is None or not may_be_wrong(row, failures, at_rest=at_rest):
        return None
    if row.action == Action.DELETE:
        if not _has_resources(tx, row) and not _siblings_busy(tx, row, number):
            action_end.finish(tx, row, now)
        return None
    if _parent_waits(tx, row):
        return now + LATER_S
    # The failure would travel up and fail the ancestor's action, and a mark fails no action (ADR 0031).
    if failures and merely_marked and _is_changed_above(tx, row):
        return now + MARKED_LATER_S
    reason = action_end.failed_resources(tx, row)
    if reason and row.status == Status.COMPLETE:
        stack_state.change_status_at_rest(tx, row, Action.CHECK, Status.FAILED, reason, now)
    elif not reason and row.status == Status.FAILED and not _siblings_busy(tx, row, number):
        # Failures in another shard may be healed by its present pass, which calls this function again.
        if shards.failures_of(tx, row.id):
            return None
        stack_state.change_status_at_rest(tx, row, Action.CHECK, Status.COMPLETE, WELL_AGAIN, now)
    return None


def _has_resources(tx: Transaction, row: StackRow) -> bool:
    """Return whether any resource of the stack exists.

    The rows decide, not the shards: shards that a lock has stopped may count as done.
    """
    return bool(tx.execute(select(exists().where(schema.resource.c.stack_id == row.id))).scalar_one())


def _parent_waits(tx: Transaction, row: StackRow) -> bool:
    """Return whether the parent is in an action that waits for the status of this stack without changing it."""
    parent = stacks.get(tx, row.parent_id) if row.parent_id is not None else None
    return parent is not None and parent.status == Status.IN_PROGRESS and parent.action in NON_CHANGING_ACTIONS


def _is_changed_above(tx: Transaction, row: StackRow) -> bool:
    """Return whether any ancestor of a stack is in an action."""
    above: StackRow | None = row
    while above is not None and above.parent_id is not None:
        above = stacks.get(tx, above.parent_id)
        if above is not None and above.status == Status.IN_PROGRESS:
            return True
    return False


def _siblings_busy(tx: Transaction, row: StackRow, number: int) -> bool:
    """Return whether a sibling of the calling shard is not at rest: the last shard to come to rest calls again."""
    table = schema.shard
    behind = table.c.settled_revision < row.revision
    siblings = and_(table.c.number != number, table.c.done < table.c.planned)
    conditions = (table.c.stack_id == row.id, table.c.number < row.shards)
    return bool(tx.execute(select(exists().where(*conditions, or_(behind, siblings)))).scalar_one())
