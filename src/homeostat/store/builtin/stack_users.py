"""Users of resources in the identity service, their projects, and the queues in which they signal.

Each is a record, from the intent of its creation until its deletion. The transaction that deletes the resource of a
user marks the user as departed, so that the user is deleted in the identity service despite any crash.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, case, exists, func, or_, select, update

from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record
from homeostat.store.database import Transaction, row_lock

STACK_USER, DEPARTED_USER = "stack_user", "departed_user"
"""Kinds of records of users.

token is the resource's token; link is the user's id in the identity service, "" while unknown; project is the user's
project.
"""
USER_PROJECT, DEPARTED_PROJECT = "stack_user_project", "departed_user_project"
"""Kinds of records of projects: token is the id of the root stack; object has the project's `id` once known."""
QUEUE, DEPARTED_QUEUE = "signal_queue", "departed_queue"
"""Kinds of records of queues.

id is the name of the queue; token and project are the user's; link is the record that receives the signals; updated_at
is the time of the next read, None for at once.
"""
KEYS_MAX = 100
"""Rows per statement."""
PATIENCE_S = 600.0
"""Time from the intent to create a user until no worker can still be about to create it."""
_record = schema.record
_resource = schema.resource
_stack = schema.stack
_DEPARTED = {STACK_USER: DEPARTED_USER, QUEUE: DEPARTED_QUEUE}


def mark_departed(tx: Transaction, *tokens: str) -> None:
    """Mark the users of resources, and the users' queues, as departed, since the resources are deleted."""
    _depart(tx, _record.c.token.in_(tokens))


def mark_rows_departed(tx: Transaction, stack_id: str, keys: Sequence[str]) -> None:
    """Mark the users of rows that are removed without ever having had a thing, whatever their tokens were."""
    project = tx.execute(select(_stack.c.user_project).where(_stack.c.id == stack_id)).scalar()
    for start in range(0, len(keys) if project else 0, KEYS_MAX):
        tokens = (_record.c.token.startswith(f"{key}-", autoescape=True) for key in keys[start : start + KEYS_MAX])
        _depart(tx, and_(_record.c.project == project, or_(*tokens)))


def _depart(tx: Transaction, whose: Any) -> None:
    kind = case(_DEPARTED, value=_record.c.kind)
    tx.execute(update(_record).where(_record.c.kind.in_(_DEPARTED), whose).values(kind=kind))


def lock_owner(tx: Transaction, token: str) -> bool:
    """Lock the row of a resource; return whether it is there: nothing else may get a user."""
    row = row_lock(select(_resource.c.key).where(_resource.c.key == records.key_of(token)))
    return tx.execute(row).first() is not None


def mark_stack_departed(tx: Transaction, stack_id: str) -> None:
    """Mark the project of a root stack and all its users as departed, since the stack is deleted."""
    project = records.of_tokens(tx, USER_PROJECT, [stack_id]).get(stack_id)
    if project is None:
        return
    tx.execute(update(_record).where(_record.c.id == project.id).values(kind=DEPARTED_PROJECT))
    if "id" in project.object:
        _depart(tx, _record.c.project == project.object["id"])


def departed(tx: Transaction, kind: str, limit: int) -> list[Record]:
    """Return the oldest departed records of a kind; projects only without users, and users only without queues.

    A frozen worker may still create a user of unknown id: its record stays for `PATIENCE_S`.
    """
    dependent = _record.alias()
    chosen = select(*records.FIELDS).where(_record.c.kind == kind)
    if kind == DEPARTED_PROJECT:
        users = and_(dependent.c.project == _record.c.project, dependent.c.kind.in_((STACK_USER, DEPARTED_USER)))
        chosen = chosen.where(~exists(select(dependent.c.id).where(users)))
    if kind == DEPARTED_USER:
        queues = and_(dependent.c.token == _record.c.token, dependent.c.kind.in_((QUEUE, DEPARTED_QUEUE)))
        is_settled = or_(_record.c.link != "", _record.c.created_at <= tx.now() - PATIENCE_S)
        chosen = chosen.where(~exists(select(dependent.c.id).where(queues)), is_settled)
    rows = tx.execute(chosen.order_by(_record.c.created_at, _record.c.id).limit(limit))
    return [records.of_row(row) for row in rows]


def due_queues(tx: Transaction, now: float, limit: int) -> list[Record]:
    """Return queues to read now: projects take turns, within a project the longest waiting queue comes first."""
    due_at, target = func.coalesce(_record.c.updated_at, 0.0), _record.alias()
    oldest = (due_at, _record.c.id)
    turn = func.row_number().over(partition_by=target.c.project, order_by=oldest).label("turn")
    joined = _record.outerjoin(target, target.c.id == _record.c.link)
    waiting = select(*records.FIELDS, turn).select_from(joined).where(_record.c.kind == QUEUE, due_at <= now).subquery()
    rows = tx.execute(select(waiting).order_by(waiting.c.turn, func.coalesce(waiting.c.updated_at, 0.0)).limit(limit))
    return [records.of_row(row) for row in rows]


def claim_queue(tx: Transaction, queue: Record, due_at: float) -> bool:
    """Schedule the next read of a queue; return whether no other worker has done so since it was found due."""
    same = _record.c.updated_at.is_(None) if queue.updated_at is None else _record.c.updated_at == queue.updated_at
    claimed = update(_record).where(_record.c.id == queue.id, _record.c.kind == QUEUE, same).values(updated_at=due_at)
    return bool(tx.execute(claimed).rowcount)


def postpone_queue(tx: Transaction, queue_id: str, due_at: float) -> None:
    """Postpone the read of a queue that cannot be read now."""
    tx.execute(update(_record).where(_record.c.id == queue_id, _record.c.kind == QUEUE).values(updated_at=due_at))


def read_soon(tx: Transaction, links: Sequence[str]) -> None:
    """Schedule an immediate read of the queues whose signals are for these records."""
    tx.execute(update(_record).where(_record.c.kind == QUEUE, _record.c.link.in_(links)).values(updated_at=None))


def save_project(tx: Transaction, project: Record, root_id: str, now: float) -> None:
    """Record that a project was created in the identity service, for the users of a root stack.

    The row of the stack is locked before the rows of records, like at the end of the stack.
    """
    project.project = str(project.object["id"])
    tx.execute(update(_stack).where(_stack.c.id == root_id).values(user_project=project.project))
    records.save(tx, project, now)
    tx.execute(update(_record).where(_record.c.id == project.id).values(project=project.project))


def set_project(tx: Transaction, stack_id: str, project: str) -> None:
    """Record that a nested stack has users in this project, too."""
    conditions = (_stack.c.id == stack_id, _stack.c.user_project.is_(None))
    tx.execute(update(_stack).where(*conditions).values(user_project=project))


def stack_of(tx: Transaction, stack_id: str) -> Any:
    """Return id, root_id and name of a stack."""
    return tx.execute(select(_stack.c.id, _stack.c.root_id, _stack.c.name).where(_stack.c.id == stack_id)).one()
