"""Going on with a deletion under other deletion policies (ADR 0048)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.stacks import stacks

POLICIES = "policies"
"""Intent of a revision that says how a stack is deleted."""


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

    What is nested in it asks for those of its template itself (see `newest_policies`), and is only woken. Takes:
    desired — what the stack is shown to be; policies — name of a resource -> its new one; stack, changes — see
    `stacks.revise`.
    """
    number = int(stack.revision) + 1
    stacks.store_revision(db, tx, stack.id, number, Action.DELETE, replace(desired, intent=POLICIES), now)
    tx.execute(update(schema.stack).where(schema.stack.c.id == stack.id).values(revision=number))
    shown = stacks.for_update(db, tx, stack.id)
    assert shown is not None
    _wake_nested(tx, stack, now)
    number = stacks.revise(db, tx, shown, Action.DELETE, stacks.EMPTY, now, timeout_s, changes)
    table = schema.resource
    for policy in sorted(set(policies.values())):
        names = [name for name, each in policies.items() if each == policy]
        for start in range(0, len(names), stacks.ASKED_MAX):
            mine = (table.c.stack_id == stack.id, table.c.name.in_(names[start : start + stacks.ASKED_MAX]))
            given = {"deletion_policy": policy, "due_at": None, "version": table.c.version + 1}
            tx.execute(update(table).where(*mine).values(**given))
    return number


def _wake_nested(tx: Connection, stack: Row[Any], now: float) -> None:
    """Wake what is being deleted below a stack: shards from below, as everybody does who takes several."""
    table = schema.stack
    going = (table.c.action == Action.DELETE, table.c.status == Status.IN_PROGRESS, table.c.deleted_at.is_(None))
    nested = (table.c.id.in_(stacks.below(stack.id)), table.c.id != stack.id, *going)
    deepest = tx.execute(select(func.max(table.c.depth)).where(*nested)).scalar_one()
    for depth in range(deepest or 0, int(stack.depth), -1):
        shards.wake_all(tx, select(table.c.id).where(*nested, table.c.depth == depth), now, shards.USER)


def newest_policies(tx: Connection, root_id: str, stack_id: str) -> int | None:
    """Number of the revision of a root stack that says how it is deleted, as far as that is the last word: nobody has
    said it of the nested stack itself since, and nobody has changed their mind."""
    table = schema.revision
    said = (table.c.kind != stacks.EMPTY.kind,)
    columns = select(table.c.number, table.c.intent, table.c.created_at)
    root = tx.execute(
        columns.where(table.c.stack_id == root_id, *said).order_by(table.c.number.desc()).limit(1)
    ).first()
    if root is None or root.intent != POLICIES:
        return None
    mine = tx.execute(
        columns.where(table.c.stack_id == stack_id, *said).order_by(table.c.number.desc()).limit(1)
    ).first()
    own = mine is not None and mine.intent == POLICIES and mine.created_at > root.created_at
    return None if own else int(root.number)


def file_of(tx: Connection, stack_id: str, number: int, name: str) -> str | None:
    """Text of one file of a revision."""
    table = schema.revision
    files = tx.execute(select(table.c.files).where(table.c.stack_id == stack_id, table.c.number == number)).scalar_one()
    if name not in files:
        return None
    return str(tx.execute(select(schema.file.c.content).where(schema.file.c.hash == files[name])).scalar_one())
