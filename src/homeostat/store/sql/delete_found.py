"""Delete rows by the values of other rows."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, select, tuple_

AT_ONCE = 500
"""Number of rows deleted by one statement."""


def delete_found(tx: Connection, table: Table, *where: ColumnElement[bool]) -> int:
    """Delete the rows that meet all conditions, and return their number.

    A SELECT finds the rows first: MariaDB locks all rows that a DELETE reads, even in joined tables, so a DELETE with
    conditions could deadlock.
    """
    key = list(table.primary_key.columns)
    keys: list[Any] = list(tx.execute(select(*key).where(*where)))
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        chosen = (
            key[0].in_([row[0] for row in part]) if len(key) == 1 else tuple_(*key).in_([tuple(row) for row in part])
        )
        tx.execute(delete(table).where(chosen))
    return len(keys)
