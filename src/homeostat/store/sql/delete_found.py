"""Deleting rows by what other rows say of them."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, select, tuple_

AT_ONCE = 500
"""Rows that one statement deletes."""


def delete_found(tx: Connection, table: Table, *where: ColumnElement[bool]) -> int:
    """Delete the rows that meet all conditions, and return how many those were.

    They are looked for first: MariaDB locks all rows that a DELETE reads, also those of other tables, and so would wait
    for transactions that wait for this one.
    """
    key = list(table.primary_key.columns)
    found: list[Any] = list(tx.execute(select(*key).where(*where)))
    for start in range(0, len(found), AT_ONCE):
        some = found[start : start + AT_ONCE]
        chosen = (
            key[0].in_([row[0] for row in some]) if len(key) == 1 else tuple_(*key).in_([tuple(row) for row in some])
        )
        tx.execute(delete(table).where(chosen))
    return len(found)
