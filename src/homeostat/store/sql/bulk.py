"""Writing many rows with one statement, on SQLite and on PostgreSQL (ADR 0018).

SQLite gets the rows one by one, in one call of the driver. PostgreSQL gets one JSON array per column and joins
them to rows, so that a batch is one statement and one round trip, whatever its length.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql

from homeostat.store.encryption.encrypted_cells import keys_of
from homeostat.store.schema import EncryptedJson, Json, to_json, without_nul

Values = Sequence[Any]
"""One row: a value for each named column, plain data where the column holds JSON."""

Encode = Callable[[Any], str]
"""Encodes plain data as the text of a cell."""

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows in the form that the database takes, with their statement.

    Encoding many rows takes time; with this it is done before the transaction instead of inside it.
    """

    statement: str
    rows: Any
    count: int

    def store(self, tx: Connection) -> int:
        """Run the statement, and return how many rows it changed.

        Raises:
            IntegrityError: A row to be inserted exists already.
        """
        return tx.exec_driver_sql(self.statement, self.rows).rowcount if self.count else 0


def insert(
    tx: Connection, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> None:
    """Insert rows.

    Args:
        tx: The transaction.
        table: The table.
        columns: The columns that the values are for.
        rows: The rows.
        secret: The rows hold secrets, so columns that are not always encrypted are encrypted as well.

    Raises:
        IntegrityError: A row exists already.
    """
    encode_insert(tx.dialect, table, columns, rows, secret=secret).store(tx)


def encode_insert(
    dialect: Dialect, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> EncodedRows:
    """Encode an `insert`, to be stored later."""
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
    """Encode an insert that updates rows of the same key instead, to be stored later.

    No key may occur twice: PostgreSQL refuses to update a row twice in one statement.

    Args:
        dialect: The dialect of the database.
        table: The table.
        columns: The columns that the values are for.
        rows: The rows.
        key: The columns that identify a row.
        unless: A condition on `t` (the existing row) and `excluded` (the new one) under which the existing row stays.
        where: A condition that new rows must meet to be stored, with their values as `{column}`.
        secret: The rows hold secrets, see `insert`.
    """

    def statement(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> str:
        return _upsert(is_sqlite, table, columns, key, unless, where)

    return _encode(dialect, statement, table, columns, rows, secret)


@dataclass(frozen=True, slots=True)
class Change:
    """The condition and the side effects of an update.

    Attributes:
        compared: Columns of the rows that are only compared with, not set.
        where: Which rows `t` are updated, with the values as `{column}`.
        also: An assignment of something that follows from `t`; "" for none.
    """

    compared: tuple[str, ...]
    where: str
    also: str = ""


UNMOVED = Change(("version", "key"), "t.key = {key} AND t.version = {version}", "version = t.version + 1")
"""Optimistic locking: only rows that are still as they were read are updated; their version grows by one."""


def update(
    tx: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    change: Change = UNMOVED,
    *,
    secret: bool = False,
) -> int:
    """Set columns of existing rows, and return how many rows were changed.

    Args:
        tx: The transaction.
        table: The table.
        columns: The columns that the values are for.
        rows: The rows.
        change: Which rows are updated.
        secret: The rows hold secrets, see `insert`.
    """
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
    """Encode an `update`, to be stored later."""

    def statement(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> str:
        return _update(is_sqlite, table, columns, change)

    return _encode(dialect, statement, table, columns, rows, secret)


def encode_delete(dialect: Dialect, table: Table, rows: Iterable[tuple[str, int]]) -> EncodedRows:
    """Encode the deletion of rows by key and version; rows that have another version by then stay."""
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
    """Encode a column for PostgreSQL: one JSON array, without the NUL characters that PostgreSQL cannot store."""
    text = to_json(values)
    if "\\u0000" not in text:
        return text
    return to_json([without_nul(value) if isinstance(value, str) else value for value in values])


def _encoded(rows: Iterable[Values], encoders: Sequence[tuple[int, Encode]]) -> list[tuple[Any, ...]]:
    """Return the rows, with the columns that have an encoder as text; None stays NULL."""
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
    """Return the index of each column that holds JSON, and the encoder of its cells."""
    keys = keys_of(dialect)

    def encrypted(kind: EncryptedJson) -> Encode:
        return lambda value: keys.encrypt(kind.encode(value), kind.place)

    found: list[tuple[int, Encode]] = []
    for index in _json_places(table, columns):
        kind = table.c[columns[index]].type
        encrypts = isinstance(kind, EncryptedJson) and (kind.always or secret) and bool(keys.newest)
        assert isinstance(kind, Json)
        found.append((index, encrypted(kind) if isinstance(kind, EncryptedJson) and encrypts else kind.encoder()))
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
    """Return the SQL expressions of a row's values in a statement."""
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
    where, also = change.where.format(**value_of), [change.also] if change.also else []
    if is_sqlite:
        return f"UPDATE {table.name} AS t SET {', '.join([*assigned, *also])} WHERE {where}"
    head = f"UPDATE {table.name} AS t SET {', '.join([*assigned, *map(_escaped, also)])}"
    return f"{head} FROM {_side_by_side(columns)} WHERE {_escaped(where)}"


def _escaped(sql: str) -> str:
    """Escape per cent signs, which the driver would take for parameters."""
    return sql.replace("%", "%%")


@cache
def _delete(is_sqlite: bool, table: Table, columns: tuple[str, ...]) -> str:
    if is_sqlite:
        return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in columns)}"
    where = " AND ".join(f"t.{name} = {value}" for name, value in zip(columns, _typed(table, columns), strict=True))
    return f"DELETE FROM {table.name} AS t USING {_side_by_side(columns)} WHERE {where}"


def _typed(table: Table, columns: tuple[str, ...]) -> list[str]:
    """Return the columns of `_side_by_side`, each cast from text to the type it is stored as."""
    types = [table.c[name].type.compile(_POSTGRESQL) for name in columns]
    return [f"n.c{place}::{type_}" for place, type_ in enumerate(types)]


def _side_by_side(columns: tuple[str, ...]) -> str:
    """Return the FROM item that joins one JSON array per column to rows of text n(c0, c1, …)."""
    arrays = ", ".join("json_array_elements_text(%s)" for _ in columns)
    return f"ROWS FROM ({arrays}) AS n({', '.join(f'c{place}' for place in range(len(columns)))})"
