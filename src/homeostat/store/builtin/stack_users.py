"""Users of resources in the identity service, and their projects.

Each is a record, from the intent to create it until it is deleted. When the resource of a user is deleted, the same
transaction marks the user as departed, so that it is deleted in the identity service whatever crashes.
"""

from typing import Any

from sqlalchemy import Connection, and_, exists, select, update

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
_record = schema.record
_stack = schema.stack


def mark_departed(tx: Connection, token: str) -> None:
    """Mark the user of a resource as departed, since the resource is deleted."""
    mine = (_record.c.kind == STACK_USER, _record.c.token == token)
    tx.execute(update(_record).where(*mine).values(kind=DEPARTED_USER))


def mark_stack_departed(tx: Connection, stack_id: str) -> None:
    """Mark the project of a root stack and all its users as departed, since the stack is deleted."""
    there = records.of_tokens(tx, USER_PROJECT, [stack_id]).get(stack_id)
    if there is None:
        return
    tx.execute(update(_record).where(_record.c.id == there.id).values(kind=DEPARTED_PROJECT))
    if "id" in there.object:
        mine = (_record.c.kind == STACK_USER, _record.c.project == there.object["id"])
        tx.execute(update(_record).where(*mine).values(kind=DEPARTED_USER))


def departed(tx: Connection, kind: str, limit: int) -> list[Record]:
    """Return the oldest departed records of a kind; projects only once their users have been deleted."""
    names = tuple(Record.__dataclass_fields__)
    user = _record.alias()
    same = and_(user.c.project == _record.c.project, user.c.kind.in_((STACK_USER, DEPARTED_USER)))
    chosen = select(*(_record.c[name] for name in names)).where(_record.c.kind == kind)
    if kind == DEPARTED_PROJECT:
        chosen = chosen.where(~exists(select(user.c.id).where(same)))
    rows = tx.execute(chosen.order_by(_record.c.created_at, _record.c.id).limit(limit))
    return [Record(**row._mapping) for row in rows]


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
    mine = (_stack.c.id == stack_id, _stack.c.user_project.is_(None))
    tx.execute(update(_stack).where(*mine).values(user_project=project))


def stack_of(tx: Connection, stack_id: str) -> Any:
    """Return id, root_id and name of a stack."""
    return tx.execute(select(_stack.c.id, _stack.c.root_id, _stack.c.name).where(_stack.c.id == stack_id)).one()
