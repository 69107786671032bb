"""Rows with a type: mypy checks the names and the types of selected columns.

    typed.rows(StackRow, tx.execute(select(stack).where(stack.c.id == id))).first()

This costs nothing, since SQLAlchemy's rows are named tuples already. The tests compare the columns of every result with
its type (`tests/conftest.py`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import CursorResult

R_co = TypeVar("R_co", covariant=True)


class TypedRows(Protocol[R_co]):
    """The methods of SQLAlchemy's `Result` that are used."""

    def __iter__(self) -> Iterator[R_co]: ...

    def all(self) -> Sequence[R_co]: ...

    def first(self) -> R_co | None: ...

    def one(self) -> R_co: ...

    def one_or_none(self) -> R_co | None: ...


def rows(kind: type[R_co], result: CursorResult[*tuple[Any, ...]]) -> TypedRows[R_co]:
    """Return a result unchanged, with the type of its rows.

    Args:
        kind: A `NamedTuple` of the selected columns, in their order: from `schema.rows`, or specific to this query.
    """
    return cast(TypedRows[R_co], result)
