"""Databases to measure on: an SQLite file, or a PostgreSQL server of the benchmark's own."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import event, text
from tests import postgresql

from homeostat.store.database import Database, sqlite_url

KINDS = ("sqlite", "postgresql")
SETTINGS = {
    "sqlite": "WAL, synchronous=NORMAL, a file on the local disk",
    "postgresql": f"{', '.join(postgresql.FAST)}; server on the same machine, through a Unix socket",
}


@contextlib.contextmanager
def database_url(kind: str) -> Iterator[str]:
    """An empty database. Fails: RuntimeError when there is no PostgreSQL."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="homeostat-bench-") as folder:
            yield sqlite_url(Path(folder) / "bench.db")
        return
    programs = postgresql.find_programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server programs: install the package 'postgresql'")
    with postgresql.running(programs) as url:
        yield url


def kind_of(db: Database) -> str:
    return "sqlite" if db.is_sqlite else "postgresql"


def size_of(db: Database) -> int:
    """Bytes that the database takes."""
    question = (
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        if db.is_sqlite
        else "SELECT pg_database_size(current_database())"
    )
    with db.read() as tx:
        return int(tx.execute(text(question)).scalar_one())


class Statements:
    """Counts what is sent to a database; a batch for the driver is one."""

    def __init__(self, db: Database) -> None:
        self.count = 0
        event.listen(db.engine, "before_cursor_execute", self._sent)

    def _sent(self, *_: object) -> None:
        self.count += 1


def opened(url: str) -> Database:
    db = Database(url, time.time)
    db.migrate()
    return db
