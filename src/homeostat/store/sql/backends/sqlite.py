"""SQLite: a file, or a database in memory. Its writers exclude one another."""

import contextlib
import os
from typing import Any

from sqlalchemy import Connection, create_engine, event, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import StaticPool

from homeostat.store.sql.backends.backend import Backend
from homeostat.store.sql.notices import Channel, Pipes
from homeostat.store.sql.write_queue import WriteQueue


class SQLite(Backend):
    """SQLite by the driver of Python itself."""

    insert = staticmethod(sqlite.insert)

    def __init__(self, url: str, pool_size: int) -> None:
        path = make_url(url).database
        self.path = path if path and path != ":memory:" else ""
        self._queue = WriteQueue(f"{self.path}-queue") if self.path else None
        arguments = {"timeout": 30, "check_same_thread": False}
        if not self.path:
            # A database in memory lives as long as its connection: all threads share a single one.
            self.engine = create_engine(url, poolclass=StaticPool, connect_args=arguments)
        else:
            self.engine = create_engine(url, pool_size=pool_size, max_overflow=20, connect_args=arguments)
        event.listen(self.engine, "connect", _connected)
        event.listen(self.engine, "begin", _begin)

    def channel(self) -> Channel | None:
        directory, name = os.path.split(self.path)
        return Pipes(os.path.join(directory, f"notices-{name}")) if name else None

    def reading(self, connection: Connection) -> None:
        # SQLite keeps one snapshot for a transaction by itself.
        connection.execution_options(homeostat_read=True)

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """Wait in the queue of an SQLite file, whose own way to let writers wait is unfair."""
        return self._queue.turn() if self._queue is not None else contextlib.nullcontext()


def _connected(connection: Any, _record: Any) -> None:
    # Otherwise the driver begins transactions by itself, before the first write and without IMMEDIATE.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        "busy_timeout=30000",
        "cache_size=-16384",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Begin a transaction; a writer takes the write lock at once.

    A transaction that begins as a reader and writes later cannot wait for the lock: if another writer has committed
    since its snapshot, SQLite fails it with SQLITE_BUSY immediately, whatever the timeout.
    """
    reading = connection.get_execution_options().get("homeostat_read")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
