"""Begin an action of a stack: a new revision each time, whatever is in progress (invariant 8, CONTRIBUTING.md).

`stack` is the stack's row, locked by `stacks.for_update` in this transaction; `timeout_s` is the service's default time
limit of an action; for `intent` see `NewRevision`. Functions return the number of the new revision.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, delete, update
from sqlalchemy.exc import IntegrityError

from homeostat.model.errors import Rejected
from homeostat.model.snapshot import StackSnapshot
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS, READ_ONLY_ACTIONS, STACK_ACTIONS
from homeostat.model.status import Action, Status
from homeostat.model.world import KeepPolicy
from homeostat.store import events, schema
from homeostat.store.builtin import event_sinks
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import look_schedule, shards
from homeostat.store.sql import lock_order
from homeostat.store.stacks import revisions, rollouts, snapshots, stack_state, stacks
from homeostat.store.stacks.contents import EMPTY
from homeostat.store.stacks.revisions import NewRevision

UNHELD: Mapping[str, Any] = {"suspended": False, "lock": None}
"""Columns that a deletion resets: nothing holds the stack any more."""
LIMITED_ACTIONS = (Action.DELETE, Action.SUSPEND)
"""Actions with a time limit even during a rollout of metadata: unlike the rollout, they do not wait for a person."""


@dataclass(frozen=True, slots=True)
class NewStack:
    """A stack that is about to be stored.

    Attributes:
        action: CREATE, or ADOPT if it takes over existing things.
        parent_id: Of a nested stack, the stack of its parent resource; None for a root stack.
        parent_shard: The shard of that row.
        root_id: The root of its tree of stacks; "" for a root stack.
        depth: The level of nesting; 0 for a root stack.
    """

    id: str
    project: str
    name: str
    owner: str | None = None
    action: str = Action.CREATE
    disable_rollback: bool = True
    timeout_mins: int | None = None
    tags: list[str] | None = None
    template_source: str | None = None
    converge: bool = True
    observe_s: float | None = None
    exceptions: Mapping[str, Mapping[str, Any]] | None = None
    healing: Mapping[str, Any] | None = None
    parent_id: str | None = None
    parent_name: str | None = None
    parent_key: str | None = None
    parent_shard: int | None = None
    root_id: str = ""
    depth: int = 0
    snapshot: StackSnapshot | None = None
    lock: Mapping[str, Any] | None = None
    cooldown: Mapping[str, Any] | None = None


NEW_COLUMNS = tuple(field.name for field in fields(NewStack) if field.name not in ("action", "root_id"))
"""The fields of a new stack that are columns of its row as they are."""


def add(tx: Transaction, new: NewStack, revision: NewRevision, now: float, timeout_s: float) -> None:
    """Store a stack with its first revision, and wake its shards.

    Raises:
        Rejected: StackExists, if the project has a live stack of that name.
    """
    values = {name: getattr(new, name) for name in NEW_COLUMNS}
    values |= {
        "root_id": new.root_id or new.id,
        "revision": 1,
        "action": new.action,
        "status": Status.IN_PROGRESS,
        "reason": f"Stack {new.action} started",
        "spares": KeepPolicy.ADOPTED if new.action == Action.ADOPT else None,
        "deadline": now + stacks.timeout_of(new.timeout_mins, timeout_s),
        "shards": revision.shards,
        "secret": revision.secret,
        "size": revision.size or 0,
        "created_at": now,
    }
    # The unique index decides: a check before would race with other requests.
    try:
        stack_state.insert(tx, values)
    except IntegrityError as error:
        raise Rejected("StackExists", f"The Stack ({new.name}) already exists.") from error
    revisions.store_revision(tx, new.id, 1, new.action, revision, now)
    shards.add(tx, new.id, new.project, revision.shards, now, nested=new.parent_id is not None)
    if new.parent_id is None and revision.sinks:
        event_sinks.set_sinks(tx, new.id, revision.sinks)
    events.append(tx, new.id, [stack_state.stack_event(new.id, new.name, new.action, Status.IN_PROGRESS)], now)


def revise(
    tx: Transaction,
    stack: StackRow,
    action: str,
    revision: NewRevision,
    now: float,
    timeout_s: float,
    changes: Mapping[str, Any] | None = None,
    touched: Collection[int] | None = None,
) -> int:
    """Make `revision` the newest revision of a stack, as the beginning of this action.

    Args:
        touched: The shards whose part of the desired state changes; None for all. Shards at rest beyond these are not
            woken, so that a small change of a large group is cheap.
    """
    number = int(stack.revision) + 1
    revisions.store_revision(tx, stack.id, number, action, revision, now)
    columns: dict[str, Any] = {**({} if revision.size is None else {"size": revision.size}), **(changes or {})}
    timeout_mins = columns.get("timeout_mins", stack.timeout_mins)
    begun = {"revision": number, "action": action, "status": Status.IN_PROGRESS, "reason": f"Stack {action} started"}
    limited = action in LIMITED_ACTIONS or not rollouts.goes_on_in(tx, stack.id)
    times = {"deadline": now + stacks.timeout_of(timeout_mins, timeout_s) if limited else None, "updated_at": now}
    # Anything that the previous revision waited for has ended; `columns` may set some of these again.
    ended = {"rollback_to": None, "look_from": None, "step_at": None, "snapshot": None}
    # A stack never has fewer shards than before: shards beyond the new revision have rows to delete.
    stack_state.change(
        tx, stack, {**begun, **times, "shards": max(int(stack.shards), revision.shards), **ended, **columns}
    )
    # Only ever from False to True: rows written earlier may hold secrets of older revisions. The whole tree changes at
    # once, since values flow between its stacks.
    if _is_first_secret(stack, revision):
        lock_for_first_secret(tx, stack, revision)
        tx.execute(update(schema.stack).where(*_without_secrets(stack)).values(secret=True))
    _wake_changed(tx, stack, revision, number, now, None if _may_be_unconverged(stack) else touched)
    # A large group may be deleted before most of its shards began: these need no pass to notice.
    if revision.kind == EMPTY.kind and stack.shards > 1:
        shards.settle_empty(tx, stack.id, number, now)
    snapshots.interrupt(tx, stack, f"Stack {action} came in between")
    if columns.get("look_from") is not None:
        look_schedule.request_look(tx, [stack.id], columns["look_from"])
    # An empty revision names no sinks; the present ones stay, to receive the events of the deletion.
    if stack.parent_id is None and revision.kind != EMPTY.kind:
        event_sinks.set_sinks(tx, stack.id, revision.sinks)
    events.append(tx, stack.id, [stack_state.stack_event(stack.id, stack.name, action, Status.IN_PROGRESS)], now)
    return number


def _may_be_unconverged(stack: StackRow) -> bool:
    """Return whether shards may be settled at the newest revision of a stack without having converged to it.

    An action that changes nothing settles them in this way. After an unlocking the stack reports its earlier state.
    """
    unchanging = stack.action in NON_CHANGING_ACTIONS or stack.status == Status.FAILED
    return bool(unchanging and stack.complete_revision != stack.revision)


def lock_for_first_secret(tx: Transaction, stack: StackRow, revision: NewRevision) -> None:
    """Lock the tree of a stack from its root down, if `revision` has its first secret: `revise` updates the whole tree.

    Call this before locking a nested stack, since the root comes first in the order of locks.
    """
    if _is_first_secret(stack, revision):
        lock_order.take_stacks(tx, *_without_secrets(stack))


def _is_first_secret(stack: StackRow, revision: NewRevision) -> bool:
    return bool(revision.secret) and stack.secret is False


def _without_secrets(stack: StackRow) -> tuple[ColumnElement[bool], ...]:
    return schema.stack.c.root_id == stack.root_id, schema.stack.c.secret.is_(False)


def _wake_changed(
    tx: Transaction,
    stack: StackRow,
    revision: NewRevision,
    number: int,
    now: float,
    touched: Collection[int] | None,
    priority: int = shards.USER,
) -> None:
    """Create missing shards, and wake the shards that a new revision changes; for `touched` see `revise`."""
    if revision.shards > stack.shards:
        shards.ensure(tx, stack.id, stack.project, revision.shards)
    if touched is None:
        shards.wake(tx, stack.id, now, priority, restart_at=number)
    else:
        shards.carry_over(tx, stack.id, number, touched)
        shards.wake_unsettled(tx, stack.id, now, priority, number)


def converge(tx: Transaction, stack: StackRow, now: float, timeout_s: float, intent: str = "") -> int:
    """Store the newest desired state as another revision, and observe all resources first (CV9, ADR 0020).

    An action in progress continues under its name.
    """
    continues = stack.status == Status.IN_PROGRESS and stack.action not in READ_ONLY_ACTIONS
    action = stack.action if continues or stack.action == Action.DELETE else Action.UPDATE
    changes = {"suspended": False, "look_from": tx.now()}
    return _revise_unchanged(tx, stack, action, now, timeout_s, intent, changes)


def check(tx: Transaction, stack: StackRow, now: float, timeout_s: float, intent: str = "") -> int:
    """Begin a check, which observes every resource and compares it with the desired state."""
    return _revise_unchanged(tx, stack, Action.CHECK, now, timeout_s, intent)


def take_snapshot(
    tx: Transaction,
    stack: StackRow,
    snapshot: StackSnapshot,
    now: float,
    timeout_s: float,
    intent: str = "",
) -> int:
    """Begin a snapshot of the data of every resource."""
    changes = {"snapshot": snapshot}
    return _revise_unchanged(tx, stack, Action.SNAPSHOT, now, timeout_s, intent, changes)


def maintain(
    tx: Transaction,
    stack: StackRow,
    action: str,
    now: float,
    timeout_s: float,
    *,
    lock: Mapping[str, Any] | None = None,
    intent: str = "",
) -> int:
    """Begin to suspend, resume, lock or unlock a stack (ADR 0037); `lock` is the stack's lock from now on, if any."""
    suspends = STACK_ACTIONS[action].suspends
    changes = {"lock": lock, "suspended": stack.suspended if suspends is None else suspends}
    # A lock of level `stacks` touches nothing in the cloud, so no observation comes first. If it replaces another
    # lock, things may have to be unlocked.
    if action == Action.LOCK and lock is not None and lock["level"] == "stacks" and stack.action != Action.LOCK:
        changes["look_from"] = None
    return _revise_unchanged(tx, stack, action, now, timeout_s, intent, changes)


