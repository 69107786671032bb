"""Things stored by the service itself (software configs, deployments, wait conditions), and their signals (ADR 0029).

A transaction that changes an existing record locks it first.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, Select, delete, func, select, tuple_, update

from homeostat.model.plan import Event
from homeostat.store import schema
from homeostat.store.database import Transaction, row_lock
from homeostat.store.sql import sizes
from homeostat.store.sql.prepared import prepared

_record = schema.record
_signal = schema.signal
_resource = schema.resource
_stack = schema.stack


@dataclass(slots=True)
class Record:
    """A thing; for the fields see the columns of `schema.record`. Times are seconds since the epoch."""

    id: str
    kind: str
    project: str
    token: str
    object: dict[str, Any]
    link: str = ""
    secret: dict[str, Any] | None = None
    created_at: float = 0.0
    updated_at: float | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that a record has received, in normal form."""

    object: dict[str, Any] = field(default_factory=dict)
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Owner:
    """The resource that a thing belongs to, and its stack.

    Attributes:
        token: The token of the resource's present thing; "" if none is being created.
        handle: "" until the creation of the thing is recorded.
        template_type: The type in the template, if an environment maps it to `type`; None otherwise.
    """

    key: str
    name: str
    type: str
    token: str
    handle: str
    action: str
    status: str
    reason: str
    metadata: Any
    shard: int
    stack_id: str
    stack_name: str
    project: str
    lock: Any = None
    suspended: bool = False
    template_type: str | None = None
    parent_key: str | None = None

    def event(self, action: str, reason: str) -> Event:
        """Return an event of the resource that leaves its status unchanged."""
        return Event(self.name, action, self.status, reason, self.template_type or self.type, self.key, self.handle)


FIELDS = tuple(_record.c[name] for name in Record.__dataclass_fields__)
"""The columns of a record."""


def key_of(token: str) -> str:
    """Return the key of the row of a token (see `planner.names`); "" if there is no row."""
    return token.rpartition("-")[0] if token.count("-") == 1 else ""


def add(tx: Transaction, new: Sequence[Record]) -> None:
    """Store new records; a known kind and token is left out, so that creating is idempotent."""
    if new:
        rows = [
            {name: getattr(record, name) for name in Record.__dataclass_fields__} | _object(tx, record.object)
            for record in new
        ]
        tx.execute(tx.insert(_record).on_conflict_do_nothing(index_elements=["kind", "token"]), rows)


def get(tx: Transaction, id: str, kind: str = "", project: str = "") -> Record | None:
    """Return the record of this id, if its kind and project match; "" allows any."""
    row = _by_id(tx, id).first()
    record = of_row(row) if row is not None else None
    fits = record is not None and (not kind or record.kind == kind) and (not project or record.project == project)
    return record if fits else None


@prepared
def _by_id(id: str) -> Select[Any]:
    return select(*FIELDS).where(_record.c.id == id)


def for_update(tx: Transaction, id: str) -> Record | None:
    """Return the record, locked until the transaction ends; None if absent."""
    row = tx.execute(row_lock(select(*FIELDS).where(_record.c.id == id))).first()
    return of_row(row) if row is not None else None


def of_ids(tx: Transaction, kind: str, ids: Collection[str]) -> dict[str, Record]:
    return {record.id: record for record in _some(tx, kind, _record.c.id, ids)}


def of_tokens(tx: Transaction, kind: str, tokens: Collection[str]) -> dict[str, Record]:
    return {record.token: record for record in _some(tx, kind, _record.c.token, tokens)}


def linked(tx: Transaction, links: Collection[str], *kinds: str) -> list[Record]:
    """Return the records that belong to these things, the oldest first."""
    return [of_row(row) for row in _linked(tx, sorted(links), kinds)]


@prepared
def _linked(links: Sequence[str], kinds: Sequence[str]) -> Select[Any]:
    chosen = select(*FIELDS).where(_record.c.link.in_(links), _record.c.kind.in_(kinds))
    return chosen.order_by(_record.c.created_at, _record.c.id)


def _some(tx: Transaction, kind: str, column: Any, values: Collection[str]) -> list[Record]:
    if not values:
        return []
    return [
        of_row(row) for row in tx.execute(select(*FIELDS).where(_record.c.kind == kind, column.in_(sorted(values))))
    ]


def of_row(row: Row[Any]) -> Record:
    """Return the record of a row with the columns `FIELDS`, and possibly more."""
    return Record(*(getattr(row, name) for name in Record.__dataclass_fields__))


