"""Users of resources in the identity service, their projects, and the queues in which they signal.

Each is a record, from the intent to create it until it is deleted. When the resource of a user is deleted, the same
transaction marks the user as departed, so that it is deleted in the identity service whatever crashes.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, exists, func, select, update

from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record

STACK_USER, DEPARTED_USER = "stack_user", "departed_user"
"""Kinds of records of users.

token is that of the resource; link is the user's id in the identity service, "" until it is known; project is the one
that the user is in.
"""
USER_PROJECT, DEPARTED_PROJECT = "stack_user_project", "departed_user_project"
"""Kinds of records of projects: token is the id of the root stack; object has the project's `id` once it is known."""
QUEUE, DEPARTED_QUEUE = "signal_queue", "departed_queue"
"""Kinds of records of queues.

id is the name of the queue; token and project are those of the user; link is the record that takes the signals;
updated_at is when the queue is to be read next, None for at once.
"""
_record = schema.record
_stack = schema.stack
_DEPARTED = {STACK_USER: DEPARTED_USER, QUEUE: DEPARTED_QUEUE}


def mark_departed(tx: Connection, token: str) -> None:
    """Mark the user of a resource, and its queue, as departed, since the resource is deleted."""
    _depart(tx, _record.c.token == token)


def _depart(tx: Connection, whose: Any) -> None:
    for kind, departed_kind in _DEPARTED.items():
        tx.execute(update(_record).where(_record.c.kind == kind, whose).values(kind=departed_kind))


def mark_stack_departed(tx: Connection, stack_id: str) -> None:
    """Mark the project of a root stack and all its users as departed, since the stack is deleted."""
    there = records.of_tokens(tx, USER_PROJECT, [stack_id]).get(stack_id)
    if there is None:
        return
    tx.execute(update(_record).where(_record.c.id == there.id).values(kind=DEPARTED_PROJECT))
    if "id" in there.object:
        _depart(tx, _record.c.project == there.object["id"])


def departed(tx: Connection, kind: str, limit: int) -> list[Record]:
    """Return the oldest departed records of a kind; projects only once their users are gone, and users their queues."""
    other = _record.alias()
    chosen = select(*records.FIELDS).where(_record.c.kind == kind)
    if kind == DEPARTED_PROJECT:
        there = and_(other.c.project == _record.c.project, other.c.kind.in_((STACK_USER, DEPARTED_USER)))
        chosen = chosen.where(~exists(select(other.c.id).where(there)))
    if kind == DEPARTED_USER:
        there = and_(other.c.token == _record.c.token, other.c.kind.in_((QUEUE, DEPARTED_QUEUE)))
        chosen = chosen.where(~exists(select(other.c.id).where(there)))
    rows = tx.execute(chosen.order_by(_record.c.created_at, _record.c.id).limit(limit))
    return [records.of_row(row) for row in rows]


def due_queues(tx: Connection, now: float, limit: int) -> list[Record]:
    """Return queues that are to be read by now: projects take turns, and of one those that wait longest come first."""
    due_at, target = func.coalesce(_record.c.updated_at, 0.0), _record.alias()
    oldest = (due_at, _record.c.id)
    turn = func.row_number().over(partition_by=target.c.project, order_by=oldest).label("turn")
    joined = _record.outerjoin(target, target.c.id == _record.c.link)
    waiting = select(*records.FIELDS, turn).select_from(joined).where(_record.c.kind == QUEUE, due_at <= now).subquery()
    rows = tx.execute(select(waiting).order_by(waiting.c.turn, func.coalesce(waiting.c.updated_at, 0.0)).limit(limit))
    return [records.of_row(row) for row in rows]


def claim_queue(tx: Connection, queue: Record, due_at: float) -> bool:
    """Have a queue read next at another time; return whether no other worker has done so since it was found due."""
    same = _record.c.updated_at.is_(None) if queue.updated_at is None else _record.c.updated_at == queue.updated_at
    claimed = update(_record).where(_record.c.id == queue.id, _record.c.kind == QUEUE, same).values(updated_at=due_at)
    return bool(tx.execute(claimed).rowcount)


def put_off_queue(tx: Connection, queue_id: str, due_at: float) -> None:
    """Have a queue that cannot be read now read at another time."""
    tx.execute(update(_record).where(_record.c.id == queue_id, _record.c.kind == QUEUE).values(updated_at=due_at))


def read_soon(tx: Connection, links: Sequence[str]) -> None:
    """Have the queues whose signals are for these records read at once."""
    tx.execute(update(_record).where(_record.c.kind == QUEUE, _record.c.link.in_(links)).values(updated_at=None))


def save_project(tx: Connection, project: Record, root_id: str, now: float) -> None:
    """Record that a project was created in the identity service, for the users of a root stack.

    The row of the stack is locked before those of records, as when the stack ends.
    """
    project.project = str(project.object["id"])
    tx.execute(update(_stack).where(_stack.c.id == root_id).values(user_project=project.project))
    records.save(tx, project, now)
    tx.execute(update(_record).where(_record.c.id == project.id).values(project=project.project))


def set_project(tx: Connection, stack_id: str, project: str) -> None:
    """Record that a nested stack has users in this project, too."""
    conditions = (_stack.c.id == stack_id, _stack.c.user_project.is_(None))
    tx.execute(update(_stack).where(*conditions).values(user_project=project))


def stack_of(tx: Connection, stack_id: str) -> Any:
    """Return id, root_id and name of a stack."""
    return tx.execute(select(_stack.c.id, _stack.c.root_id, _stack.c.name).where(_stack.c.id == stack_id)).one()
