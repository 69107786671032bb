"""Going on with a deletion under other deletion policies (ADR 0048)."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, update

from homeostat.model.status import Action
from homeostat.store import schema, stacks
from homeostat.store.database import Database


def go_on(
    db: Database,
    tx: Connection,
    stack: Row[Any],
    desired: stacks.Desired,
    policies: Mapping[str, str],
    now: float,
    timeout_s: float,
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Go on deleting a stack, or try again, with other deletion policies. Gives the new revision.

    Takes: desired — what the stack is shown to be; policies — name of a resource -> its new one; stack, changes — see
    `stacks.revise`.
    """
    number = int(stack.revision) + 1
    stacks.store_revision(db, tx, stack.id, number, desired, now)
    tx.execute(update(schema.stack).where(schema.stack.c.id == stack.id).values(revision=number))
    shown = stacks.for_update(db, tx, stack.id)
    assert shown is not None
    number = stacks.revise(db, tx, shown, Action.DELETE, stacks.EMPTY, now, timeout_s, changes)
    table = schema.resource
    for policy in sorted(set(policies.values())):
        names = [name for name, each in policies.items() if each == policy]
        for start in range(0, len(names), stacks.ASKED_MAX):
            mine = (table.c.stack_id == stack.id, table.c.name.in_(names[start : start + stacks.ASKED_MAX]))
            given = {"deletion_policy": policy, "due_at": None, "version": table.c.version + 1}
            tx.execute(update(table).where(*mine).values(**given))
    return number
