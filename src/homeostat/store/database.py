"""Connections and transactions, and whatever SQLite and PostgreSQL need apart."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Engine, Select, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool

from homeostat.model.errors import Transient
from homeostat.store.encryption.sealed_cells import NO_KEYS, Keyring, keys_of, use_keys
from homeostat.store.sql import migration, notices
from homeostat.store.sql.migration import Phase, SchemaStatus
from homeostat.store.sql.notices import Channel, Notices, Notifications, Pipes
from homeostat.store.sql.write_queue import WriteQueue

APPLICATION = "homeostat"
END_FROZEN = text(
    """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = :application AND backend_xid IS NOT NULL
      AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - make_interval(secs => :silent_s)
    """
)
RUNNING = text("SELECT pg_snapshot_xmin(now)::text, pg_snapshot_xmax(now)::text FROM pg_current_snapshot() AS now")


class Database:
    """One database of the service.

    Takes: url — SQLAlchemy URL, `sqlite:///path` or `postgresql+psycopg://…`; now — clock, seconds since the epoch
    (PostgreSQL's own clock decides about leases whatever `now` says, see `now_of`); keys — seal secrets.
    """

    def __init__(self, url: str, now: Callable[[], float], *, pool_size: int = 10, keys: Keyring = NO_KEYS) -> None:
        self.url = url
        self.now = now
        self._agreed: tuple[float, float] | None = None
        self.is_sqlite = make_url(url).get_backend_name() == "sqlite"
        self.engine = self._connect(pool_size)
        self.use_keys(keys)
        self._queue = WriteQueue(f"{self._path}-queue") if self._path else None
        self.notices = Notices(self._channel())
        """That something is due, from and to all processes."""
        self.insert: Any = sqlite.insert if self.is_sqlite else postgresql.insert
        """Dialect's INSERT, which knows ON CONFLICT."""

    @property
    def keys(self) -> Keyring:
        """What seals secrets here, and opens them."""
        return keys_of(self.engine.dialect)

    def use_keys(self, keys: Keyring) -> None:
        use_keys(self.engine.dialect, keys)

    def _connect(self, pool_size: int) -> Engine:
        arguments: dict[str, Any]
        if not self.is_sqlite:
            # A plan that was kept from when a table was small would read all of it when it is large, and statements
            # that were prepared before a migration fail after it.
            arguments = {"application_name": APPLICATION, "prepare_threshold": None}
            return create_engine(
                self.url, pool_size=pool_size, max_overflow=20, pool_pre_ping=True, connect_args=arguments
            )
        arguments = {"timeout": 30, "check_same_thread": False}
        if not self._path:
            engine = create_engine(self.url, poolclass=StaticPool, connect_args=arguments)
        else:
            engine = create_engine(self.url, pool_size=pool_size, max_overflow=20, connect_args=arguments)
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", _sqlite_begin)
        return engine

    def _channel(self) -> Channel | None:
        """An SQLite database in memory is this process's own."""
        if not self.is_sqlite:
            return Notifications(self.engine)
        directory, name = os.path.split(self._path)
        return Pipes(os.path.join(directory, f"notices-{name}")) if name else None

    def migrate(self, phase: Phase = Phase.ALL) -> SchemaStatus:
        """Bring the schema to this version (creates it in an empty database). Fails: Outdated."""
        with self.engine.connect() as connection:
            lock = contextlib.nullcontext() if self.is_sqlite else _advisory_lock(connection)
            with lock:
                return migration.migrate(connection, phase)

    def standing(self) -> SchemaStatus:
        """How far the schema is. Fails: Transient when the database does not answer."""
        with self.read() as tx:
            return migration.standing(tx)

    @property
    def missing_file(self) -> str:
        """Path of an SQLite database that does not exist: to connect would make it. Otherwise empty."""
        return self._path if self._path and not os.path.exists(self._path) else ""

    @property
    def _path(self) -> str:
        """Of an SQLite database that is a file, otherwise empty."""
        path = make_url(self.url).database if self.is_sqlite else None
        return path if path not in (None, ":memory:") else ""

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent look. Fails: Transient when the database does not answer."""
        with _translated(), self.engine.connect() as connection:
            options: dict[str, Any] = {"homeostat_read": True}
            if not self.is_sqlite:
                options["isolation_level"] = "REPEATABLE READ"
            yield connection.execution_options(**options)

    @contextlib.contextmanager
    def glance(self) -> Iterator[Connection]:
        """For a single statement that changes nothing: PostgreSQL is not asked to begin and end a transaction.

        Fails: Transient when the database does not answer.
        """
        if self.is_sqlite:
            with self.read() as tx:
                yield tx
            return
        with _translated(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, committed at the end. Fails: Transient when the database does not answer."""
        with _translated(), self._turn(), self.engine.connect() as connection:
            try:
                with connection.begin():
                    yield connection
            finally:
                due = not connection.invalidated and notices.take_flag(connection)
        if due:
            self.notices.tell()

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        """SQLite's own queue of writers is unfair."""
        return self._queue.turn() if self._queue is not None else contextlib.nullcontext()

    def now_of(self, connection: Connection) -> float:
        """The time that all workers agree on: the database's where it is a server."""
        if self.is_sqlite:
            return self.now()
        agreed = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        self._agreed = agreed, time.monotonic()
        return agreed

    def agreed_now(self) -> float:
        """The same without asking: what the last `now_of` told, and the time since then. Setting this machine's clock
        does not move it."""
        if self._agreed is None:
            return self.now()
        told, at = self._agreed
        return told + time.monotonic() - at

    def running(self, tx: Connection) -> tuple[int, int]:
        """Numbers of transactions: of the oldest writer that has not ended as `tx` sees it, and of the next to begin.
        Equal when no writer runs, as always where writers exclude one another."""
        if self.is_sqlite:
            return 0, 0
        oldest, following = tx.execute(RUNNING).one()
        return int(oldest), int(following)

    def end_frozen(self, tx: Connection, silent_s: float) -> int:
        """End sessions of the service that have written in a transaction and then said nothing for so long.

        A worker that is frozen there would keep its shards from everybody. (PostgreSQL's own limit for idle
        transactions does not see it in the middle of a batch.) Gives how many were ended.
        """
        if self.is_sqlite:
            return 0
        return len(tx.execute(END_FROZEN, {"application": APPLICATION, "silent_s": silent_s}).all())

    def one_by_one(self, tx: Connection, what: str) -> None:
        """Let nobody else pass here for the same thing until the transaction ends."""
        if not self.is_sqlite:
            tx.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))"), {"what": what})

    def close(self) -> None:
        self.notices.close()
        self.engine.dispose()


def sqlite_url(path: str | os.PathLike[str]) -> str:
    return f"sqlite:///{os.path.abspath(path)}"


def held_back(rows: Select[Any]) -> Select[Any]:
    """Keep these rows from other writers until the transaction ends; SQLite's writers exclude one another anyway.

    The lock leaves room for rows that merely refer to these (an event its stack), which would deadlock otherwise.
    """
    return rows.with_for_update(key_share=True)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise Transient(f"the database does not answer: {error.orig}") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Transient(f"the database connection was lost: {error.orig}") from error
        raise


@contextlib.contextmanager
def _advisory_lock(connection: Connection) -> Iterator[None]:
    """Only one process migrates at a time."""
    connection.execute(text("SELECT pg_advisory_lock(727373)"))
    try:
        yield
    finally:
        connection.execute(text("SELECT pg_advisory_unlock(727373)"))
        connection.commit()


def _sqlite_connected(connection: Any, _record: Any) -> None:
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


def _sqlite_begin(connection: Connection) -> None:
    """Writers queue at BEGIN, never in the middle: an upgrade from read to write could not wait."""
    reading = connection.get_execution_options().get("homeostat_read")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
