"""Users that the identity service has for resources, and their projects: records, from the intent to make them until
they are deleted again. Whose resource is gone has departed, in the same transaction."""

from typing import Any

from sqlalchemy import Connection, and_, exists, select, update

from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record

STACK_USER, DEPARTED_USER = "stack_user", "departed_user"
"""token — of its resource; link — its id there, "" until it is known; project — its own one."""
USER_PROJECT, DEPARTED_PROJECT = "stack_user_project", "departed_user_project"
"""token — the root stack; object — `id`, once it is known."""
_record = schema.record
_stack = schema.stack


def leave(tx: Connection, token: str) -> None:
    """The resource of that user is gone."""
    mine = (_record.c.kind == STACK_USER, _record.c.token == token)
    tx.execute(update(_record).where(*mine).values(kind=DEPARTED_USER))


def leave_stack(tx: Connection, stack_id: str) -> None:
    """A root stack is gone, with all that was in it."""
    there = records.of_tokens(tx, USER_PROJECT, [stack_id]).get(stack_id)
    if there is None:
        return
    tx.execute(update(_record).where(_record.c.id == there.id).values(kind=DEPARTED_PROJECT))
    if "id" in there.object:
        mine = (_record.c.kind == STACK_USER, _record.c.project == there.object["id"])
        tx.execute(update(_record).where(*mine).values(kind=DEPARTED_USER))


def departed(tx: Connection, kind: str, limit: int) -> list[Record]:
    """The oldest of this kind; projects only when their users have been deleted."""
    names = tuple(Record.__dataclass_fields__)
    user = _record.alias()
    same = and_(user.c.project == _record.c.project, user.c.kind.in_((STACK_USER, DEPARTED_USER)))
    chosen = select(*(_record.c[name] for name in names)).where(_record.c.kind == kind)
    if kind == DEPARTED_PROJECT:
        chosen = chosen.where(~exists(select(user.c.id).where(same)))
    rows = tx.execute(chosen.order_by(_record.c.created_at, _record.c.id).limit(limit))
    return [Record(**row._mapping) for row in rows]


def keep_project(tx: Connection, project: Record, root_id: str, now: float) -> None:
    """It is known now: it is the project of the root stack's users. The stack comes before records, as at its end."""
    project.project = str(project.object["id"])
    tx.execute(update(_stack).where(_stack.c.id == root_id).values(user_project=project.project))
    records.keep(tx, project, now)
    tx.execute(update(_record).where(_record.c.id == project.id).values(project=project.project))


def belongs(tx: Connection, stack_id: str, project: str) -> None:
    """Users of that project are of resources of this stack, too."""
    mine = (_stack.c.id == stack_id, _stack.c.user_project.is_(None))
    tx.execute(update(_stack).where(*mine).values(user_project=project))


def stack_of(tx: Connection, stack_id: str) -> Any:
    """id, root_id, name."""
    return tx.execute(select(_stack.c.id, _stack.c.root_id, _stack.c.name).where(_stack.c.id == stack_id)).one()
