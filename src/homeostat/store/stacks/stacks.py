"""Stacks and their revisions, the desired state. Every function works inside the transaction of its caller."""

from typing import Any

from sqlalchemy import Select, and_, func, select

from homeostat.model.errors import stack_not_found
from homeostat.model.world import StackFacts
from homeostat.store import schema
from homeostat.store.database import Transaction, row_lock
from homeostat.store.schema.rows import StackRow
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared

STACKS_PER_QUERY = 500
"""Maximum number of stacks in one query."""


def tree_of(stack_id: str) -> Any:
    """Select the ids of a stack and of all live stacks nested in it."""
    table = schema.stack
    tree = select(table.c.id).where(table.c.id == stack_id).cte("tree", recursive=True, nesting=True)
    tree = tree.union_all(select(table.c.id).where(table.c.parent_id == tree.c.id, table.c.deleted_at.is_(None)))
    return select(tree.c.id)


def owned_tree_of(stack_id: str) -> Any:
    """Select the ids of a stack and of the live stacks nested in it.

    Excludes retained stacks, whose resource was deleted, and their descendants.
    """
    table, resource = schema.stack, schema.resource
    tree = select(table.c.id).where(table.c.id == stack_id).cte("tree", recursive=True, nesting=True)
    inside = select(table.c.id).join(resource, resource.c.key == table.c.parent_key)
    tree = tree.union_all(inside.where(table.c.parent_id == tree.c.id, table.c.deleted_at.is_(None)))
    return select(tree.c.id)


def timeout_of(timeout_mins: int | None, default_s: float) -> float:
    """Return the time limit of an action of a stack, in seconds."""
    return timeout_mins * 60.0 if timeout_mins else default_s


def for_update(tx: Transaction, stack_id: str) -> StackRow | None:
    """Return the stack's row, locked until the end of the transaction; None if absent.

    Stacks are locked before their shards (invariant 5, CONTRIBUTING.md).
    """
    return typed.rows(StackRow, _for_update(tx, stack_id)).first()


@prepared
def _for_update(stack_id: str) -> Select[Any]:
    return row_lock(select(schema.stack).where(schema.stack.c.id == stack_id))


def live(tx: Transaction, stack_id: str) -> StackRow:
    """Return the row of a stack that is not deleted, locked until the end of the transaction.

    Raises:
        Rejected: EntityNotFound.
    """
    row = for_update(tx, stack_id)
    if row is None or row.deleted_at is not None:
        raise stack_not_found(stack_id)
    return row


def get(tx: Transaction, stack_id: str) -> StackRow | None:
    return typed.rows(StackRow, _by_id(tx, stack_id)).first()


@prepared
def _by_id(stack_id: str) -> Select[Any]:
    return select(schema.stack).where(schema.stack.c.id == stack_id)


def timeout_mins_of(tx: Transaction, stack: StackRow) -> int | None:
    """Return the time limit of an action in minutes, as set for the root stack; None if not set."""
    if stack.parent_id is None:
        return stack.timeout_mins
    return tx.execute(select(schema.stack.c.timeout_mins).where(schema.stack.c.id == stack.root_id)).scalar()


def find(tx: Transaction, project: str, name_or_id: str, *, everywhere: bool = False) -> StackRow | None:
    """Find a stack by its id, even if deleted, or else the oldest live stack of that name.

    The stack belongs to the project, or has its stack users there: servers authenticate as stack users.

    Args:
        everywhere: Find stacks of all projects by id.
    """
    table = schema.stack
    by_id = get(tx, name_or_id)
    if by_id is not None and (everywhere or project in (by_id.project, by_id.user_project)):
        return by_id
    for owner_column in (table.c.project, table.c.user_project):
        live = and_(owner_column == project, table.c.name == name_or_id, table.c.deleted_at.is_(None))
        named = typed.rows(StackRow, tx.execute(select(table).where(live).order_by(table.c.created_at))).first()
        if named is not None:
            return named
    return None


def count_live(tx: Transaction, project: str) -> int:
    return int(_count_live(tx, project).scalar_one())


@prepared
def _count_live(project: str) -> Select[Any]:
    table = schema.stack
    live = (table.c.project == project, table.c.deleted_at.is_(None), table.c.parent_id.is_(None))
    return select(func.count()).select_from(table).where(*live)


def size_of_tree(tx: Transaction, root_id: str) -> int:
    """Return the desired number of resources of a root stack and all its live nested stacks."""
    table = schema.stack
    live = (table.c.root_id == root_id, table.c.deleted_at.is_(None))
    return int(tx.execute(select(func.sum(table.c.size)).where(*live)).scalar() or 0)


def facts(row: StackRow) -> StackFacts:
    return StackFacts(**{name: getattr(row, name) for name in StackFacts.__dataclass_fields__})
