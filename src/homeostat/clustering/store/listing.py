"""Lookups by id, name or the beginning of an id; lists, filtered and paged."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    case,
    func,
    literal,
    or_,
    select,
)

from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ActionRow, ClusterRow, NodeRow, PolicyRow, ProfileRow, ReceiverRow
from homeostat.store.sql import typed


class Entry(Protocol):
    """A row of one of the tables that users list."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=Entry)
TABLES: Mapping[type[Entry], Table] = {
    ActionRow: schema.action,
    ClusterRow: schema.cluster,
    NodeRow: schema.node,
    PolicyRow: schema.policy,
    ProfileRow: schema.profile,
    ReceiverRow: schema.receiver,
}
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")


@dataclass(frozen=True, slots=True)
class Order:
    """A column to sort by: ascending with NULLs first, or descending with NULLs last."""

    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A request for a list.

    Attributes:
        project: None for all projects.
        only: Column -> allowed values.
        order: Columns to sort by; among equal entries, the id decides.
        marker: Id of the last entry before the page; an unknown id is ignored.
        limit: Maximum of entries; None for all.
    """

    project: str | None
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    order: Sequence[Order] = (Order("created_at"),)
    marker: str | None = None
    limit: int | None = None


def page(tx: Transaction, kind: type[E], request: Page, *where: ColumnElement[bool]) -> list[E]:
    """Return a page of a list; `where` are further conditions, such as `living.is_living_node()`."""
    table = TABLES[kind]
    chosen = select(table).where(*where)
    if request.project is not None:
        chosen = chosen.where(table.c.project == request.project)
    for name, values in request.only.items():
        chosen = chosen.where(table.c[name].in_(values))
    order = [*request.order, Order("id")]
    if request.marker is not None:
        conditions = [] if request.project is None else [table.c.project == request.project]
        marker = typed.rows(kind, tx.execute(select(table).where(table.c.id == request.marker, *conditions))).first()
        if marker is not None:
            chosen = chosen.where(_after(table, order, marker))
    for order_by in order:
        column = table.c[order_by.column]
        # Databases disagree on the order of NULLs: sort by an explicit key first.
        empty = case((column.is_(None), 0), else_=1)
        chosen = chosen.order_by(*((empty.desc(), column.desc()) if order_by.descending else (empty, column)))
    return list(typed.rows(kind, tx.execute(chosen.limit(request.limit) if request.limit is not None else chosen)))


def _after(table: Table, order: Sequence[Order], marker: Entry) -> ColumnElement[bool]:
    """Return the condition that an entry follows `marker` in this order."""
    choices: list[ColumnElement[bool]] = []
    equal: list[ColumnElement[bool]] = []
    for order_by in order:
        column, value = table.c[order_by.column], getattr(marker, order_by.column)
        beyond: ColumnElement[bool]
        if value is None:
            beyond = literal(False) if order_by.descending else column.is_not(None)
            same = column.is_(None)
        elif order_by.descending:
            beyond, same = or_(column < value, column.is_(None)), column == value
        else:
            beyond, same = column > value, column == value
        choices.append(and_(*equal, beyond))
        equal.append(same)
    return or_(*choices)


def find(tx: Transaction, kind: type[E], project: str | None, identity: str, *where: ColumnElement[bool]) -> E | None:
    """Return the entry with this id, name or beginning of an id; None if absent.

    Args:
        kind: The class of the row.
        project: None for all projects.
        identity: Id, name or beginning of an id, from the user.
        where: Further conditions.

    Raises:
        Rejected: MultipleChoices.
    """
    table = TABLES[kind]
    conditions = [*where] if project is None else [table.c.project == project, *where]
    if _UUID.match(identity):
        by_id = typed.rows(kind, tx.execute(select(table).where(table.c.id == identity.lower(), *conditions))).first()
        return by_id or _one(tx, kind, identity, table.c.name == identity, *conditions)
    by_name = _one(tx, kind, identity, table.c.name == identity, *conditions)
    if by_name is not None or not re.fullmatch(r"[0-9a-fA-F-]{1,36}", identity):
        return by_name
    beginning = func.substr(table.c.id, 1, len(identity)) == identity.lower()
    return _one(tx, kind, identity, beginning, *conditions)


def get(tx: Transaction, kind: type[E], project: str | None, identity: str, *where: ColumnElement[bool]) -> E:
    """Return the entry that `find` returns, and raise if absent.

    Raises:
        Rejected: ResourceNotFound, MultipleChoices.
    """
    row = find(tx, kind, project, identity, *where)
    if row is None:
        raise Rejected("ResourceNotFound", f"The {TABLES[kind].name} '{identity}' could not be found.")
    return row


def ids(tx: Transaction, kind: type[Entry], project: str | None, named: Iterable[str]) -> list[str]:
    """Return the ids of the named entries; unknown names are skipped.

    Raises:
        Rejected: MultipleChoices.
    """
    rows = (find(tx, kind, project, identity) for identity in named)
    return [row.id for row in rows if row is not None]


def _one(tx: Transaction, kind: type[E], identity: str, *where: ColumnElement[bool]) -> E | None:
    rows = typed.rows(kind, tx.execute(select(TABLES[kind]).where(*where).limit(2))).all()
    if len(rows) > 1:
        message = f"Multiple results found matching the query criteria '{identity}'. Please be more specific."
        raise Rejected("MultipleChoices", message)
    return rows[0] if rows else None
