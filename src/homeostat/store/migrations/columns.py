"""Short forms for columns and keys of the first revisions; unchangeable, like these revisions."""

from typing import Any

import sqlalchemy as sa

SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Columns = list[sa.Column[Any]]


def texts(*names: str, nullable: bool = False) -> Columns:
    return _columns(sa.Text, names, nullable)


def integers(*names: str, nullable: bool = False) -> Columns:
    return _columns(sa.Integer, names, nullable)


def counts(*names: str, nullable: bool = False) -> Columns:
    return _columns(sa.BigInteger, names, nullable)


def doubles(*names: str, nullable: bool = False) -> Columns:
    return _columns(sa.Double, names, nullable)


def flags(*names: str, nullable: bool = False) -> Columns:
    return _columns(sa.Boolean, names, nullable)


def zero(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), server_default="0", nullable=False)


def empty(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), server_default="", nullable=False)


def primary(table: str, *names: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*names, name=f"pk_{table}")


def foreign(name: str, columns: list[str], targets: list[str], ondelete: str | None = "CASCADE") -> sa.Constraint:
    return sa.ForeignKeyConstraint(columns, targets, name=name, ondelete=ondelete)


def where(condition: str) -> dict[str, Any]:
    """Return the arguments of a partial index, for the databases that have these."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _columns(type_: Any, names: tuple[str, ...], nullable: bool) -> Columns:
    return [sa.Column(name, type_(), nullable=nullable) for name in names]
