"""The history of a stack's revisions, as users read it: each stays readable until it is purged."""

from typing import Any

from sqlalchemy import Connection, Row, select

from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.stacks import stacks
from homeostat.store.stacks.stacks import Desired

_revision = schema.revision


def page(tx: Connection, stack_id: str, limit: int, before: int | None = None) -> list[Row[Any]]:
    """Return revisions (number, action, kind, created_at), the newest first; only those older than `before`."""
    columns = (_revision.c.number, _revision.c.action, _revision.c.kind, _revision.c.created_at)
    chosen = select(*columns).where(_revision.c.stack_id == stack_id)
    if before is not None:
        chosen = chosen.where(_revision.c.number < before)
    return list(tx.execute(chosen.order_by(_revision.c.number.desc()).limit(limit)))


def get(tx: Connection, stack_id: str, number: int) -> Row[Any]:
    """Return one revision, as in `page`.

    Raises:
        Rejected: EntityNotFound.
    """
    found = page(tx, stack_id, 1, number + 1)
    if not found or found[0].number != number:
        raise not_found(stack_id, number)
    return found[0]


def desired(tx: Connection, stack_id: str, number: int) -> Desired:
    """Return the content of one revision, to make it the desired state again.

    Raises:
        Rejected: There is no such revision, or it is empty.
    """
    if get(tx, stack_id, number).kind == "empty":
        raise Rejected(
            "HTTPBadRequest", f"revision {number} wants nothing to exist: to have that again, delete the stack"
        )
    return stacks.desired_of(tx, stack_id, number)


def not_found(stack_id: str, number: int) -> Rejected:
    return Rejected("EntityNotFound", f"The Revision ({number}) of stack {stack_id} could not be found.")
