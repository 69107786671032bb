"""End an action of a stack, and report the failed resources."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, exists, func, literal, or_, select, update

from homeostat.model.stack_actions import LOCKING, MAINTENANCE, NON_CHANGING_ACTIONS, STACK_ACTIONS
from homeostat.model.status import Action, Status, joined
from homeostat.model.world import KeepPolicy
from homeostat.store import events, schema
from homeostat.store.builtin import stack_users, stored_trusts
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.shards.away import NO_SHARD, Unrest, unrest_columns
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import snapshots, stack_state, stacks

NEVER_COMPLETE = "Some resources were never created: the last update did not complete"


NAMED_MAX = 10
"""Maximum number of failed resources that the reason of a failed check names."""


def lock_settled(tx: Transaction, stack_id: str, number: int) -> StackRow | None:
    """Lock the stack's row and return it, if all its shards are at rest at its newest revision, `number`.

    The lock makes the shards of a stack take turns here. Without it, two shards that come to rest at the same instant
    would each see an unfinished sibling, and the stack would stay IN_PROGRESS.
    """
    row = stacks.for_update(tx, stack_id)
    return None if row is None else settled_beside(tx, row, number, NO_SHARD)[0]


def settled_beside(tx: Transaction, row: StackRow, number: int, shard: int) -> tuple[StackRow | None, Unrest]:
    """Return the same for a locked stack, and the number of unsettled members of a group outside one of its shards."""
    if not is_in_progress(row, number):
        return None, Unrest(0, 0)
    progress = _progress(tx, row, number, shard)
    return None if progress.unfinished else row, Unrest(progress.own, progress.inside)


def is_in_progress(row: StackRow, number: int) -> bool:
    """Return whether `number` is the newest revision of a stack, and in progress."""
    return row.revision == number and row.status == Status.IN_PROGRESS


def is_settled(tx: Transaction, stack: StackRow, number: int) -> bool:
    """Return whether all shards of a stack are at rest at revision `number`."""
    return not _progress(tx, stack, number, NO_SHARD).unfinished


class _Progress(NamedTuple):
    unfinished: bool
    own: int
    inside: int


def _progress(tx: Transaction, stack: StackRow, number: int, shard: int) -> _Progress:
    # Actions that change nothing may end although resources failed earlier. After any change, a FAILED resource means
    # that the revision has not been reached.
    changing = stack.action not in NON_CHANGING_ACTIONS
    nested = shard != NO_SHARD
    rows = _unfinished(tx, stack.id, number, stack.shards, shard, changing=changing, nested=nested)
    return typed.rows(_Progress, rows).one()


def others_unsettled(tx: Transaction, stack: Any, number: int) -> bool:
    """Return whether any sibling of a shard is not at rest at the newest revision of the stack."""
    shard = schema.shard
    siblings = (shard.c.stack_id == stack.id, shard.c.number < stack.shards, shard.c.number != number)
    behind = exists().where(*siblings, shard.c.settled_revision < stack.revision)
    return bool(tx.execute(select(behind)).scalar_one())


@prepared
def _unfinished(stack_id: str, number: int, count: int, but: int, *, changing: bool, nested: bool) -> Select[Any]:
    shard = schema.shard
    unfinished: ColumnElement[bool] = shard.c.settled_revision < number
    if changing:
        unfinished = or_(unfinished, shard.c.failures > 0)
    left = exists().where(shard.c.stack_id == stack_id, shard.c.number < count, unfinished)
    own, inside = unrest_columns(stack_id, but) if nested else (literal(0), literal(0))
    columns: tuple[Any, ...] = (left.label("unfinished"), own.label("own"), inside.label("inside"))
    return select(*columns)


def settle(tx: Transaction, stack_id: str, number: int, now: float, *, wakes_parent: bool = True) -> StackRow | None:
    """Finish the action of a stack if all its shards are at rest at revision `number`, and this is the newest.

    Args:
        wakes_parent: Wake the parent of a nested stack; False if the parent itself calls this.

    Returns:
        The stack's row as it was before; None if nothing was finished.
    """
    row = lock_settled(tx, stack_id, number)
    if row is not None:
        finish(tx, row, now, wakes_parent=wakes_parent)
    return row


def fail(tx: Transaction, stack_id: str, number: int, reason: str, now: float) -> StackRow | None:
    """Fail the stack if `number` is its newest revision and in progress; return the row as it was before.

    The check happens under the lock: a user may have stored a newer revision since the pass loaded the stack, and a
    failure of the older revision does not concern the newer.
    """
    row = stacks.for_update(tx, stack_id)
    return row if row is not None and fail_locked(tx, row, number, reason, now) else None


def fail_locked(tx: Transaction, row: StackRow, number: int, reason: str, now: float) -> bool:
    """Fail a locked stack if `number` is its newest revision and in progress; return whether it is."""
    if not is_in_progress(row, number):
        return False
    _finish(tx, row, Status.FAILED, reason, now)
    shards.wake(tx, row.id, now, shards.USER)
    snapshots.interrupt(tx, row, reason)
    return True


def finish(tx: Transaction, row: StackRow, now: float, *, wakes_parent: bool = True) -> None:
    """End the action of a settled stack (see `lock_settled`) as COMPLETE, or as FAILED if `_failure` returns a reason.

    For `wakes_parent` see `settle`.
    """
    failure = _failure(tx, row)
    if failure:
        _finish(tx, row, Status.FAILED, failure, now)
        snapshots.interrupt(tx, row, failure)
    else:
        _finish(tx, row, Status.COMPLETE, f"Stack {row.action} completed successfully", now, wakes_parent=wakes_parent)
    if row.action == Action.UNLOCK and row.parent_id is None and not failure:
        _remove_locks(tx, row, now)
    elif STACK_ACTIONS[row.action].heals_after:
        shards.wake(tx, row.id, now, shards.HEAL)
    if row.action == Action.DELETE:
        snapshots.remove_of_stack(tx, row.id, row.project, now, abandoned=row.spares == KeepPolicy.ALL)


def _failure(tx: Transaction, row: StackRow) -> str:
    """Return why a settled action has failed; "" if it succeeded.

    A check fails if a resource differs, a lock if it could not be set or removed everywhere, a snapshot if the desired
    state of the stack was never reached, and a resumption if resources stay behind.
    """
    table = schema.resource
    if row.action == Action.CHECK:
        return _failed_check(tx, row)
    # Resources that had failed and cannot be locked have the revision of the lock, see `planner.actions.maintenance`.
    if row.action == Action.LOCK:
        return failed_resources(tx, row, table.c.revision == row.revision)
    # If the revision was complete, `status_at_rest` reports all other failures.
    if row.action == Action.RESUME and row.complete_revision != row.revision:
        return failed_resources(tx, row, table.c.stack_id == row.id)
    if row.action in (Action.UNLOCK, Action.RESUME):
        return failed_resources(tx, row, table.c.action == row.action, table.c.revision == row.revision)
    return NEVER_COMPLETE if row.action == Action.SNAPSHOT and row.complete_revision != row.revision else ""


def _finish(
    tx: Transaction, row: StackRow, status: Status, reason: str, now: float, *, wakes_parent: bool = True
) -> None:
    values: dict[str, Any] = {"status": status, "reason": reason, "deadline": None, "step_at": None}
    if status is Status.COMPLETE and row.action not in MAINTENANCE:
        values["complete_revision"] = row.revision
        if row.spares == KeepPolicy.ADOPTED:
            values["spares"] = None
        if row.action == Action.DELETE:
            values["deleted_at"] = now
            if row.parent_id is None:
                stored_trusts.release(tx, row.id)
                stack_users.mark_stack_departed(tx, row.id)
    stack_state.change(tx, row, values)
    events.append(tx, row.id, [stack_state.stack_event(row.id, row.name, row.action, status, reason)], now)
    if wakes_parent:
        stack_state.wake_parent(tx, row, now)
    # A locked stack has nothing else to do, so its first shard is woken when the lock expires: that pass unlocks it.
    if row.action == Action.LOCK and row.parent_id is None and row.lock and row.lock["expires_at"] is not None:
        shards.wake(tx, row.id, max(now, row.lock["expires_at"]), shards.USER, [0])


def _remove_locks(tx: Transaction, row: StackRow, now: float) -> None:
    """Remove the lock from a stack and all its nested stacks, and wake them, since healing is allowed again.

    The caller has locked the whole tree before its own shard (`lock_order.take_tree`): this function changes rows of
    stacks and shards above and below it.
    """
    table, tree = schema.stack, stacks.tree_of(row.id)
    locked = tx.execute(select(table).where(table.c.id.in_(tree), table.c.lock.is_not(None)))
    for stack in list(typed.rows(StackRow, locked)):
        _restore_status(tx, stack, now)
    tx.execute(update(table).where(table.c.id.in_(tree)).values(lock=None))
    shards.wake_all(tx, tree, now, shards.HEAL)


def _restore_status(tx: Transaction, row: StackRow, now: float) -> None:
    """Restore the status that an unlocked stack had before it was locked."""
    before = (row.lock or {}).get(stack_state.BEFORE)
    if before is None or row.action != Action.UNLOCK:
        return
    stack_state.change(tx, row, before)
    event = stack_state.stack_event(row.id, row.name, before["action"], before["status"], before["reason"])
    events.append(tx, row.id, [event], now)


def _failed_check(tx: Transaction, stack: StackRow) -> str:
    """Return the problems that a check has detected; "" if none."""
    never = NEVER_COMPLETE if stack.complete_revision != stack.revision else ""
    return failed_resources(tx, stack) or never


class _Failed(NamedTuple):
    name: str
    action: str
    reason: str
    failures: int


def failed_resources(tx: Transaction, stack: StackRow, *among: ColumnElement[bool]) -> str:
    """Return the names of the FAILED resources of a stack, with their reasons; "" if none.

    Args:
        *among: Conditions on the rows to consider.
    """
    # The counters of the shards are few rows; without a failure the resources need not be read.
    if not shards.failures_of(tx, stack.id):
        return ""
    table = schema.resource
    # A replaced row does not count, unless its deletion has failed.
    hinders = or_(table.c.replaced_by.is_(None), table.c.action == Action.DELETE)
    failed = (table.c.stack_id == stack.id, table.c.status == Status.FAILED, hinders, *among)
    counted = func.count().over().label("failures")
    columns = (table.c.name, table.c.action, table.c.reason, counted)
    chosen = select(*columns).where(*failed).order_by(table.c.name).limit(NAMED_MAX)
    named = list(typed.rows(_Failed, tx.execute(chosen)))
    if not named:
        return ""
    named_failures = "; ".join(_reason_of(stack, failed_row) for failed_row in named)
    more = named[0].failures - NAMED_MAX
    action = stack.action if among else Action.CHECK
    return f"Resource {action} failed: {named_failures}" + (f"; and {more} more" if more > 0 else "")


def _reason_of(stack: StackRow, failed: _Failed) -> str:
    """Return the reason of a failed resource, or a note that a lock has skipped the resource."""
    if stack.action == Action.LOCK and stack.status == Status.IN_PROGRESS and failed.action not in LOCKING:
        state = joined(failed.action, Status.FAILED)
        text = f"State {state} invalid for lock, it is not protected: {failed.reason}"
        return f"NotSupported: resources.{failed.name}: {text}"
    return _reason_with_name(failed.name, failed.reason)


def _reason_with_name(name: str, reason: str) -> str:
    """Return the reason of a failed resource, preceded by its name unless the reason names it already."""
    named = any(f" resources.{name}{end}" in reason for end in ":.[")
    return reason if named else f"{name}: {reason}"
