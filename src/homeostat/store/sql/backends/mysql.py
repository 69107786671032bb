"""MariaDB and MySQL, by PyMySQL.

They lack notices, named locks that end with the transaction, and information for every user on running transactions.
Rows of two tables replace these (the last of `schema.records`).
"""

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, create_engine, delete, event, make_url, select, text
from sqlalchemy.dialects import postgresql

from homeostat.store import schema
from homeostat.store.sql import mysql_dialect
from homeostat.store.sql.backends.backend import APPLICATION, Backend
from homeostat.store.sql.notices import Channel
from homeostat.store.sql.polled_notices import Polls

LOCK_S = 30
"""Time that a statement waits for the lock of a row: as on SQLite."""
FROZEN_S = 5
"""Seconds after which the server ends a session that has written in a transaction and been silent since: a lease."""
LOCKS = 256
"""Number of rows for advisory locks; names that share a row exclude each other needlessly."""
KEPT = 10_000
"""Number of marks stored beyond the oldest running transaction, for snapshots in which these transactions still ran."""
_CONNECTED = (
    f"SET NAMES utf8mb4 COLLATE {mysql_dialect.COLLATION}",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    # Strict, or long texts would be truncated. In UTC, or the clock would go back once a year.
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',"
    f" time_zone = '+00:00', innodb_lock_wait_timeout = {LOCK_S}",
)
_latch, _mark = schema.latch, schema.transaction_mark


class MySQL(Backend):
    """A MariaDB or MySQL server, or a Galera cluster of them."""

    insert = staticmethod(postgresql.insert)
    """The dialect turns its ON CONFLICT into ON DUPLICATE KEY UPDATE."""

    def __init__(self, url: str, pool_size: int) -> None:
        self._oldest = self._forgotten = 0
        arguments = {"autocommit": True, "program_name": APPLICATION, "charset": "utf8mb4"}
        self.engine = create_engine(
            make_url(url).set(drivername=mysql_dialect.DRIVER),
            pool_size=pool_size,
            max_overflow=20,
            # The server ends silent sessions (see `_connected`): the pool notices before their next use.
            pool_pre_ping=True,
            connect_args=arguments,
        )
        event.listen(self.engine, "connect", _connected)
        event.listen(self.engine, "begin", _begin)

    def channel(self) -> Channel | None:
        return Polls(self.engine)

    def reading(self, connection: Connection) -> None:
        connection.execution_options(homeostat_read=True)

    def single(self, connection: Connection) -> bool:
        """Save the messages that begin and end a transaction: sessions are in autocommit."""
        connection.execution_options(homeostat_single=True)
        return True

    @contextlib.contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        """Take a lock of the session, not of a transaction: each change of the schema commits."""
        name = "sha1(concat(database(), '.homeostat'))"
        connection.execute(text(f"SELECT get_lock({name}, 1000000)"))
        try:
            yield
        finally:
            connection.rollback()
            connection.execute(text(f"SELECT release_lock({name})"))
            connection.rollback()

    # Not `now()`: on a replica it is the beginning of the statement's transaction.
    clock = "unix_timestamp(sysdate(6))"

    def running_transactions(self, tx: Connection) -> tuple[int, int]:
        """Read the marks that transactions store before their events.

        A dirty read sees a mark as soon as it is stored, the snapshot of `tx` only if the mark's transaction has
        committed before. So the transactions of marks seen by the dirty read alone were running, or begin later.
        """
        beyond = _mark.c.id >= self._oldest
        with self.engine.connect() as other:
            self.single(other)
            other.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            known = set(other.execute(select(_mark.c.id).where(beyond)).scalars())
        ended = set(tx.execute(select(_mark.c.id).where(beyond)).scalars())
        following = max(known, default=self._oldest - 1) + 1
        self._oldest = min(known - ended, default=following)
        self._forget_marks()
        return self._oldest, following

    def _forget_marks(self) -> None:
        if self._oldest < self._forgotten + 2 * KEPT:
            return
        self._forgotten = self._oldest - KEPT
        with self.engine.begin() as tx:
            tx.execute(delete(_mark).where(_mark.c.id < self._forgotten))

    def advisory_lock(self, tx: Connection, name: str) -> None:
        """Lock the row for this name by an update, so that Galera grants the lock to a single node."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2]) % LOCKS
        new = postgresql.insert(_latch).values(name=f"lock {number}", turns=1)
        tx.execute(new.on_conflict_do_update(index_elements=["name"], set_={"turns": _latch.c.turns + 1}))


def _connected(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        for statement in _CONNECTED:
            cursor.execute(statement)
        # No user may see which sessions are in transactions, so the server ends sessions that froze there. MySQL has no
        # such limit for transactions only: any silent session ends, and the pool opens a new session.
        cursor.execute("SELECT version()")
        is_mariadb = "mariadb" in cursor.fetchone()[0].lower()
        limit = "idle_write_transaction_timeout" if is_mariadb else "wait_timeout"
        cursor.execute(f"SET SESSION {limit} = {FROZEN_S}")


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("homeostat_read"):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    elif not options.get("homeostat_single"):
        connection.exec_driver_sql("START TRANSACTION")