def _revise_unchanged(
    tx: Transaction,
    stack: StackRow,
    action: str,
    now: float,
    timeout_s: float,
    intent: str,
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Store the same desired state as another revision.

    The new revision counts as complete from the start if the previous one did, so that a failure neither halts nor
    rolls back the stack. Restoring a snapshot continues.
    """
    revision = revisions.copy_of_revision(tx, stack, stack.revision, intent)
    snapshot = stack.snapshot if stacks.facts(stack).restoring else None
    look_from = tx.now() if STACK_ACTIONS[action].looks_first else None
    columns = {"look_from": look_from, "rollback_to": stack.rollback_to, "snapshot": snapshot, **(changes or {})}
    if stack.complete_revision == stack.revision:
        columns["complete_revision"] = stack.revision + 1
    return revise(tx, stack, action, revision, now, timeout_s, columns)


def roll_back(tx: Transaction, stack: StackRow, now: float, timeout_s: float) -> int:
    """Roll back to the last COMPLETE revision (CV11), or to nothing if absent."""
    goal = stack.complete_revision
    revision = revisions.empty(tx.database) if goal is None else revisions.copy_of_revision(tx, stack, goal)
    return revise(tx, stack, Action.ROLLBACK, revision, now, timeout_s, {"rollback_to": goal or 0})


def abandon(tx: Transaction, stack: StackRow, now: float, timeout_s: float) -> None:
    """Delete a stack and its nested stacks for good without touching anything in the cloud (ADR 0035).

    A retained stack that was nested in it continues on its own.
    """
    table = schema.stack
    tree = table.c.id.in_(stacks.owned_tree_of(stack.id))
    lock_order.take_stacks(tx, tree)
    tx.execute(update(table).where(tree).values(spares=KeepPolicy.ALL))
    if stack.spares == KeepPolicy.ALL and stack.status == Status.IN_PROGRESS:
        return
    # A deletion in progress that touches the cloud restarts: nested stacks may have failed in it, and their parents may
    # be about to learn of that.
    revise(tx, stack, Action.DELETE, revisions.empty(tx.database), now, timeout_s, {"spares": KeepPolicy.ALL, **UNHELD})


def delay_batch(tx: Transaction, row: StackRow, until: float) -> None:
    """Delay the next batch of a group's members until a time."""
    tx.execute(update(schema.stack).where(schema.stack.c.id == row.id).values(step_at=until))


def hold_batch(tx: Transaction, row: StackRow, reason: str, now: float) -> bool:
    """Store the reason why the next batch of a group's members waits; return whether the reason is new."""
    if row.reason == reason:
        return False
    stack_state.change(tx, row, {"reason": reason})
    events.append(tx, row.id, [stack_state.stack_event(row.id, row.name, row.action, row.status, reason)], now)
    return True


def begin_batch(
    tx: Transaction,
    row: StackRow,
    revision: NewRevision,
    now: float,
    touched: Mapping[int, shards.ShardChange] | None,
) -> None:
    """Make `revision` the next revision of the action in progress, as the next batch of a group (ADR 0014).

    Action, deadline and intent stay. The previous revision is deleted, unless a rollback returns to it: a series may
    have as many revisions as the group has members.

    Args:
        row: The stack's row, locked.
        touched: See `revise`; unchanged members of these shards count as done.
    """
    table, number = schema.stack, int(row.revision) + 1
    revisions.store_revision(tx, row.id, number, row.action, revision, now)
    tx.execute(
        update(table)
        .where(table.c.id == row.id)
        .values(
            revision=number,
            shards=max(int(row.shards), revision.shards),
            step_at=None,
            reason=f"Stack {row.action} started",
        )
    )
    if row.revision != row.complete_revision:
        old = schema.revision
        tx.execute(delete(old).where(old.c.stack_id == row.id, old.c.number == row.revision))
    _wake_changed(tx, row, revision, number, now, touched, shards.ROLLOUT)
    shards.restart_progress(tx, row.id, touched or {})
