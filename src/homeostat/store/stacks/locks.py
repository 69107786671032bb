"""Locked stacks: the only place where changes to them are refused (LK2). For the lock itself see `schema.stack`.

A lock is written to a stack and to all its nested stacks in one transaction, so each row tells whether its stack is
locked.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import or_, select, update

from homeostat.model.errors import Rejected
from homeostat.model.status import Action, Status, joined
from homeostat.model.world import StackFacts
from homeostat.store import events, requesters, schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.sql import lock_order, typed
from homeostat.store.stacks import action_begin, stack_state, stacks

Lock = Mapping[str, Any]
"""The column `lock` of `schema.stack`."""


def changeable(tx: Transaction, stack_id: str) -> StackRow:
    """Return the row of a live stack that may be changed, locked until the end of the transaction.

    Every request that changes a stack or its resources calls this first.

    Raises:
        Rejected: EntityNotFound; StackLocked.
    """
    row = stacks.live(tx, stack_id)
    check_unlocked(row)
    return row


def removable(tx: Transaction, stack_id: str) -> StackRow:
    """Return the row of a live stack that may be deleted, locked until the end of the transaction.

    A root stack that is FAILED may be deleted despite its lock: a way out if locking or unlocking failed (LK4).

    Raises:
        Rejected: EntityNotFound; StackLocked.
    """
    row = stacks.live(tx, stack_id)
    if row.status != Status.FAILED or row.parent_id is not None:
        check_unlocked(row)
    return row


def lift(tx: Transaction, stack: StackRow) -> None:
    """Remove the lock from a stack that is about to be deleted, and from all its nested stacks.

    Otherwise an update overtaking the deletion would leave nested stacks with a lock that no user can remove.
    """
    if stack.lock is None:
        return
    tree = schema.stack.c.id.in_(stacks.tree_of(stack.id))
    lock_order.take_stacks(tx, tree)
    tx.execute(update(schema.stack).where(tree).values(lock=None))


def check_unlocked(stack: StackRow) -> None:
    """Check that a stack is not locked.

    Raises:
        Rejected: StackLocked, naming the owner of the lock, the reason, the end, and the remedy.
    """
    if stack.lock is None:
        return
    nested = f", with the stack {stack.root_id} that it is nested in" if stack.parent_id is not None else ""
    unlocked = stack.root_id if stack.parent_id is not None else stack.name
    remedy = f"unlock it first (`openstack stack unlock {unlocked}`)"
    raise Rejected("StackLocked", f"The stack {stack.name} is locked{nested}{describe(stack.lock)}: {remedy}.")


def lock(tx: Transaction, stack_id: str, wanted: Lock, may_break: Callable[[Lock], bool], timeout_s: float) -> None:
    """Lock a stack and all its nested stacks, or replace their lock (LK1, LK4).

    Args:
        may_break: Whether the caller may remove a given lock.

    Raises:
        Rejected: EntityNotFound; NotSupported for a nested stack; ActionInProgress; StackLocked if unlocking has
            failed; Forbidden for another owner's lock.
    """
    stack = _root(tx, stack_id)
    if stack.lock is not None and stack.action == Action.UNLOCK:
        state = joined(stack.action, stack.status)
        raise Rejected("StackLocked", f"The stack {stack.name} is {state}: unlock it once more, or delete it.")
    _check_idle(tx, stack)
    _check_owner(stack, may_break)
    _record_broken_lock(tx, stack, Action.LOCK)
    table, tree = schema.stack, stacks.tree_of(stack_id)
    lock_order.take_stacks(tx, table.c.id.in_(tree))
    tx.execute(update(table).where(table.c.id.in_(tree), table.c.lock.is_(None)).values(lock=wanted))
    # The remaining stacks have a state to remember, or had a lock already; they are few.
    stateful = or_(table.c.status == Status.FAILED, table.c.suspended.is_(True), table.c.lock.is_not(None))
    left = tx.execute(select(table).where(table.c.id.in_(tree), stateful))
    for row in list(typed.rows(StackRow, left)):
        tx.execute(update(table).where(table.c.id == row.id).values(lock=stored_lock(wanted, row)))
    action_begin.maintain(tx, stack, Action.LOCK, tx.now(), timeout_s, lock=stored_lock(wanted, stack))


def stored_lock(wanted: Lock | None, stack: StackRow) -> Lock | None:
    """Return a lock as a single stack stores it: with the state that unlocking has to restore, if any.

    Args:
        wanted: The lock of its parent stack, or its own new lock; None if unlocked.
    """
    if wanted is None:
        return None
    before = (stack.lock or {}).get(stack_state.BEFORE)
    stateful = stack.action not in (Action.LOCK, Action.UNLOCK) and (stack.status == Status.FAILED or stack.suspended)
    if before is None and stateful:
        # A suspended stack may have been checked since and report CHECK_COMPLETE: the suspension must not get lost.
        action = stack.action if stack.status == Status.FAILED else Action.SUSPEND
        reason = stack.reason if action == stack.action else f"Stack {action} completed successfully"
        before = {"action": action, "status": stack.status, "reason": reason}
    return without_previous_state(wanted) if before is None else {**wanted, stack_state.BEFORE: before}


def without_previous_state(lock: Lock | None) -> Lock | None:
    """Return a lock without the previous state, which belongs to a single stack."""
    return None if lock is None else {name: value for name, value in lock.items() if name != stack_state.BEFORE}


def unlock(tx: Transaction, stack_id: str, may_break: Callable[[Lock], bool], timeout_s: float) -> None:
    """Begin to unlock a stack and all its nested stacks.

    The columns keep the lock until the action has ended (see `action_end.finish`), so that nothing changes the stack
    earlier.

    Raises:
        Rejected: EntityNotFound; NotSupported for a nested stack; StackNotLocked; ActionInProgress; Forbidden.
    """
    stack = _root(tx, stack_id)
    if stack.lock is None:
        raise Rejected("StackNotLocked", f"The stack {stack.name} is not locked.")
    _check_idle(tx, stack)
    _check_owner(stack, may_break)
    _record_broken_lock(tx, stack, Action.UNLOCK)
    action_begin.maintain(tx, stack, Action.UNLOCK, tx.now(), timeout_s, lock=stack.lock)


def _root(tx: Transaction, stack_id: str) -> StackRow:
    stack = stacks.live(tx, stack_id)
    if stack.parent_id is not None:
        message = f"A nested stack is locked and unlocked with the stack {stack.root_id} that it is nested in."
        raise Rejected("NotSupported", message)
    return stack


def _check_idle(tx: Transaction, stack: StackRow) -> None:
    """Check that nothing is in progress in a root stack or in a stack nested in it.

    Raises:
        Rejected: ActionInProgress.
    """
    if stack.status == Status.IN_PROGRESS:
        message = f"Stack {stack.name} already has an action ({stack.action}) in progress."
        raise Rejected("ActionInProgress", message)
    table = schema.stack
    busy = (table.c.root_id == stack.id, table.c.deleted_at.is_(None), table.c.status == Status.IN_PROGRESS)
    nested = tx.execute(select(table.c.name, table.c.action).where(*busy).limit(1)).first()
    if nested is not None:
        message = f"Stack {nested.name}, nested in {stack.name}, has an action ({nested.action}) in progress."
        raise Rejected("ActionInProgress", message)


def _check_owner(stack: StackRow, may_break: Callable[[Lock], bool]) -> None:
    if stack.lock is not None and not may_break(stack.lock):
        message = f"The stack {stack.name} is locked{describe(stack.lock)}: only they, or an admin, may take that away."
        raise Rejected("Forbidden", message)


def _record_broken_lock(tx: Transaction, stack: StackRow, action: Action) -> None:
    """Record an event if this action of a user removes another owner's lock."""
    requester = requesters.current()
    if stack.lock is None or requester is requesters.NOBODY or requester.owns(stack.lock):
        return
    broken = f"{requester.name or 'An admin'} breaks the lock: the stack was locked{describe(stack.lock)}"
    event = stack_state.stack_event(stack.id, stack.name, action, Status.IN_PROGRESS, broken)
    events.append(tx, stack.id, [event], tx.now())


def is_over(stack: StackFacts, now: float) -> bool:
    """Return whether the lock of a stack has expired and can be removed now."""
    at = stack.lock_ends_at
    return at is not None and at <= now and stack.status != Status.IN_PROGRESS


def unlock_expired(tx: Transaction, stack_id: str, now: float, timeout_s: float) -> None:
    """Unlock a stack whose lock has expired.

    The expiry is checked again under the row lock: a user may have extended the lock, or unlocked the stack, meanwhile.
    """
    row = stacks.for_update(tx, stack_id)
    if row is not None and row.deleted_at is None and is_over(stacks.facts(row), now):
        action_begin.maintain(tx, row, Action.UNLOCK, now, timeout_s, lock=row.lock)


def describe(lock: Lock) -> str:
    """Describe the owner, the end and the reason of a lock, as text that follows the word 'locked'."""
    owner = f" by {lock['owner']}" if lock.get("owner") else ""
    until = f" until {_utc(lock['expires_at'])}" if lock.get("expires_at") else ""
    reason = f" ({lock['reason']})" if lock.get("reason") else ""
    return f"{owner}{until}{reason}"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
