"""Databases to measure on: an SQLite file, or a PostgreSQL or MariaDB server of the benchmark's own."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import event, text
from tests import mariadb, postgresql
from tests.databases import new_database

from homeostat.store import schema
from homeostat.store.database import Database, sqlite_url

KINDS = ("sqlite", "postgresql", "mariadb")
SETTINGS = {
    "sqlite": "WAL, synchronous=NORMAL, a file on the local disk",
    "postgresql": f"{', '.join(postgresql.FAST)}; server on the same machine, through a Unix socket",
    "mariadb": f"{' '.join(mariadb.FAST)}; server on the same machine, through a Unix socket",
}


@contextlib.contextmanager
def database_url(kind: str) -> Iterator[str]:
    """An empty database. Fails: RuntimeError when there is no such server."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="homeostat-bench-") as folder:
            yield sqlite_url(Path(folder) / "bench.db")
        return
    if kind == "mariadb":
        program = mariadb.find_program()
        if program is None:
            raise RuntimeError("no mariadbd: install the package 'mariadb-server'")
        with mariadb.running(program) as server, new_database(server) as url:
            yield url
        return
    programs = postgresql.find_programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server programs: install the package 'postgresql'")
    with postgresql.running(programs) as url:
        yield url


SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
    "mariadb": "SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema = database()",
}


def kind_of(db: Database) -> str:
    return {"sqlite": "sqlite", "mysql": "mariadb"}.get(db.engine.dialect.name, "postgresql")


def size_of(db: Database) -> int:
    """Bytes that the database takes."""
    with db.write() as tx:
        if kind_of(db) == "mariadb":  # otherwise it says what it knew when the tables were small
            tx.execute(text(f"ANALYZE TABLE {', '.join(f'`{name}`' for name in schema.metadata.tables)}"))
        return int(tx.execute(text(SIZE[kind_of(db)])).scalar_one())


class Statements:
    """Counts the statements sent to a database, a batch for the driver as one, and the transactions that write."""

    def __init__(self, db: Database) -> None:
        self.count = self.transactions = 0
        event.listen(db.engine, "before_cursor_execute", self._sent)
        event.listen(db.engine, "commit", self._committed)

    def _sent(self, *_: object) -> None:
        self.count += 1

    def _committed(self, *_: object) -> None:
        self.transactions += 1


def opened(url: str, now: Callable[[], float] = time.time) -> Database:
    db = Database(url, now)
    db.migrate()
    return db
