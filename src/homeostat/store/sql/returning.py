"""An integer of the row that an UPDATE of a single row has changed, without another statement.

MariaDB and MySQL lack UPDATE … RETURNING, but send a number along with the response to every statement.
"""

from typing import Any

from sqlalchemy import Column, CursorResult, Update, UpdateBase, func


def returning(statement: Update, column: Column[int], *, returns: bool) -> UpdateBase:
    """Let an UPDATE return an integer column that it does not change.

    Args:
        column: The column of the integer.
        returns: Whether the dialect knows RETURNING (`update_returning`).
    """
    return statement.returning(column) if returns else statement.values({column: func.last_insert_id(column)})


def returned(result: CursorResult[Any]) -> int | None:
    """Return the integer of `returning`, None if no row was changed."""
    if result.returns_rows:
        number = result.scalar_one_or_none()
        return None if number is None else int(number)
    return int(result.lastrowid) if result.rowcount else None
