"""Things of types with handlers: a row of table `record` each, found by handle or token (ADR 0021).

Here `link` is the thing's physical id if this is its handle in Homeostat; "" if `id` is the handle.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Text, delete, func, insert, or_, select, type_coerce, update
from sqlalchemy.exc import IntegrityError

from homeostat.store import schema
from homeostat.store.database import Transaction, row_lock
from homeostat.store.schema.rows import RecordRow
from homeostat.store.sql import typed

_record = schema.record
_signal = schema.signal


def by_handle(tx: Transaction, kind: str, project: str, handles: Sequence[str]) -> dict[str, RecordRow]:
    """Return the records of existing things, by handle."""
    wanted = set(handles) - {""}
    chosen = or_(_record.c.id.in_(wanted), _record.c.link.in_(wanted))
    records: dict[str, RecordRow] = {}
    conditions = (_record.c.kind == kind, _record.c.project == project)
    for row in typed.rows(RecordRow, tx.execute(select(_record).where(*conditions, chosen))):
        records |= {handle: row for handle in (row.id, row.link) if handle in wanted}
    return records


def by_token(tx: Transaction, kind: str, tokens: Sequence[str]) -> dict[str, RecordRow]:
    """Return the records of existing things, by token."""
    rows = tx.execute(select(_record).where(_record.c.kind == kind, _record.c.token.in_(list(tokens))))
    return {row.token: row for row in typed.rows(RecordRow, rows)}


def in_stack(tx: Transaction, stack_id: str, kinds: Collection[str]) -> Sequence[RecordRow]:
    """Return the records of these kinds that belong to a stack's resources."""
    resource = schema.resource
    of_stack = select(resource.c.handle).where(resource.c.stack_id == stack_id, resource.c.handle != "")
    chosen = or_(_record.c.id.in_(of_stack), _record.c.link.in_(of_stack))
    rows = tx.execute(select(_record).where(_record.c.kind.in_(sorted(kinds)), chosen))
    return typed.rows(RecordRow, rows).all()


def add(tx: Transaction, id: str, kind: str, project: str, token: str, seen: Any, inner: Any, now: float) -> bool:
    """Store a new record; return False if its token exists already.

    Args:
        inner: Data that no response shows.
    """
    values = {"id": id, "kind": kind, "project": project, "token": token, "link": "", "object": seen, "secret": inner}
    try:
        # A savepoint: after an error PostgreSQL refuses every other statement of the transaction.
        with tx.begin_nested():
            tx.execute(insert(_record).values(**values, created_at=now))
    except IntegrityError:
        return False
    return True


def locked(tx: Transaction, id: str) -> RecordRow | None:
    """Return the record, locked until the transaction ends; None if absent."""
    return typed.rows(RecordRow, tx.execute(row_lock(select(_record).where(_record.c.id == id)))).one_or_none()


def save(tx: Transaction, id: str, seen: Any, inner: Any, now: float) -> None:
    tx.execute(update(_record).where(_record.c.id == id).values(object=seen, secret=inner, updated_at=now))


def claim_handle(tx: Transaction, id: str, kind: str, handle: str) -> bool:
    """Set the handle of a thing; return False if another thing of its kind has this handle."""
    # Two things may claim the same handle concurrently. There is no row with the handle to lock, and no index can
    # decide, since a handle is in either of two columns.
    tx.advisory_lock(f"{kind} {handle}")
    taken = select(_record.c.id).where(
        _record.c.kind == kind, or_(_record.c.link == handle, _record.c.id == handle), _record.c.id != id
    )
    if tx.execute(taken.limit(1)).first() is not None:
        return False
    tx.execute(update(_record).where(_record.c.id == id).values(link=handle))
    return True


def remove(tx: Transaction, id: str) -> None:
    tx.execute(delete(_record).where(_record.c.id == id))


def signals(tx: Transaction, ids: Collection[str]) -> dict[str, list[Any]]:
    """Return the signals that records have not taken yet, as (seq, object, at) in order of arrival, by record."""
    pending: dict[str, list[Any]] = defaultdict(list)
    columns = (_signal.c.record_id, _signal.c.seq, _signal.c.object, _signal.c.at)
    chosen = select(*columns).where(_signal.c.record_id.in_(sorted(ids)))
    for row in tx.execute(chosen.order_by(_signal.c.seq)) if ids else ():
        pending[row.record_id].append(row)
    return pending


def waiting(tx: Transaction, id: str) -> tuple[int, int]:
    """Return the number of signals that a record has not taken yet, and their approximate size in bytes."""
    chosen = select(func.count(), func.sum(func.length(type_coerce(_signal.c.object, Text))))
    count, size = tx.execute(chosen.where(_signal.c.record_id == id)).one()
    return int(count), int(size or 0)


def forget_signal(tx: Transaction, seq: int, at: float) -> None:
    """Delete a signal that was taken.

    Args:
        at: The time of arrival. SQLite reuses the numbers of deleted signals, so a worker reporting late could
            otherwise delete a newer signal.
    """
    tx.execute(delete(_signal).where(_signal.c.seq == seq, _signal.c.at == at))
