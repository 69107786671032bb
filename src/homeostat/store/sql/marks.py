"""Marks of transactions that store events, from which readers know the running ones.

PostgreSQL reports running transactions itself, and SQLite has one writer at a time; for MariaDB and MySQL see
`backends.mysql`.
"""

from sqlalchemy import Connection, insert

from homeostat.store import schema

_MARKED = "homeostat_marked"


def mark(tx: Connection) -> None:
    """Mark this transaction before it stores its first event, unless marked already."""
    if tx.dialect.name == "mysql" and tx.info.get(_MARKED) is not tx.get_transaction():
        tx.execute(insert(schema.transaction_mark), {})
        tx.info[_MARKED] = tx.get_transaction()
