"""Notices by a row that is read again and again, for servers that send none (ADR 0083)."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.dialects import postgresql

from homeostat.store import schema
from homeostat.store.sql.notices import Sender

POLL_S = 0.05
"""Time between two looks at the row."""
NAME = "notice"
_latch = schema.latch


class Polls:
    """Notices by a count in a row of the table `latch`.

    A thread sends them: a count inside the writing transactions would be a row that all of them lock until they commit.
    In a Galera cluster another node may count at the same moment, and this count is lost: that is a notice as well.
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
            # The driver's own cursor: twenty times a second, all that SQLAlchemy does for a statement would be felt.
            cursor = connection.connection.cursor()
            known = _count(cursor)
            open_()
            while not stopped():
                time.sleep(POLL_S)
                found = _count(cursor)
                if found != known:
                    known = found
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
