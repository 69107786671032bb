"""Statements for many rows, as each kind of database takes them (ADR 0018, 0083)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from sqlalchemy import Dialect, Table
from sqlalchemy.dialects import postgresql

from homeostat.store.schema import to_json, without_nul
from homeostat.store.sql import mysql_dialect

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]
_MYSQL = mysql_dialect.Dialect()


@dataclass(frozen=True, slots=True)
class Change:
    """The condition and the side effects of an update.

    Attributes:
        compared: Columns that are only compared, not set.
        where: The condition for rows `t`, with the new values as `{column}`.
        also: An assignment derived from `t`; "" for none.
    """

    compared: tuple[str, ...]
    where: str
    also: str = ""


class Form(Protocol):
    """The form of rows and of their statements; for the arguments see `bulk`."""

    def rows(self, encoded: Sequence[tuple[Any, ...]]) -> Any:
        """Return the parameters of a statement for these rows."""
        ...

    def insert(self, table: Table, columns: tuple[str, ...]) -> str: ...

    def upsert(self, table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str, where: str) -> str: ...

    def update(self, table: Table, columns: tuple[str, ...], change: Change) -> str: ...

    def delete(self, table: Table, columns: tuple[str, ...]) -> str: ...


def form_of(dialect: Dialect) -> Form:
    """Return the form for a database."""
    return _FORMS[dialect.name]


def _met(where: str, columns: tuple[str, ...], places: Sequence[str]) -> str:
    return f" WHERE {where.format(**dict(zip(columns, places, strict=True)))}" if where else ""


def _assigned(columns: tuple[str, ...], places: Sequence[str], change: Change) -> list[str]:
    values = zip(columns, places, strict=True)
    return [f"{name} = {value}" for name, value in values if name not in change.compared]


def _or_update(plain: str, table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str) -> str:
    """Return an INSERT with ON CONFLICT."""
    plain = plain.replace(f"INTO {table.name} ", f"INTO {table.name} AS t ", 1)
    updated = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    stays = f" WHERE NOT ({unless})" if unless else ""
    return f"{plain} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {updated}{stays}"


def _escaped(sql: str) -> str:
    """Escape per cent signs, which the driver would take for parameters."""
    return sql.replace("%", "%%")


# -- SQLite ------------------------------------------------------------------------------------------------------------


class _OneByOne:
    """A list of rows, for a single call of the driver."""

    def rows(self, encoded: Sequence[tuple[Any, ...]]) -> Any:
        return encoded

    def insert(self, table: Table, columns: tuple[str, ...]) -> str:
        return _insert_one(table, columns, "")

    def upsert(self, table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str, where: str) -> str:
        return _or_update(_insert_one(table, columns, where), table, columns, key, unless)

    def update(self, table: Table, columns: tuple[str, ...], change: Change) -> str:
        return _update_one(table, columns, change)

    def delete(self, table: Table, columns: tuple[str, ...]) -> str:
        return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in columns)}"


@cache
def _insert_one(table: Table, columns: tuple[str, ...], where: str) -> str:
    places = [f"?{place}" for place, _ in enumerate(columns, 1)]
    values = f"SELECT {', '.join(places)}{_met(where, columns, places)}" if where else f"VALUES ({', '.join(places)})"
    return f"INSERT INTO {table.name} ({', '.join(columns)}) {values}"


@cache
def _update_one(table: Table, columns: tuple[str, ...], change: Change) -> str:
    places = [f"?{place}" for place, _ in enumerate(columns, 1)]
    assigned = [*_assigned(columns, places, change), *filter(None, [change.also])]
    return f"UPDATE {table.name} AS t SET {', '.join(assigned)}{_met(change.where, columns, places)}"


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


class _Arrays:
    """A JSON array for each column; the statement joins them to rows."""

    def rows(self, encoded: Sequence[tuple[Any, ...]]) -> Any:
        return tuple(_without_nul(values) for values in zip(*encoded, strict=True))

    def insert(self, table: Table, columns: tuple[str, ...]) -> str:
        return _insert_arrays(table, columns, "")

    def upsert(self, table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str, where: str) -> str:
        return _or_update(_insert_arrays(table, columns, where), table, columns, key, unless)

    def update(self, table: Table, columns: tuple[str, ...], change: Change) -> str:
        return _update_arrays(table, columns, change)

    def delete(self, table: Table, columns: tuple[str, ...]) -> str:
        where = " AND ".join(f"t.{name} = {place}" for name, place in zip(columns, _typed(table, columns), strict=True))
        return f"DELETE FROM {table.name} AS t USING {_side_by_side(columns)} WHERE {where}"


def _without_nul(values: Sequence[Any]) -> str:
    """Encode values as JSON, without the NUL characters that PostgreSQL cannot store."""
    text = to_json(values)
    if "\\u0000" not in text:
        return text
    return to_json([without_nul(value) if isinstance(value, str) else value for value in values])


@cache
def _insert_arrays(table: Table, columns: tuple[str, ...], where: str) -> str:
    places = _typed(table, columns)
    met = _escaped(_met(where, columns, places))
    into = f"INSERT INTO {table.name} ({', '.join(columns)})"
    return f"{into} SELECT {', '.join(places)} FROM {_side_by_side(columns)}{met}"


@cache
def _update_arrays(table: Table, columns: tuple[str, ...], change: Change) -> str:
    places = _typed(table, columns)
    assigned = [*_assigned(columns, places, change), *filter(None, [_escaped(change.also)])]
    met = _escaped(_met(change.where, columns, places))
    return f"UPDATE {table.name} AS t SET {', '.join(assigned)} FROM {_side_by_side(columns)}{met}"


def _typed(table: Table, columns: tuple[str, ...]) -> list[str]:
    """Return the columns of `_side_by_side`, each cast from text to its stored type."""
    types = [table.c[name].type.compile(_POSTGRESQL) for name in columns]
    return [f"n.c{place}::{type_}" for place, type_ in enumerate(types)]


def _side_by_side(columns: tuple[str, ...]) -> str:
    """Return the FROM item that joins JSON arrays, one per column, to rows of text n(c0, c1, …)."""
    arrays = ", ".join("json_array_elements_text(%s)" for _ in columns)
    return f"ROWS FROM ({arrays}) AS n({', '.join(f'c{place}' for place in range(len(columns)))})"


# -- MariaDB and MySQL -------------------------------------------------------------------------------------------------


class _JsonTable:
    """A JSON array of rows, which the statement reads as a table."""

    def rows(self, encoded: Sequence[tuple[Any, ...]]) -> Any:
        text = to_json(encoded)
        if "\\u0000" in text:  # as on PostgreSQL, so that a text is the same everywhere
            rows = [[without_nul(value) if isinstance(value, str) else value for value in row] for row in encoded]
            text = to_json(rows)
        return (text,)

    def insert(self, table: Table, columns: tuple[str, ...]) -> str:
        return _insert_table(table, columns, "")

    def upsert(self, table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str, where: str) -> str:
        return _upsert_table(table, columns, key, unless, where)

    def update(self, table: Table, columns: tuple[str, ...], change: Change) -> str:
        return _update_table(table, columns, change)

    def delete(self, table: Table, columns: tuple[str, ...]) -> str:
        places = _numbered(columns)
        where = " AND ".join(f"t.{name} = {place}" for name, place in zip(columns, places, strict=True))
        return f"DELETE t FROM {_each_joined(table, columns)} WHERE {where}"


@cache
def _insert_table(table: Table, columns: tuple[str, ...], where: str) -> str:
    places = _numbered(columns)
    met = _escaped(_met(where, columns, places))
    into = f"INSERT INTO {table.name} ({', '.join(f'`{name}`' for name in columns)})"
    return f"{into} SELECT {', '.join(places)} FROM {_table(table, columns)}{met}"


@cache
def _upsert_table(table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str, where: str) -> str:
    stays = re.sub(r"\bexcluded\.(\w+)", r"VALUES(`\1`)", re.sub(r"\bt\.(\w+)", rf"{table.name}.`\1`", unless))
    compared = set(re.findall(r"\bt\.(\w+)", unless))
    reads = {name: compared for name in columns if name not in key}
    values = {name: f"VALUES(`{name}`)" for name in reads}
    if stays:
        values = {name: f"IF({stays}, {table.name}.`{name}`, {value})" for name, value in values.items()}
    updated = ", ".join(f"`{name}` = {values[name]}" for name in mysql_dialect.assignable(reads))
    return f"{_insert_table(table, columns, where)} ON DUPLICATE KEY UPDATE {updated}"


@cache
def _update_table(table: Table, columns: tuple[str, ...], change: Change) -> str:
    places = _numbered(columns)
    assigned = [f"t.{assignment}" for assignment in _assigned(columns, places, change)]
    assigned += [f"t.{_escaped(change.also)}"] if change.also else []
    met = _escaped(_met(change.where, columns, places))
    return f"UPDATE {_each_joined(table, columns)} SET {', '.join(assigned)}{met}"


def _numbered(columns: tuple[str, ...]) -> list[str]:
    return [f"n.c{place}" for place in range(len(columns))]


def _each_joined(table: Table, columns: tuple[str, ...]) -> str:
    """Join each row to the existing row of its key, in turn: a scan of the table would lock the whole table."""
    return f"{_table(table, columns)} STRAIGHT_JOIN {table.name} AS t FORCE INDEX (PRIMARY)"


def _table(table: Table, columns: tuple[str, ...]) -> str:
    types = [
        _MYSQL.type_compiler_instance.process(table.c[name].type, type_expression=table.c[name]) for name in columns
    ]
    fields = ", ".join(f"c{place} {type_} PATH '$[{place}]'" for place, type_ in enumerate(types))
    return f"JSON_TABLE(%s, '$[*]' COLUMNS ({fields})) AS n"


_FORMS: dict[str, Form] = {"sqlite": _OneByOne(), "postgresql": _Arrays(), "mysql": _JsonTable()}
