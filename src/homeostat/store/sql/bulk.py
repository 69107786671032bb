"""Writing many rows with one statement: what SQLite and PostgreSQL need apart for that.

SQLite gets each row by itself, in one call of the driver. PostgreSQL gets one JSON array a column and puts them side by
side, so that a batch is one statement, and one journey, whatever its length.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql

from homeostat.store.encryption.sealed_cells import keys_of
from homeostat.store.schema import Json, Sealed, to_json, without_nul

Values = Sequence[Any]
"""One row: a value for each column that was named, plain data where the column holds JSON."""

Encode = Callable[[Any], str]
"""Plain data -> the text of a cell."""

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows written out as a database takes them: to encode many takes time, which need not be that of a transaction."""

    statement: str
    rows: Any
    count: int

    def store(self, tx: Connection) -> int:
        """In one statement. Gives how many rows it changed. Fails: IntegrityError when a new one is there already."""
        return tx.exec_driver_sql(self.statement, self.rows).rowcount if self.count else 0


def insert(
    tx: Connection, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> None:
    """New rows. secret — they hold secrets. Fails: IntegrityError when one is there already."""
    encode_insert(tx.dialect, table, columns, rows, secret=secret).store(tx)


def encode_insert(
    dialect: Dialect, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> EncodedRows:
    """As `insert`, to be stored later."""
    return _encode(dialect, _insert, table, columns, rows, secret)


def encode_upsert(
    dialect: Dialect,
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    *,
    key: tuple[str, ...],
    unless: str = "",
    where: str = "",
    secret: bool = False,
) -> EncodedRows:
    """New rows, or new values for the rows of the same key. No key may come twice.

    unless — a condition on `t` (the row there) and `excluded` (the new one) under which the old one stays; where — only
    new rows that meet this condition, with their values as `{column}`; secret — they hold secrets.
    """

    def statement(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> str:
        return _upsert(is_sqlite, table, columns, key, unless, where)

    return _encode(dialect, statement, table, columns, rows, secret)


@dataclass(frozen=True, slots=True)
class Change:
    """What an update does besides setting columns.

    compared — columns of a row that are only compared with; where — which rows `t` it is about, with the values of a
    new row as `{column}`; also — what is set to something that follows from `t`.
    """

    compared: tuple[str, ...]
    where: str
    also: str


UNMOVED = Change(("version", "key"), "t.key = {key} AND t.version = {version}", "version = t.version + 1")
"""Only rows that are still as they were read; their version grows by one."""


def update(
    tx: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    change: Change = UNMOVED,
    *,
    secret: bool = False,
) -> int:
    """New values for rows that are there. secret — they hold secrets. Gives how many it changed."""
    return encode_update(tx.dialect, table, columns, rows, change, secret=secret).store(tx)


def encode_update(
    dialect: Dialect,
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    change: Change = UNMOVED,
    *,
    secret: bool = False,
) -> EncodedRows:
    """As `update`, to be stored later."""

    def statement(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> str:
        return _update(is_sqlite, table, columns, change)

    return _encode(dialect, statement, table, columns, rows, secret)


def encode_delete(dialect: Dialect, table: Table, rows: Iterable[tuple[str, int]]) -> EncodedRows:
    """The rows with these keys go, if they still have these versions, when it is stored."""
    return _encode(dialect, _delete, table, ("key", "version"), rows, secret=False)


def _encode(
    dialect: Dialect,
    statement: Callable[[bool, Table, tuple[str, ...]], str],
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    secret: bool,
) -> EncodedRows:
    encoded = _encoded(rows, _encoders(dialect, table, columns, secret))
    is_sqlite = dialect.name == "sqlite"
    arrays = encoded if is_sqlite else tuple(_array(values) for values in zip(*encoded, strict=True))
    return EncodedRows(statement(is_sqlite, table, columns), arrays, len(encoded))


def _array(values: Values) -> str:
    """A column as PostgreSQL takes it."""
    text = to_json(values)
    if "\\u0000" not in text:
        return text
    return to_json([without_nul(value) if isinstance(value, str) else value for value in values])


def _encoded(rows: Iterable[Values], encoders: Sequence[tuple[int, Encode]]) -> list[tuple[Any, ...]]:
    """Rows with the columns that have an encoder as text."""
    if not encoders:
        return [tuple(values) for values in rows]
    encoded = []
    for values in rows:
        row = list(values)
        for place, encode in encoders:
            if row[place] is not None:
                row[place] = encode(row[place])
        encoded.append(tuple(row))
    return encoded


def _encoders(dialect: Dialect, table: Table, columns: tuple[str, ...], secret: bool) -> list[tuple[int, Encode]]:
    """For each column that holds JSON: its place, and how its cells are written."""
    keys = keys_of(dialect)

    def sealed(place: str) -> Encode:
        return lambda value: keys.seal(to_json(value), place)

    found: list[tuple[int, Encode]] = []
    for index in _json_places(table, columns):
        kind = table.c[columns[index]].type
        seals = isinstance(kind, Sealed) and (kind.always or secret) and bool(keys.newest)
        found.append((index, sealed(kind.place) if isinstance(kind, Sealed) and seals else to_json))
    return found


@cache
def _json_places(table: Table, columns: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(columns) if isinstance(table.c[name].type, Json))


# -- statements --------------------------------------------------------------------------------------------------------


@cache
def _insert(is_sqlite: bool, table: Table, columns: tuple[str, ...], where: str = "") -> str:
    into = f"INSERT INTO {table.name} ({', '.join(columns)})"
    places = _places(is_sqlite, table, columns)
    met = f" WHERE {where.format(**dict(zip(columns, places, strict=True)))}" if where else ""
    if is_sqlite:
        return f"{into} SELECT {', '.join(places)}{met}" if met else f"{into} VALUES ({', '.join(places)})"
    return f"{into} SELECT {', '.join(places)} FROM {_side_by_side(columns)}{_escaped(met)}"


def _places(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> list[str]:
    """Where the values of a row stand in a statement."""
    return [f"?{place}" for place, _ in enumerate(columns, 1)] if is_sqlite else _typed(table, columns)


@cache
def _upsert(
    is_sqlite: bool, table: Table, columns: tuple[str, ...], key: tuple[str, ...], unless: str, where: str
) -> str:
    plain = _insert(is_sqlite, table, columns, where).replace(f"INTO {table.name} ", f"INTO {table.name} AS t ", 1)
    updated = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    stays = f" WHERE NOT ({unless})" if unless else ""
    return f"{plain} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {updated}{stays}"


@cache
def _update(is_sqlite: bool, table: Table, columns: tuple[str, ...], change: Change) -> str:
    value_of = dict(zip(columns, _places(is_sqlite, table, columns), strict=True))
    assigned = [f"{name} = {value}" for name, value in value_of.items() if name not in change.compared]
    where, also = change.where.format(**value_of), change.also
    if is_sqlite:
        return f"UPDATE {table.name} AS t SET {', '.join([*assigned, also])} WHERE {where}"
    head = f"UPDATE {table.name} AS t SET {', '.join([*assigned, _escaped(also)])}"
    return f"{head} FROM {_side_by_side(columns)} WHERE {_escaped(where)}"


def _escaped(sql: str) -> str:
    """The driver takes a lone per cent sign for a parameter."""
    return sql.replace("%", "%%")


@cache
def _delete(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> str:
    if is_sqlite:
        return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in columns)}"
    where = " AND ".join(f"t.{name} = {value}" for name, value in zip(columns, _typed(table, columns), strict=True))
    return f"DELETE FROM {table.name} AS t USING {_side_by_side(columns)} WHERE {where}"


def _typed(table: Table, columns: tuple[str, ...]) -> list[str]:
    """The columns of `_side_by_side`, each brought from text to the type it is stored as."""
    types = [table.c[name].type.compile(_POSTGRESQL) for name in columns]
    return [f"n.c{place}::{type_}" for place, type_ in enumerate(types)]


def _side_by_side(columns: tuple[str, ...]) -> str:
    """One JSON array a column, as rows of text n(c0, c1, …)."""
    arrays = ", ".join("json_array_elements_text(%s)" for _ in columns)
    return f"ROWS FROM ({arrays}) AS n({', '.join(f'c{place}' for place in range(len(columns)))})"
