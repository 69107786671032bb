"""Notices by polling a row, for servers without notifications (ADR 0083)."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.dialects import postgresql

from homeostat.store import schema
from homeostat.store.sql.notices import Sender

POLL_S = 0.05
"""Time between two reads of the row."""
NAME = "notice"
_latch = schema.latch


class Polls:
    """Notices by a count in a row of the table `latch`, incremented by a thread.

    If writing transactions incremented the count, all of them would lock the row until they commit. In a Galera cluster
    a concurrent increment on another node may be lost, but the count still changes: also a notice.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sender = Sender(self._count_up)

    def send(self) -> None:
        self._sender.send()

    def _count_up(self) -> None:
        new = postgresql.insert(_latch).values(name=NAME, turns=1)
        with self._connection() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["name"], set_={"turns": _latch.c.turns + 1}))

    def _connection(self) -> Connection:
        return self._engine.connect().execution_options(homeostat_single=True)

    def receive(self, stopped: Callable[[], bool], open_: Callable[[], None]) -> Iterator[None]:
        with self._connection() as connection, _as_connection_error(self._engine):
            # The driver's own cursor: twenty times a second, the overhead of SQLAlchemy per statement would matter.
            cursor = connection.connection.cursor()
            count = _count(cursor)
            open_()
            while not stopped():
                time.sleep(POLL_S)
                newest = _count(cursor)
                if newest != count:
                    count = newest
                    yield

    def close(self) -> None:
        self._sender.close()


def _count(cursor: Any) -> int:
    cursor.execute(f"SELECT turns FROM {_latch.name} WHERE name = '{NAME}'")
    row = cursor.fetchone()
    return int(row[0]) if row is not None else 0


@contextlib.contextmanager
def _as_connection_error(engine: Engine) -> Iterator[None]:
    try:
        yield
    except engine.dialect.loaded_dbapi.Error as error:
        raise ConnectionError(error) from error
