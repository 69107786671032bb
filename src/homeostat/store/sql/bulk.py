"""Writing many rows with one statement, whatever the database (ADR 0018).

`bulk_statements` has the statements: SQLite gets the rows one by one, in one call of the driver. Servers get them as
JSON, so that a batch is one statement and one round trip, whatever its length.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table

from homeostat.store.encryption.encrypted_cells import keys_of
from homeostat.store.schema import EncryptedJson, Json
from homeostat.store.sql import bulk_statements
from homeostat.store.sql.bulk_statements import Change, Form

Values = Sequence[Any]
"""One row: a value for each named column, plain data where the column holds JSON."""

Encode = Callable[[Any], str]
"""Encodes plain data as the text of a cell."""


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
        columns: The columns that the values are for.
        secret: The rows hold secrets, so columns that are not always encrypted are encrypted as well.

    Raises:
        IntegrityError: A row exists already.
    """
    encode_insert(tx.dialect, table, columns, rows, secret=secret).store(tx)


def encode_insert(
    dialect: Dialect, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> EncodedRows:
    """Encode an `insert`, to be stored later."""

    def statement(form: Form) -> str:
        return form.insert(table, columns)

    return _encode(dialect, statement, table, columns, rows, secret)


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
        columns: The columns that the values are for.
        key: The columns that identify a row.
        unless: A condition on `t` (the existing row) and `excluded` (the new one) under which the existing row stays.
        where: A condition that new rows must meet to be stored, with their values as `{column}`.
        secret: The rows hold secrets, see `insert`.
    """

    def statement(form: Form) -> str:
        return form.upsert(table, columns, key, unless, where)

    return _encode(dialect, statement, table, columns, rows, secret)


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
        columns: The columns that the values are for.
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

    def statement(form: Form) -> str:
        return form.update(table, columns, change)

    return _encode(dialect, statement, table, columns, rows, secret)


def encode_delete(dialect: Dialect, table: Table, rows: Iterable[tuple[str, int]]) -> EncodedRows:
    """Encode the deletion of rows by key and version; rows that have another version by then stay."""
    columns = ("key", "version")

    def statement(form: Form) -> str:
        return form.delete(table, columns)

    return _encode(dialect, statement, table, columns, rows, secret=False)


def _encode(
    dialect: Dialect,
    statement: Callable[[Form], str],
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    secret: bool,
) -> EncodedRows:
    encoded = _encoded(rows, _encoders(dialect, table, columns, secret))
    form = bulk_statements.form_of(dialect)
    return EncodedRows(statement(form), form.rows(encoded), len(encoded))


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
