"""Lookups by id, name or the beginning of an id; lists, filtered and paged."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
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
        only: Column -> values of which an entry has one.
        order: Columns to sort by; the id decides between equal ones.
        marker: Id of the entry after which the page begins; an unknown one is ignored.
        limit: How many entries at most; None for all.
    """

    project: str | None
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    order: Sequence[Order] = (Order("created_at"),)
    marker: str | None = None
    limit: int | None = None


def page(tx: Connection, kind: type[E], wanted: Page, *where: ColumnElement[bool]) -> list[E]:
    """Return one page of a list; `where` are further conditions, such as that entries exist still."""
    table = TABLES[kind]
    chosen = select(table).where(*where)
    if wanted.project is not None:
        chosen = chosen.where(table.c.project == wanted.project)
    for name, values in wanted.only.items():
        chosen = chosen.where(table.c[name].in_(values))
    order = [*wanted.order, Order("id")]
    if wanted.marker is not None:
        conditions = [] if wanted.project is None else [table.c.project == wanted.project]
        marker = typed.rows(kind, tx.execute(select(table).where(table.c.id == wanted.marker, *conditions))).first()
        if marker is not None:
            chosen = chosen.where(_after(table, order, marker))
    for each in order:
        column = table.c[each.column]
        # One word for both databases: they disagree on where NULLs come.
        empty = case((column.is_(None), 0), else_=1)
        chosen = chosen.order_by(*((empty.desc(), column.desc()) if each.descending else (empty, column)))
    return list(typed.rows(kind, tx.execute(chosen.limit(wanted.limit) if wanted.limit is not None else chosen)))


def _after(table: Table, order: Sequence[Order], marker: Entry) -> ColumnElement[bool]:
    """Return the condition that an entry comes after another one."""
    choices: list[ColumnElement[bool]] = []
    equal: list[ColumnElement[bool]] = []
    for each in order:
        column, value = table.c[each.column], getattr(marker, each.column)
        beyond: ColumnElement[bool]
        if value is None:
            beyond = literal(False) if each.descending else column.is_not(None)
            same = column.is_(None)
        elif each.descending:
            beyond, same = or_(column < value, column.is_(None)), column == value
        else:
            beyond, same = column > value, column == value
        choices.append(and_(*equal, beyond))
        equal.append(same)
    return or_(*choices)


def find(tx: Connection, kind: type[E], project: str | None, identity: str, *where: ColumnElement[bool]) -> E | None:
    """Return the entry with this id, this name or this beginning of an id; None where there is none.

    Args:
        tx: The transaction.
        kind: The class of its row.
        project: None for all projects.
        identity: What a user calls it.
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


def get(tx: Connection, kind: type[E], project: str | None, identity: str, *where: ColumnElement[bool]) -> E:
    """Return the same entry as `find`.

    Raises:
        Rejected: ResourceNotFound, MultipleChoices.
    """
    row = find(tx, kind, project, identity, *where)
    if row is None:
        raise Rejected("ResourceNotFound", f"The {TABLES[kind].name} '{identity}' could not be found.")
    return row


def ids(tx: Connection, kind: type[Entry], project: str | None, named: Iterable[str]) -> list[str]:
    """Return the ids of those of the named entries that there are.

    Raises:
        Rejected: MultipleChoices.
    """
    found = (find(tx, kind, project, identity) for identity in named)
    return [row.id for row in found if row is not None]


def _one(tx: Connection, kind: type[E], identity: str, *where: ColumnElement[bool]) -> E | None:
    found = typed.rows(kind, tx.execute(select(TABLES[kind]).where(*where).limit(2))).all()
    if len(found) > 1:
        message = f"Multiple results found matching the query criteria '{identity}'. Please be more specific."
        raise Rejected("MultipleChoices", message)
    return found[0] if found else None
