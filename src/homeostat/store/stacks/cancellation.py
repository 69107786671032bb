"""Cancel an action: a stack and all its nested stacks stop being created or changed, in one transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import select

from homeostat.model.stack_actions import CANCELLABLE
from homeostat.model.status import Action, Status
from homeostat.store import events, schema
from homeostat.store.database import Transaction, row_lock
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.sql import typed
from homeostat.store.stacks import rollouts, stack_state, stacks


class _Busy(NamedTuple):
    id: str
    name: str
    action: str
    status: str
    depth: int
    parent_id: str | None


def cancel(
    tx: Transaction,
    stack: StackRow,
    now: float,
    reason: str = "",
    actions: Collection[Action] = CANCELLABLE,
) -> None:
    """Fail a stack, and all its nested stacks in progress, in their present state.

    Operations in progress are finished; no new ones begin, and no further batch of a rolling update follows. Rollouts
    are reverted: all members keep their previous metadata.

    Args:
        stack: The stack's row, locked.
        reason: The reason for each stack; "" if a user has cancelled it.
        actions: The actions that are cancelled.
    """
    table = schema.stack
    busy = (table.c.status == Status.IN_PROGRESS, table.c.action.in_(sorted(actions)))
    tree = select(table.c.id, table.c.name, table.c.action, table.c.status, table.c.depth, table.c.parent_id)
    # The order of locks (ADR 0057): rows of stacks from the root down, then, below, shards from the deepest stack up.
    tree = tree.where(table.c.id.in_(stacks.tree_of(stack.id)), *busy).order_by(table.c.depth, table.c.id)
    busy_stacks = list(typed.rows(_Busy, tx.execute(row_lock(tree))))
    for action in sorted(actions):
        _end(tx, [row for row in busy_stacks if row.action == action], action, now, reason)
    levels: dict[int, set[str]] = defaultdict(set)
    for row in busy_stacks:
        levels[row.depth].add(row.id)
        # The parent's shard is woken as well, since the nested stack belongs to one of its resources.
        if row.parent_id is not None:
            levels[row.depth - 1].add(row.parent_id)
    for depth in sorted(levels, reverse=True):
        for ids in _chunks(sorted(levels[depth])):
            shards.wake_all(tx, ids, now, shards.USER)
    for ids in _chunks([row.id for row in busy_stacks]):
        rollouts.take_back(tx, ids, "ended, since its stack is cancelled", now)


def _end(tx: Transaction, rows: Sequence[_Busy], action: str, now: float, reason: str) -> None:
    reason = reason or f"Stack {action} cancelled"
    ended = {"status": Status.FAILED, "reason": reason, "deadline": None, "step_at": None}
    for start in range(0, len(rows), stacks.STACKS_PER_QUERY):
        stack_state.change_all(tx, rows[start : start + stacks.STACKS_PER_QUERY], ended)
    for row in rows:
        event = stack_state.stack_event(row.id, row.name, action, Status.FAILED, reason)
        events.append(tx, row.id, [event], now)


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + stacks.STACKS_PER_QUERY] for start in range(0, len(ids), stacks.STACKS_PER_QUERY))
