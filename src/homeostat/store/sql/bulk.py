"""Write many rows with a single statement, whatever the database (ADR 0018).

`bulk_statements` has the statements: SQLite gets a list of rows in a single call of the driver. Servers get the rows as
JSON: a batch is a single statement and round trip, whatever its length.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table

from homeostat.store.encryption.encrypted_cells import keys_of
from homeostat.store.schema import EncryptedJson, Json
from homeostat.store.sql.bulk_statements import Change, form_of

Values = Sequence[Any]
"""A row: a value for each named column, plain data if the column holds JSON."""

Encode = Callable[[Any], str]
"""Encodes plain data as the text of a cell."""


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows in the form of the database, with their statement.

    Encoding many rows takes time, and happens before the transaction, not inside.
    """

    statement: str
    rows: Any
    count: int

    def store(self, tx: Connection) -> int:
        """Run the statement, and return the number of changed rows.

        Raises:
            IntegrityError: An inserted row exists already.
        """
        return tx.exec_driver_sql(self.statement, self.rows).rowcount if self.count else 0


def insert(
    tx: Connection, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> None:
    """Insert rows.

    Args:
        secret: The rows hold secrets, so columns that are not always encrypted are encrypted as well.

    Raises:
        IntegrityError: A row exists already.
    """
    encode_insert(tx.dialect, table, columns, rows, secret=secret).store(tx)


def encode_insert(
    dialect: Dialect, table: Table, columns: tuple[str, ...], rows: Iterable[Values], *, secret: bool = False
) -> EncodedRows:
    """Encode an `insert`, to store later."""
    return _encode(dialect, form_of(dialect).insert(table, columns), table, columns, rows, secret)


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
    """Encode an insert that updates rows of the same key instead, to store later.

    No key may occur twice: PostgreSQL refuses to update a row twice in one statement.

    Args:
        unless: A condition on `t` (the existing row) and `excluded` (the new row), to keep the existing row.
        where: A condition for storing new rows, with their values as `{column}`.
    """
    return _encode(dialect, form_of(dialect).upsert(table, columns, key, unless, where), table, columns, rows, secret)


UNMOVED = Change(("version", "key"), "t.key = {key} AND t.version = {version}", "version = t.version + 1")
"""Optimistic locking: only rows with the version that was read are updated; their version is incremented."""


def update(
    tx: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    change: Change = UNMOVED,
    *,
    secret: bool = False,
) -> int:
    """Set columns of existing rows, and return the number of changed rows."""
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
    """Encode an `update`, to store later."""
    return _encode(dialect, form_of(dialect).update(table, columns, change), table, columns, rows, secret)


def encode_delete(dialect: Dialect, table: Table, rows: Iterable[tuple[str, int]]) -> EncodedRows:
    """Encode the deletion of rows by key and version; rows with another version by then stay."""
    columns = ("key", "version")
    return _encode(dialect, form_of(dialect).delete(table, columns), table, columns, rows, secret=False)


def _encode(
    dialect: Dialect,
    statement: str,
    table: Table,
    columns: tuple[str, ...],
    rows: Iterable[Values],
    secret: bool,
) -> EncodedRows:
    encoded = _encoded(rows, _encoders(dialect, table, columns, secret))
    return EncodedRows(statement, form_of(dialect).rows(encoded), len(encoded))


def _encoded(rows: Iterable[Values], encoders: Sequence[tuple[int, Encode]]) -> list[tuple[Any, ...]]:
    """Return the rows, with cells of columns with an encoder as text; None stays NULL."""
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

    encoders: list[tuple[int, Encode]] = []
    for index in _json_places(table, columns):
        kind = table.c[columns[index]].type
        encrypts = isinstance(kind, EncryptedJson) and (kind.always or secret) and bool(keys.newest)
        assert isinstance(kind, Json)
        encoders.append((index, encrypted(kind) if isinstance(kind, EncryptedJson) and encrypts else kind.encoder()))
    return encoders


@cache
def _json_places(table: Table, columns: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(columns) if isinstance(table.c[name].type, Json))
