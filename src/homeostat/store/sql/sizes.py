"""Sizes of cells in bytes, for limits on the total size of requests."""

from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Text, func, select, type_coerce


def stored(tx: Connection, size: Column[int], columns: tuple[Column[Any], ...], *where: ColumnElement[bool]) -> int:
    """Return the approximate size of these cells in bytes, from the sizes stored with their rows, which have an index.

    Rows without a size were stored by the previous version: their cells are read.
    """
    known = tx.execute(select(func.coalesce(func.sum(size), 0)).where(*where)).scalar_one()
    return int(known) + total(tx, columns, *where, size.is_(None))


def total(tx: Connection, columns: tuple[Column[Any], ...], *where: ColumnElement[bool]) -> int:
    """Return the approximate size in bytes of the stored cells of these columns, in rows that meet all conditions."""
    lengths = [func.coalesce(func.length(type_coerce(column, Text)), 0) for column in columns]
    sums = [func.coalesce(func.sum(length), 0) for length in lengths]
    return sum(int(size) for size in tx.execute(select(*sums).where(*where)).one())
