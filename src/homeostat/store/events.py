"""Events: appended in the transaction that makes the change of state they report, and read in pages."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter

from sqlalchemy import Connection, func, insert, select, tuple_

from homeostat.model.limits import EVENT_REASON_MAX
from homeostat.model.plan import Event
from homeostat.store import requesters, schema
from homeostat.store.schema.rows import EventRow
from homeostat.store.sql import bulk, typed
from homeostat.store.sql.marks import mark

FIELDS = tuple(each.name for each in fields(Event))
"""The fields of an event; each has a column of its name."""
COLUMNS = ("stack_id", *FIELDS, "at")
REQUESTED = (*COLUMNS, "requested_by", "request_id")
"""The columns of an event that follows from a request."""


def append(tx: Connection, stack_id: str, happened: Iterable[Event], now: float) -> None:
    append_all(tx, ((stack_id, each) for each in happened), now)


def append_all(tx: Connection, happened: Iterable[tuple[str, Event]], now: float) -> None:
    """Append events of several stacks, each with the id of its stack."""
    values_of = attrgetter(*FIELDS)
    rows = [(stack_id, *values_of(_kept(each)), now) for stack_id, each in happened]
    if rows:
        mark(tx)
    requester = requesters.current()
    if requester is requesters.NOBODY:
        bulk.insert(tx, schema.event, COLUMNS, rows)
        return
    more = (requester.name, requester.request_id)
    bulk.insert(tx, schema.event, REQUESTED, [(*row, *more) for row in rows])


def append_one(tx: Connection, stack_id: str, event: Event, now: float) -> int:
    """Append an event and return its `seq`."""
    requester = requesters.current()
    more = (requester.name, requester.request_id)
    values = dict(zip(REQUESTED, (stack_id, *attrgetter(*FIELDS)(_kept(event)), now, *more), strict=True))
    mark(tx)
    (seq,) = tx.execute(insert(schema.event).values(values)).inserted_primary_key or (0,)
    return int(seq)


def _kept(event: Event) -> Event:
    """Return the event with as much of its reason as is kept: clouds and servers may say anything."""
    if len(event.reason) <= EVENT_REASON_MAX:
        return event
    return replace(event, reason=f"{event.reason[: EVENT_REASON_MAX - 1]}…")


def page(
    tx: Connection,
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
        until: `seq` of the last event wanted.
        newest_first: Reverse the order.
        limit: How many at most; None for all.
        name: Only events of the resource of this name.
        order_by: The column to sort by; `seq` decides between equal values.
        only: Column (`name`, `type`, `action`, `status`) -> the values wanted.
    """
    table = schema.event
    chosen = select(table).where(table.c.stack_id.in_(stack_ids))
    if name is not None:
        chosen = chosen.where(table.c.name == name)
    order = [table.c[column] for column in dict.fromkeys((order_by, "seq"))]
    if after is not None:
        # The page begins after a place in the order, not after a number: `seq` alone is only right if sorted by it.
        last = [select(column).where(table.c.seq == after).scalar_subquery() for column in order[:-1]]
        here, there = tuple_(*order), tuple_(*last, after)
        chosen = chosen.where(here < there if newest_first else here > there)
    if until is not None:
        chosen = chosen.where(table.c.seq <= until)
    for column, values in (only or {}).items():
        chosen = chosen.where(table.c[column].in_(values))
    chosen = chosen.order_by(*(column.desc() if newest_first else column.asc() for column in order))
    return list(typed.rows(EventRow, tx.execute(chosen.limit(limit) if limit else chosen)))


def get(tx: Connection, stack_id: str, seq: int) -> EventRow | None:
    table = schema.event
    chosen = select(table).where(table.c.stack_id == stack_id, table.c.seq == seq)
    return typed.rows(EventRow, tx.execute(chosen)).first()


def newest(tx: Connection, stack_ids: Sequence[str]) -> int:
    """Return `seq` of the newest event of these stacks, 0 if they have none."""
    table = schema.event
    return int(tx.execute(select(func.max(table.c.seq)).where(table.c.stack_id.in_(stack_ids))).scalar_one() or 0)


def roots(tx: Connection, after: int, until: int) -> set[str]:
    """Return the root stacks of the events, also of nested stacks, with `after` < `seq` <= `until`."""
    table, stack = schema.event, schema.stack
    chosen = select(stack.c.root_id).distinct().join(table, table.c.stack_id == stack.c.id)
    return set(tx.execute(chosen.where(table.c.seq > after, table.c.seq <= until)).scalars())


def event_id(stack_id: str, seq: int) -> str:
    """Return the id that clients see: the stack's id, its last 12 digits replaced by the event's number."""
    return f"{stack_id[:-12]}{seq:012x}"
