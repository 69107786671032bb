"""A number of the row that an UPDATE of one row has changed, without another statement.

MariaDB and MySQL know no UPDATE … RETURNING, but send a number along with the answer to every statement.
"""

from typing import Any

from sqlalchemy import Column, CursorResult, Update, UpdateBase, func


def returning(statement: Update, column: Column[int], *, returns: bool) -> UpdateBase:
    """Let an UPDATE return an integer that it does not change.

    Args:
        statement: The UPDATE.
        column: The column of the integer.
        returns: Whether the dialect knows RETURNING (`update_returning`).
    """
    return statement.returning(column) if returns else statement.values({column: func.last_insert_id(column)})


def returned(result: CursorResult[Any]) -> int | None:
    """Return that integer, None if no row was changed."""
    if result.returns_rows:
        found = result.scalar_one_or_none()
        return None if found is None else int(found)
    return int(result.lastrowid) if result.rowcount else None
