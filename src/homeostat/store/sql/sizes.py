"""How many bytes cells have, for the limits of what requests add up to."""

from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Text, func, select, type_coerce


def kept(tx: Connection, size: Column[int], columns: tuple[Column[Any], ...], *where: ColumnElement[bool]) -> int:
    """Return about how many bytes these cells have, by the sizes that are stored with their rows, which an index has.

    Rows without a size were stored by a version before: their cells are read.
    """
    known = tx.execute(select(func.coalesce(func.sum(size), 0)).where(*where)).scalar_one()
    return int(known) + total(tx, columns, *where, size.is_(None))


def total(tx: Connection, columns: tuple[Column[Any], ...], *where: ColumnElement[bool]) -> int:
    """Return about how many bytes the cells of these columns have, as they are stored, in the rows that are meant."""
    each = [func.coalesce(func.length(type_coerce(column, Text)), 0) for column in columns]
    sums = [func.coalesce(func.sum(one), 0) for one in each]
    return sum(int(size) for size in tx.execute(select(*sums).where(*where)).one())