def listed(
    tx: Transaction,
    kind: str,
    project: str | None,
    *,
    link: str | None = None,
    after: str = "",
    limit: int | None = None,
) -> list[Record]:
    """Return the records of a kind, the oldest first.

    Args:
        link: Only records with this link; None for all.
        after: The id of the record after which the page begins; an unknown id is ignored.
    """
    chosen = select(*FIELDS).where(_record.c.kind == kind)
    if project is not None:
        chosen = chosen.where(_record.c.project == project)
    if link is not None:
        chosen = chosen.where(_record.c.link == link)
    last = get(tx, after, kind, project or "") if after else None
    if last is not None:
        chosen = chosen.where(tuple_(_record.c.created_at, _record.c.id) > tuple_(last.created_at, last.id))
    return [of_row(row) for row in tx.execute(chosen.order_by(_record.c.created_at, _record.c.id).limit(limit))]


def count(tx: Transaction, kind: str, project: str) -> int:
    chosen = select(func.count()).where(_record.c.kind == kind, _record.c.project == project)
    return int(tx.execute(chosen).scalar_one())


def total_size(tx: Transaction, kind: str, project: str) -> int:
    """Return the approximate size of the records of a kind, in bytes."""
    return sizes.stored(tx, _record.c.size, (_record.c.object,), _record.c.kind == kind, _record.c.project == project)


def save(tx: Transaction, changed: Record, now: float) -> None:
    """Store the object, link and secret of a record, which the caller has locked."""
    changed.updated_at = now
    values = {name: getattr(changed, name) for name in ("link", "secret", "updated_at")}
    tx.execute(update(_record).where(_record.c.id == changed.id).values(**values, **_object(tx, changed.object)))


def _object(tx: Transaction, object: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell of an object, encoded once, and its size."""
    cell = schema.cell_of(tx.dialect, _record.c.object, object)
    return {"object": cell, "size": len(cell)}


def hand_over(tx: Transaction, id: str, token: str) -> None:
    """Give a record, which the caller has locked, to the resource with this token."""
    tx.execute(update(_record).where(_record.c.id == id).values(token=token))


def remove(tx: Transaction, ids: Collection[str]) -> None:
    """Delete records, with their signals."""
    if ids:
        tx.execute(delete(_record).where(_record.c.id.in_(sorted(ids))))


# -- signals -----------------------------------------------------------------------------------------------------------


def add_signal(tx: Transaction, id: str, signal: Signal) -> None:
    add_signals(tx, id, [signal])


def add_signals(tx: Transaction, id: str, signals: Sequence[Signal]) -> None:
    """Add signals of a record, in order of arrival."""
    if signals:
        rows = [{"record_id": id, "object": signal.object, "at": signal.at} for signal in signals]
        tx.execute(_signal.insert(), rows)


def signals_of(tx: Transaction, ids: Collection[str]) -> dict[str, list[Signal]]:
    """Return the signals of these records, in order of arrival, by record."""
    signals: dict[str, list[Signal]] = defaultdict(list)
    if ids:
        chosen = select(_signal.c.record_id, _signal.c.object, _signal.c.at)
        for row in tx.execute(chosen.where(_signal.c.record_id.in_(sorted(ids))).order_by(_signal.c.seq)):
            signals[row.record_id].append(Signal(row.object, row.at))
    return signals


def newest_signal(tx: Transaction, id: str) -> list[Signal]:
    """Return the newest signal of a record; an empty list if there is none."""
    chosen = select(_signal.c.object, _signal.c.at).where(_signal.c.record_id == id)
    return [Signal(row.object, row.at) for row in tx.execute(chosen.order_by(_signal.c.seq.desc()).limit(1))]


# -- owners ------------------------------------------------------------------------------------------------------------


def owners(tx: Transaction, keys: Collection[str]) -> dict[str, Owner]:
    """Return the resources with these row keys, by key."""
    return {owner.key: owner for owner in _owners(tx, _resource.c.key, keys)}


def owners_of(tx: Transaction, handles: Collection[str]) -> list[Owner]:
    """Return the resources whose things have these handles."""
    return _owners(tx, _resource.c.handle, handles)


def owners_in(tx: Transaction, stack_id: str, type_name: str) -> list[Owner]:
    """Return the resources of this type in a stack."""
    chosen = _owner_columns().where(_resource.c.stack_id == stack_id, _resource.c.type == type_name)
    return [Owner(*row) for row in tx.execute(chosen)]


def _owners(tx: Transaction, column: Any, values: Collection[str]) -> list[Owner]:
    wanted = sorted(value for value in values if value)
    if not wanted:
        return []
    return [Owner(*row) for row in tx.execute(_owner_columns().where(column.in_(wanted)))]


def _owner_columns() -> Select[Any]:
    names = ("key", "name", "type", "token", "handle", "action", "status", "reason", "metadata", "shard")
    columns = (_resource.c[name] for name in names)
    of_stack = (_stack.c.id, _stack.c.name, _stack.c.project, _stack.c.lock, _stack.c.suspended)
    return select(*columns, *of_stack, _resource.c.template_type, _stack.c.parent_key).join(
        _stack, _stack.c.id == _resource.c.stack_id
    )
