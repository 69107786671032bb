"""Counts of the signals of handles, so that a signal has the same cost however many precede it (ADR 0086).

A tally names the newest signal counted. Each change or reading first looks for newer signals, so the tally is always
correct, whichever way signals came: a summary of rows, not an independent fact.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Select, delete, func, select, tuple_, update

from homeostat.resources import signals
from homeostat.resources.signals import REASONS_SHOWN, Tally
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Transaction, row_lock
from homeostat.store.schema.rows import SignalTallyRow
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared

_signal, _tally, _sender = schema.signal, schema.signal_tally, schema.signal_sender
READ_AT_ONCE = 20
"""Number of signals read at once, if many are not counted yet; each may have a megabyte."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A tally and the newest signal counted; `seq` is 0 if nothing is counted."""

    tally: Tally = field(default_factory=Tally)
    seq: int = 0


def size_of(signal: Mapping[str, Any]) -> int:
    """Return the stored size of a signal in bytes."""
    return schema.json_size(signal)


class _Signal(NamedTuple):
    seq: int
    object: Any
    at: float


def count(tx: Transaction, id: str) -> Tally:
    """Count the signals of a handle that are not counted yet, store and return the tally.

    The caller has locked the handle, or has just created it.
    """
    row = typed.rows(SignalTallyRow, _locked(tx, id)).first()
    known = counted = _counted(row)
    while True:
        rows = typed.rows(_Signal, _newer(tx, id, counted.seq)).all()
        if rows:
            counted = _add(tx, id, counted, rows)
        if len(rows) < READ_AT_ONCE:
            break
    if counted != known:
        values = _values(counted)
        if row is None:
            tx.execute(_tally.insert().values(record_id=id, **values))
        else:
            tx.execute(update(_tally).where(_tally.c.record_id == id).values(**values))
    return counted.tally


def condition_views(tx: Transaction, conditions: Collection[tuple[str, int]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the view that wait conditions show of the signals of their handles (`resources.signals.heard`).

    Args:
        conditions: The handle of each condition, and the number of ids to wait for.
    """
    ids = sorted({id for id, _ in conditions})
    if not ids:
        return {}
    tallies = tx.execute(select(_tally).where(_tally.c.record_id.in_(ids)))
    counted = {row.record_id: _counted(row) for row in typed.rows(SignalTallyRow, tallies)}
    newest = {row[0]: int(row[1]) for row in tx.execute(_newest(ids))}
    # Signals stored by a process of an older version are counted at the next signal of the handle; until then read.
    stale = [id for id in ids if newest.get(id, 0) != counted.get(id, Counted()).seq]
    read = {id: _as_stored(stored) for id, stored in records.signals_of(tx, stale).items()}
    reached = {(row.record_id, row.number): row.at for row in tx.execute(_nth(sorted(conditions)))}
    reasons: dict[str, list[str]] = {}
    for row in tx.execute(_reasons(ids)):
        reasons.setdefault(row.record_id, []).append(row.reason)
    return {
        (id, wanted): signals.tallied(read[id], wanted)
        if id in read
        else signals.heard(counted.get(id, Counted()).tally, wanted, reached.get((id, wanted)), reasons.get(id, []))
        for id, wanted in conditions
    }


def delete_signals(tx: Transaction, id: str) -> None:
    """Delete all signals of a handle, and their counts."""
    # The tally first: a concurrent transaction that counts a signal has locked it.
    for table in (_tally, _sender, _signal):
        tx.execute(delete(table).where(table.c.record_id == id))


def _add(tx: Transaction, id: str, counted: Counted, rows: Sequence[_Signal]) -> Counted:
    """Count these signals, and store their new ids."""
    digests = {row.seq: hashlib.sha256(row.object["id"].encode(errors="replace")).hexdigest() for row in rows}
    condition = _sender.c.record_id == id
    known = set(
        tx.execute(select(_sender.c.digest).where(condition, _sender.c.digest.in_(set(digests.values())))).scalars()
    )
    tally, new = counted.tally, []
    for row in rows:
        digest = digests[row.seq]
        is_new = digest not in known
        known.add(digest)
        tally = tally.with_signal(row.object, row.at, size_of(row.object), is_new=is_new)
        if is_new:
            reason = signals.shortened(row.object.get("reason")) if tally.senders <= REASONS_SHOWN else ""
            new.append({"record_id": id, "digest": digest, "number": tally.senders, "at": row.at, "reason": reason})
    if new:
        tx.execute(_sender.insert(), new)
    return Counted(tally, rows[-1].seq)


def _counted(row: SignalTallyRow | None) -> Counted:
    if row is None:
        return Counted()
    failed = (row.failed_at, row.failed_after or 0, row.failure)
    return Counted(Tally(row.signals, row.senders, row.size, *failed), row.seq)


def _values(counted: Counted) -> dict[str, Any]:
    tally = counted.tally
    failed = {"failed_at": tally.failed_at, "failed_after": tally.failed_after, "failure": tally.failure}
    return {"seq": counted.seq, "signals": tally.signals, "size": tally.size, "senders": tally.senders, **failed}


def _as_stored(stored: Sequence[records.Signal]) -> list[dict[str, Any]]:
    return [{**signal.object, "at": signal.at} for signal in stored]


@prepared
def _locked(id: str) -> Select[Any]:
    return row_lock(select(_tally).where(_tally.c.record_id == id))


@prepared
def _newer(id: str, seq: int) -> Select[Any]:
    chosen = select(_signal.c.seq, _signal.c.object, _signal.c.at).where(_signal.c.record_id == id)
    return chosen.where(_signal.c.seq > seq).order_by(_signal.c.seq).limit(READ_AT_ONCE)


def _newest(ids: Sequence[str]) -> Select[Any]:
    newest = select(_signal.c.record_id, func.max(_signal.c.seq)).where(_signal.c.record_id.in_(ids))
    return newest.group_by(_signal.c.record_id)


def _nth(conditions: Sequence[tuple[str, int]]) -> Select[Any]:
    which = tuple_(_sender.c.record_id, _sender.c.number).in_(conditions)
    return select(_sender.c.record_id, _sender.c.number, _sender.c.at).where(which)


def _reasons(ids: Sequence[str]) -> Select[Any]:
    first = (_sender.c.record_id.in_(ids), _sender.c.number <= REASONS_SHOWN)
    return select(_sender.c.record_id, _sender.c.reason).where(*first).order_by(_sender.c.record_id, _sender.c.number)
