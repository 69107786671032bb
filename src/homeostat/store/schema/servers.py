"""Tables only for MariaDB and MySQL, in place of features built into PostgreSQL (ADR 0083)."""

from sqlalchemy import BigInteger, Column, Table, Text

from homeostat.store.schema.base import Sequence, metadata

ONLY_MYSQL = {"only": "mysql"}
"""Marks a table that no other database has."""

latch = Table(
    "latch",
    metadata,
    Column("name", Text, primary_key=True),
    Column("turns", BigInteger, nullable=False),
    info=ONLY_MYSQL,
)
"""Counters: incremented by a transaction to exclude others until its end, and for each notice."""

transaction_mark = Table(
    "transaction_mark",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    info=ONLY_MYSQL,
)
"""A mark of each transaction that stores events, stored before its first event."""
