"""Things of types with handlers, as records: one row of table `record` each, found by handle or token.

Here `link` is the physical id, where it is the handle by which the service knows the thing; "" where `id` is.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from homeostat.store import schema
from homeostat.store.database import Database, held_back

_record = schema.record
_signal = schema.signal


def by_handle(tx: Connection, kind: str, project: str, handles: Sequence[str]) -> dict[str, Row[Any]]:
    """Handle -> record, of those that exist."""
    wanted = set(handles) - {""}
    chosen = or_(_record.c.id.in_(wanted), _record.c.link.in_(wanted))
    found: dict[str, Row[Any]] = {}
    for row in tx.execute(select(_record).where(_record.c.kind == kind, _record.c.project == project, chosen)):
        found |= {handle: row for handle in (row.id, row.link) if handle in wanted}
    return found


def by_token(tx: Connection, kind: str, tokens: Sequence[str]) -> dict[str, Row[Any]]:
    """Token -> record, of those that exist."""
    rows = tx.execute(select(_record).where(_record.c.kind == kind, _record.c.token.in_(list(tokens))))
    return {row.token: row for row in rows}


def in_stack(tx: Connection, stack_id: str, kinds: Collection[str]) -> Sequence[Row[Any]]:
    """Records of these kinds that are the things of a stack's resources."""
    resource = schema.resource
    of_stack = select(resource.c.handle).where(resource.c.stack_id == stack_id, resource.c.handle != "")
    chosen = or_(_record.c.id.in_(of_stack), _record.c.link.in_(of_stack))
    return tx.execute(select(_record).where(_record.c.kind.in_(sorted(kinds)), chosen)).all()


def add(tx: Connection, id: str, kind: str, project: str, token: str, seen: Any, inner: Any, now: float) -> None:
    """seen — as `observe` gives it; inner — what nobody else is to see."""
    values = {"id": id, "kind": kind, "project": project, "token": token, "link": "", "object": seen, "secret": inner}
    tx.execute(insert(_record).values(**values, created_at=now))


def locked(db: Database, tx: Connection, id: str) -> Row[Any] | None:
    """The record, kept from other writers until the transaction ends."""
    return tx.execute(held_back(select(_record).where(_record.c.id == id))).one_or_none()


def save(tx: Connection, id: str, seen: Any, inner: Any, now: float) -> None:
    tx.execute(update(_record).where(_record.c.id == id).values(object=seen, secret=inner, updated_at=now))


def claim_handle(db: Database, tx: Connection, id: str, kind: str, handle: str) -> bool:
    """Let the thing be known by this handle. False when another one of its kind has it."""
    db.one_by_one(tx, f"{kind} {handle}")
    taken = select(_record.c.id).where(
        _record.c.kind == kind, or_(_record.c.link == handle, _record.c.id == handle), _record.c.id != id
    )
    if tx.execute(taken.limit(1)).first() is not None:
        return False
    tx.execute(update(_record).where(_record.c.id == id).values(link=handle))
    return True


def remove(tx: Connection, id: str) -> None:
    tx.execute(delete(_record).where(_record.c.id == id))


def signals(tx: Connection, ids: Collection[str]) -> dict[str, list[Any]]:
    """Record -> signals that it has not taken yet, (seq, object, at), in the order they came."""
    found: dict[str, list[Any]] = defaultdict(list)
    columns = (_signal.c.record_id, _signal.c.seq, _signal.c.object, _signal.c.at)
    chosen = select(*columns).where(_signal.c.record_id.in_(sorted(ids)))
    for row in tx.execute(chosen.order_by(_signal.c.seq)) if ids else ():
        found[row.record_id].append(row)
    return found


def forget_signal(tx: Connection, seq: int, at: float) -> None:
    """One that was taken. at — when it came: SQLite gives its number to another one once it is gone, which may be
    before a worker that was slow to take it says so."""
    tx.execute(delete(_signal).where(_signal.c.seq == seq, _signal.c.at == at))
