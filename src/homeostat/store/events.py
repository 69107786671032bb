"""Events: appended in the transaction of the reported change of state, and read in pages."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter

from sqlalchemy import func, insert, select, tuple_

from homeostat.model.limits import EVENT_REASON_MAX
from homeostat.model.plan import Event
from homeostat.store import requesters, schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import EventRow
from homeostat.store.sql import typed

FIELDS = tuple(field.name for field in fields(Event))
"""The fields of an event; each has a column of the same name."""
COLUMNS = ("stack_id", *FIELDS, "at")
REQUESTED = (*COLUMNS, "requested_by", "request_id")
"""The columns of an event with a requester."""
_MARKED = "homeostat_marked"


def append(tx: Transaction, stack_id: str, happened: Iterable[Event], now: float) -> None:
    append_all(tx, ((stack_id, event) for event in happened), now)


def append_all(tx: Transaction, happened: Iterable[tuple[str, Event]], now: float) -> None:
    """Append events of several stacks, each with the id of its stack."""
    values_of = attrgetter(*FIELDS)
    rows = [(stack_id, *values_of(_shortened(event)), now) for stack_id, event in happened]
    if rows:
        _mark(tx)
    requester = requesters.current()
    if requester is requesters.NOBODY:
        tx.insert_late(schema.event, COLUMNS, rows)
        return
    more = (requester.name, requester.request_id)
    tx.insert_late(schema.event, REQUESTED, [(*row, *more) for row in rows])


def append_one(tx: Transaction, stack_id: str, event: Event, now: float) -> int:
    """Append an event and return its `seq`."""
    requester = requesters.current()
    more = (requester.name, requester.request_id)
    values = dict(zip(REQUESTED, (stack_id, *attrgetter(*FIELDS)(_shortened(event)), now, *more), strict=True))
    _mark(tx)
    tx.insert_now()
    (seq,) = tx.execute(insert(schema.event).values(values)).inserted_primary_key or (0,)
    return int(seq)


def _mark(tx: Transaction) -> None:
    """Mark this transaction before its first event, to let readers know the running writers.

    PostgreSQL reports running transactions itself, and SQLite has a single writer at a time; for MariaDB and MySQL see
    `sql.backends.mysql`.
    """
    if tx.dialect.name == "mysql" and tx.info.get(_MARKED) is not tx.get_transaction():
        tx.execute(insert(schema.transaction_mark), {})
        tx.info[_MARKED] = tx.get_transaction()


def _shortened(event: Event) -> Event:
    """Return the event with its reason shortened to the limit: reasons from clouds and servers may have any length."""
    if len(event.reason) <= EVENT_REASON_MAX:
        return event
    return replace(event, reason=f"{event.reason[: EVENT_REASON_MAX - 1]}…")


def page(
    tx: Transaction,
    stack_ids: Sequence[str],
    *,
    after: int | None = None,
    until: int | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    name: str | None = None,
    order_by: str = "seq",
    only: dict[str, Sequence[str]] | None = None,
) -> list[EventRow]:
    """Return events of these stacks, by default in the order in which they happened.

    Args:
        after: `seq` of the last event already seen.
        until: `seq` of the last event to return.
        order_by: The column to sort by; ties are broken by `seq`.
        only: Column (`name`, `type`, `action`, `status`) -> allowed values.
    """
    tx.insert_now()
    table = schema.event
    chosen = select(table).where(table.c.stack_id.in_(stack_ids))
    if name is not None:
        chosen = chosen.where(table.c.name == name)
    order = [table.c[column] for column in dict.fromkeys((order_by, "seq"))]
    if after is not None:
        # The page begins after a position in the order, not after a number: `seq` alone suffices only if sorted by it.
        last = [select(column).where(table.c.seq == after).scalar_subquery() for column in order[:-1]]
        position, start = tuple_(*order), tuple_(*last, after)
        chosen = chosen.where(position < start if newest_first else position > start)
    if until is not None:
        chosen = chosen.where(table.c.seq <= until)
    for column, values in (only or {}).items():
        chosen = chosen.where(table.c[column].in_(values))
    chosen = chosen.order_by(*(column.desc() if newest_first else column.asc() for column in order))
    return list(typed.rows(EventRow, tx.execute(chosen.limit(limit) if limit else chosen)))


def get(tx: Transaction, stack_id: str, seq: int) -> EventRow | None:
    table = schema.event
    chosen = select(table).where(table.c.stack_id == stack_id, table.c.seq == seq)
    return typed.rows(EventRow, tx.execute(chosen)).first()


def newest(tx: Transaction, stack_ids: Sequence[str]) -> int:
    """Return `seq` of the newest event of these stacks, 0 if they have none."""
    tx.insert_now()
    table = schema.event
    return int(tx.execute(select(func.max(table.c.seq)).where(table.c.stack_id.in_(stack_ids))).scalar_one() or 0)


def roots(tx: Transaction, after: int, until: int) -> set[str]:
    """Return the root stacks of the events with `after` < `seq` <= `until`, including events of nested stacks."""
    table, stack = schema.event, schema.stack
    chosen = select(stack.c.root_id).distinct().join(table, table.c.stack_id == stack.c.id)
    return set(tx.execute(chosen.where(table.c.seq > after, table.c.seq <= until)).scalars())


def event_id(stack_id: str, seq: int) -> str:
    """Return the id that clients see: the stack's id, its last 12 digits replaced by the event's number."""
    return f"{stack_id[:-12]}{seq:012x}"
