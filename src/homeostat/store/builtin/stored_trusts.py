"""Trusts, for acting on behalf of users: a row for each, from the intent until the deletion (ADR 0034)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlalchemy import delete, insert, select, update

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import TrustRow
from homeostat.store.sql import typed

REQUESTED, GOOD, GONE, LEAVING = "asked", "good", "gone", "leaving"
REQUEST_S = 120.0
"""Time after which a process that requests a trust has stored the answer, or has died."""
_table = schema.trust


@dataclass(slots=True)
class StoredTrust:
    """A trust; for the fields see the columns of `schema.trust`. Times are seconds since the epoch."""

    id: str
    stack_id: str
    project: str
    user_id: str
    state: str
    trust_id: str = ""
    object: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    due_at: float | None = None


def add(tx: Transaction, trust: StoredTrust) -> None:
    tx.execute(insert(_table), {name: getattr(trust, name) for name in StoredTrust.__dataclass_fields__})


def current(tx: Transaction, stack_id: str) -> StoredTrust | None:
    """Return the trust that a root stack uses, which may be `gone`; None if absent."""
    chosen = select(_table).where(_table.c.stack_id == stack_id, _table.c.state.in_((GOOD, GONE)))
    row = typed.rows(TrustRow, tx.execute(chosen.order_by(_table.c.created_at.desc()).limit(1))).first()
    return _of(row) if row is not None else None


def of_project(tx: Transaction, project: str, limit: int) -> list[StoredTrust]:
    """Return the good trusts of a project, the newest first."""
    chosen = select(_table).where(_table.c.project == project, _table.c.state == GOOD)
    rows = tx.execute(chosen.order_by(_table.c.created_at.desc()).limit(limit))
    return [_of(row) for row in typed.rows(TrustRow, rows)]


def some_project(tx: Transaction) -> str:
    """Return any project with a good trust; "" if there is none."""
    good = select(_table.c.project).where(_table.c.state == GOOD).limit(1)
    return str(tx.execute(good).scalar() or "")


class GoneTrust(NamedTuple):
    """A trust; `stack` is the name of its stack."""

    stack_id: str
    object: Any
    stack: str


def gone(tx: Transaction, limit: int) -> list[GoneTrust]:
    """Return the trusts that Keystone no longer honours."""
    stack = schema.stack
    chosen = select(_table.c.stack_id, _table.c.object, stack.c.name.label("stack"))
    chosen = chosen.join(stack, stack.c.id == _table.c.stack_id)
    chosen = chosen.where(_table.c.state == GONE).order_by(_table.c.created_at).limit(limit)
    return list(typed.rows(GoneTrust, tx.execute(chosen)))


def accept(tx: Transaction, trust: StoredTrust, trust_id: str) -> None:
    """Let a stack use this trust from now on, and release its previous trusts."""
    tx.execute(update(_table).where(_table.c.id == trust.id).values(state=GOOD, trust_id=trust_id, due_at=None))
    release(tx, trust.stack_id, but=trust.id)


def share(tx: Transaction, trust: StoredTrust, stack_id: str, row_id: str, now: float) -> None:
    """Let another root stack use a trust, too: Keystone keeps the trust until no stack uses it.

    Args:
        stack_id: The other stack; its previous trusts are released.
    """
    conditions = (_table.c.stack_id == stack_id, _table.c.state == GOOD, _table.c.trust_id == trust.trust_id)
    if tx.execute(select(_table.c.id).where(*conditions).limit(1)).first() is not None:
        return
    add(tx, replace(trust, id=row_id, stack_id=stack_id, created_at=now, due_at=None))
    release(tx, stack_id, but=row_id)


def release(tx: Transaction, stack_id: str, but: str = "") -> None:
    """Release the trusts of a stack, except the one with the id `but`.

    Trusts in state `asked` (`REQUESTED`) are left to the process that requests them.
    """
    conditions = (_table.c.stack_id == stack_id, _table.c.state.in_((GOOD, GONE)), _table.c.id != but)
    tx.execute(update(_table).where(*conditions).values(state=LEAVING, due_at=0.0))


def discard(tx: Transaction, id: str) -> None:
    """Release a trust that was requested and is not needed."""
    tx.execute(update(_table).where(_table.c.id == id).values(state=LEAVING, due_at=0.0))


def mark_gone(tx: Transaction, lost: StoredTrust, reason: str) -> None:
    """Record that Keystone no longer honours a trust."""
    # Unless it was released meanwhile: then it must still be deleted.
    conditions = (_table.c.id == lost.id, _table.c.state == GOOD)
    tx.execute(update(_table).where(*conditions).values(state=GONE, object={**lost.object, "reason": reason}))


def any_due(tx: Transaction, now: float) -> bool:
    due = (_table.c.state.in_((REQUESTED, LEAVING)), _table.c.due_at <= now)
    return tx.execute(select(_table.c.id).where(*due).limit(1)).first() is not None


def take_due(tx: Transaction, now: float, again_s: float, limit: int) -> list[StoredTrust]:
    """Return the trusts to delete now, and schedule the next attempt.

    A trust that is due in state `asked` (`REQUESTED`) belongs to a request whose process has died.
    """
    due = (_table.c.state.in_((REQUESTED, LEAVING)), _table.c.due_at <= now)
    rows = tx.execute(select(_table).where(*due).order_by(_table.c.due_at).limit(limit))
    trusts = [_of(row) for row in typed.rows(TrustRow, rows)]
    postpone(tx, [trust.id for trust in trusts], now + again_s)
    return trusts


def postpone(tx: Transaction, ids: Sequence[str], until: float) -> None:
    if ids:
        tx.execute(update(_table).where(_table.c.id.in_(ids)).values(due_at=until))


def is_good(tx: Transaction, trust_id: str) -> bool:
    """Return whether a stack uses this trust."""
    good = (_table.c.trust_id == trust_id, _table.c.state == GOOD)
    return tx.execute(select(_table.c.id).where(*good).limit(1)).first() is not None


def known(tx: Transaction, trust_ids: Sequence[str], but: str) -> set[str]:
    """Return the trusts that have a row, not counting the row with the id `but`."""
    chosen = select(_table.c.trust_id).where(_table.c.trust_id.in_(trust_ids), _table.c.id != but)
    return set(tx.execute(chosen).scalars())


def remove(tx: Transaction, id: str) -> None:
    tx.execute(delete(_table).where(_table.c.id == id))


def _of(row: TrustRow) -> StoredTrust:
    return StoredTrust(**{name: getattr(row, name) for name in StoredTrust.__dataclass_fields__})
