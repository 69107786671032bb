"""Actions that wait: before their nodes go, others are notified, and may take their time (ADR 0075).

The action that was asked for waits for one action for each node. All that says what comes next is in their rows.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from homeostat.clustering.decisions.states import CANCELLED, NOT_BEGUN, OPEN, PROCESSED, ActionStatus
from homeostat.clustering.store import actions
from homeostat.store import events, schema
from homeostat.store.schema.rows import ActionRow
from homeostat.store.sql import typed

PARENT, HOOK, WAITS_FOR = "parent", "hook", "waits_for"
"""Keys of the data of actions, see `schema.action`."""
_action = schema.action


def is_one(row: ActionRow) -> bool:
    """Return whether an action waits, or has waited, for others, or is one of those that it waits for."""
    return PARENT in row.data or WAITS_FOR in row.data


def due(tx: Connection, now: float, limit: int) -> list[ActionRow]:
    """Return actions for which a worker has to do something, those that have waited longest first."""
    chosen = select(_action).where(_action.c.due_at <= now).order_by(_action.c.due_at, _action.c.id)
    return list(typed.rows(ActionRow, tx.execute(chosen.limit(limit))))


def in_cluster(tx: Connection, cluster_id: str) -> list[ActionRow]:
    """Return the actions in a cluster that wait, the oldest first."""
    conditions = (_action.c.cluster_id == cluster_id, _action.c.status.in_(NOT_BEGUN))
    chosen = select(_action).where(*conditions).order_by(_action.c.created_at, _action.c.id)
    return list(typed.rows(ActionRow, tx.execute(chosen)))


def awaited(tx: Connection, row: ActionRow) -> list[ActionRow]:
    """Return the actions that an action waits for, as far as they have not ended."""
    ids = row.data.get(WAITS_FOR)
    if not ids:
        return []
    chosen = select(_action).where(_action.c.id.in_(ids), _action.c.status.in_(OPEN))
    found = typed.rows(ActionRow, tx.execute(chosen))
    return [each for each in found if actions.end_of(tx, each) is None]


def take(tx: Connection, row: ActionRow, until: float) -> bool:
    """Take an action that is due, so that no other worker does the same; return False where one has it already.

    A worker that dies leaves it to the others after that time.
    """
    conditions = (_action.c.id == row.id, _action.c.status == row.status, _action.c.due_at == row.due_at)
    return bool(tx.execute(update(_action).where(*conditions).values(due_at=until)).rowcount)


def put_off(tx: Connection, row: ActionRow, hook: Mapping[str, Any], due_at: float) -> None:
    """Store what was done for an action that waits still, and when the next thing is due."""
    conditions = (_action.c.id == row.id, _action.c.status == row.status)
    tx.execute(update(_action).where(*conditions).values(data={**row.data, HOOK: dict(hook)}, due_at=due_at))


def delay(tx: Connection, ids: Collection[str], due_at: float) -> None:
    """Store that actions which wait are to be looked at again at a later time."""
    conditions = (_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    tx.execute(update(_action).where(*conditions).values(due_at=due_at))


def make_ready(tx: Connection, row: ActionRow, now: float) -> None:
    """Store that an action has waited long enough, so that a worker goes on with it."""
    conditions = (_action.c.id == row.id, _action.c.status == row.status)
    tx.execute(update(_action).where(*conditions).values(status=ActionStatus.READY, due_at=now, updated_at=now))


def go_on(tx: Connection, ids: Sequence[str], stack_id: str, now: float) -> bool:
    """Let actions go on that waited, with the newest revision of a stack; their parent too, if it waits for no other.

    Returns:
        Whether all of them did wait still; if not, nothing may be stored.
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
        if not any(each.status in NOT_BEGUN for each in awaited(tx, parent)):
            tx.execute(update(_action).where(_action.c.id == parent.id).values(**running))
    return True


def cancel(tx: Connection, rows: Collection[ActionRow], now: float, reason: str = CANCELLED) -> None:
    """Cancel actions that wait; with one of them its parent, and with a parent all that it waits for."""
    parents = {row.id: row for row in _parents(tx, rows)}
    parents |= {row.id: row for row in rows if WAITS_FOR in row.data}
    ids = {row.id for row in rows} | parents.keys()
    ids |= {each for parent in parents.values() for each in parent.data.get(WAITS_FOR) or ()}
    ended = {"status": ActionStatus.CANCELLED, "status_reason": reason, "end_time": now, "updated_at": now}
    conditions = (_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    tx.execute(update(_action).where(*conditions).values(**ended, due_at=None))


def _parents(tx: Connection, rows: Collection[ActionRow]) -> list[ActionRow]:
    ids = {row.data[PARENT] for row in rows if PARENT in row.data}
    waits = (_action.c.id.in_(ids), _action.c.status.in_(NOT_BEGUN))
    return list(typed.rows(ActionRow, tx.execute(select(_action).where(*waits))))
