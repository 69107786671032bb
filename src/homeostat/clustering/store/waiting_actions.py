"""Actions that wait for lifecycle hooks before their nodes are deleted (ADR 0075).

The requested action is the parent, and waits for a child action for each node. The progress is in their rows only.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import select, update

from homeostat.clustering.decisions.states import CANCELLED, NOT_BEGUN, OPEN, PROCESSED, ActionStatus
from homeostat.clustering.store import actions
from homeostat.store import events, schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ActionRow
from homeostat.store.sql import typed

PARENT, HOOK, WAITS_FOR = "parent", "hook", "waits_for"
"""Keys of the data of actions, see `schema.action`."""
_action = schema.action


def is_one(row: ActionRow) -> bool:
    """Return whether an action is such a parent or child, waiting or not."""
    return PARENT in row.data or WAITS_FOR in row.data


def due(tx: Transaction, now: float, limit: int) -> list[ActionRow]:
    """Return actions with a due step for a worker, the longest due first."""
    chosen = select(_action).where(_action.c.due_at <= now).order_by(_action.c.due_at, _action.c.id)
    return list(typed.rows(ActionRow, tx.execute(chosen.limit(limit))))


def in_cluster(tx: Transaction, cluster_id: str) -> list[ActionRow]:
    """Return the waiting actions of a cluster, the oldest first."""
    conditions = (_action.c.cluster_id == cluster_id, _action.c.status.in_(NOT_BEGUN))
    chosen = select(_action).where(*conditions).order_by(_action.c.created_at, _action.c.id)
    return list(typed.rows(ActionRow, tx.execute(chosen)))


def awaited(tx: Transaction, row: ActionRow) -> list[ActionRow]:
    """Return the child actions of an action that have not ended."""
    ids = row.data.get(WAITS_FOR)
    if not ids:
        return []
    chosen = select(_action).where(_action.c.id.in_(ids), _action.c.status.in_(OPEN))
    rows = typed.rows(ActionRow, tx.execute(chosen))
    return [child for child in rows if actions.end_of(tx, child) is None]


def take(tx: Transaction, row: ActionRow, until: float) -> bool:
    """Take a due action for this worker until a time; return False if another worker has taken it.

    After that time the action is due again, in case this worker has died.
    """
    conditions = (_action.c.id == row.id, _action.c.status == row.status, _action.c.due_at == row.due_at)
    return bool(tx.execute(update(_action).where(*conditions).values(due_at=until)).rowcount)


def put_off(tx: Transaction, row: ActionRow, hook: Mapping[str, Any], due_at: float) -> None:
    """Store the state of the hook of a waiting action, and the time of its next step."""
    conditions = (_action.c.id == row.id, _action.c.status == row.status)
    tx.execute(update(_action).where(*conditions).values(data={**row.data, HOOK: dict(hook)}, due_at=due_at))


def delay(tx: Transaction, ids: Collection[str], due_at: float) -> None:
    """Postpone the next step of waiting actions."""
    conditions = (_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    tx.execute(update(_action).where(*conditions).values(due_at=due_at))


def make_ready(tx: Transaction, row: ActionRow, now: float) -> None:
    """Store that an action has waited long enough: a worker continues the action."""
    conditions = (_action.c.id == row.id, _action.c.status == row.status)
    tx.execute(update(_action).where(*conditions).values(status=ActionStatus.READY, due_at=now, updated_at=now))


def go_on(tx: Transaction, ids: Sequence[str], stack_id: str, now: float) -> bool:
    """Set waiting actions to RUNNING with the newest revision of a stack, and their parents if no other child waits.

    Returns:
        Whether all actions were still waiting; if not, the caller must roll back.
    """
    chosen = select(_action).where(_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    rows = typed.rows(ActionRow, tx.execute(chosen)).all()
    if len(rows) != len(set(ids)):
        return False
    running = {
        "status": ActionStatus.RUNNING,
        "status_reason": PROCESSED,
        "stack_id": stack_id,
        "begun_after": events.newest(tx, [stack_id]),
        "due_at": None,
        "updated_at": now,
    }
    tx.execute(update(_action).where(_action.c.id.in_(ids)).values(**running))
    for parent in _parents(tx, rows):
        if not any(child.status in NOT_BEGUN for child in awaited(tx, parent)):
            tx.execute(update(_action).where(_action.c.id == parent.id).values(**running))
    return True


def cancel(tx: Transaction, rows: Collection[ActionRow], now: float, reason: str = CANCELLED) -> None:
    """Cancel waiting actions with their parents, and all children of these parents."""
    parents = {row.id: row for row in _parents(tx, rows)}
    parents |= {row.id: row for row in rows if WAITS_FOR in row.data}
    ids = {row.id for row in rows} | parents.keys()
    ids |= {child_id for parent in parents.values() for child_id in parent.data.get(WAITS_FOR) or ()}
    ended = {"status": ActionStatus.CANCELLED, "status_reason": reason, "end_time": now, "updated_at": now}
    conditions = (_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    tx.execute(update(_action).where(*conditions).values(**ended, due_at=None))


def _parents(tx: Transaction, rows: Collection[ActionRow]) -> list[ActionRow]:
    ids = {row.data[PARENT] for row in rows if PARENT in row.data}
    waits = (_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    return list(typed.rows(ActionRow, tx.execute(select(_action).where(*waits))))
