"""Connections and transactions, on SQLite and on PostgreSQL."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Select, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool

from homeostat.model.errors import Transient
from homeostat.store.encryption.encrypted_cells import NO_KEYS, Keyring, keys_of, use_keys
from homeostat.store.sql import migration, notices
from homeostat.store.sql.migration import Phase, SchemaStatus
from homeostat.store.sql.notices import Channel, Notices, Notifications, Pipes
from homeostat.store.sql.write_queue import WriteQueue

APPLICATION = "homeostat"
RECENT_S = 10.0
"""How long a time that a server's clock has shown is counted on by this machine's own."""
# Ends only sessions that hold locks: a session gets a transaction id (backend_xid) with its first write, and
# `ClientRead` means that the server is waiting for the client's next statement.
END_FROZEN = text(
    """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = :application AND backend_xid IS NOT NULL
      AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - make_interval(secs => :silent_s)
    """
)
RUNNING = text("SELECT pg_snapshot_xmin(now)::text, pg_snapshot_xmax(now)::text FROM pg_current_snapshot() AS now")


@dataclass(frozen=True, slots=True)
class Statements:
    """Where single statements are run.

    Attributes:
        read: Opens a transaction of one statement that changes nothing.
        write: Opens a transaction of one statement that may change rows.
    """

    read: Callable[[], contextlib.AbstractContextManager[Connection]]
    write: Callable[[], contextlib.AbstractContextManager[Connection]]


class Database:
    """One database of the service.

    Args:
        url: SQLAlchemy URL, `sqlite:///path` or `postgresql+psycopg://…`.
        now: The clock, in seconds since the epoch. On PostgreSQL the server's own clock decides about leases, whatever
            `now` says; see `now_of`.
        keys: The keys that encrypt secrets.
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
        """Notices that something is due, sent to and received from all processes."""
        self.insert: Any = sqlite.insert if self.is_sqlite else postgresql.insert
        """The dialect's INSERT, which supports ON CONFLICT."""

    @property
    def keys(self) -> Keyring:
        """The keys that encrypt and decrypt secrets in this database."""
        return keys_of(self.engine.dialect)

    def use_keys(self, keys: Keyring) -> None:
        use_keys(self.engine.dialect, keys)

    def _connect(self, pool_size: int) -> Engine:
        arguments: dict[str, Any]
        if not self.is_sqlite:
            # No prepared statements: a plan from the time when a table was small would scan all of it once it is
            # large, and a statement prepared before a migration fails after it.
            arguments = {"application_name": APPLICATION, "prepare_threshold": None}
            return create_engine(
                self.url, pool_size=pool_size, max_overflow=20, pool_pre_ping=True, connect_args=arguments
            )
        arguments = {"timeout": 30, "check_same_thread": False}
        if not self._path:
            # A database in memory lives as long as its connection: all threads share a single one.
            engine = create_engine(self.url, poolclass=StaticPool, connect_args=arguments)
        else:
            engine = create_engine(self.url, pool_size=pool_size, max_overflow=20, connect_args=arguments)
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", _sqlite_begin)
        return engine

    def _channel(self) -> Channel | None:
        """Return the channel to other processes; None for an SQLite database in memory, which has no others."""
        if not self.is_sqlite:
            return Notifications(self.engine)
        directory, name = os.path.split(self._path)
        return Pipes(os.path.join(directory, f"notices-{name}")) if name else None

    def migrate(self, phase: Phase = Phase.ALL) -> SchemaStatus:
        """Bring the schema to this version; create it in an empty database.

        Raises:
            Outdated: A newer version has removed what this one needs.
        """
        with self.engine.connect() as connection:
            # On SQLite the transactions of a migration exclude each other anyway.
            lock = contextlib.nullcontext() if self.is_sqlite else _advisory_lock(connection)
            with lock:
                return migration.migrate(connection, phase)

    def schema_status(self) -> SchemaStatus:
        """Return how far the schema has been migrated.

        Raises:
            Transient: The database does not answer.
        """
        with self.read() as tx:
            return migration.schema_status(tx)

    @property
    def missing_file(self) -> str:
        """The path of an SQLite database that does not exist yet, since connecting would create it; otherwise ""."""
        return self._path if self._path and not os.path.exists(self._path) else ""

    @property
    def _path(self) -> str:
        """The path of an SQLite database that is a file; otherwise ""."""
        path = make_url(self.url).database if self.is_sqlite else None
        return path if path not in (None, ":memory:") else ""

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a read transaction in which all statements see one snapshot of the database.

        Raises:
            Transient: The database does not answer.
        """
        with _as_transient(), self.engine.connect() as connection:
            options: dict[str, Any] = {"homeostat_read": True}
            if not self.is_sqlite:
                # PostgreSQL's default takes a new snapshot for each statement: the rows of a shard could be older than
                # the observations read after them. SQLite keeps one snapshot for a transaction by itself.
                options["isolation_level"] = "REPEATABLE READ"
            yield connection.execution_options(**options)

    @contextlib.contextmanager
    def single_read(self) -> Iterator[Connection]:
        """Open a connection for a single statement that changes nothing.

        On PostgreSQL this saves the messages that begin and end a transaction.

        Raises:
            Transient: The database does not answer.
        """
        if self.is_sqlite:
            with self.read() as tx:
                yield tx
            return
        with _as_transient(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextlib.contextmanager
    def statements(self) -> Iterator["Statements"]:
        """Open a connection for a few statements, each of which is a transaction of its own.

        On PostgreSQL this saves the messages that begin and end transactions, and those that fetch connections.

        Raises:
            Transient: The database does not answer.
        """
        if self.is_sqlite:
            yield Statements(self.single_read, self.write)
            return
        with self.single_read() as connection:

            def same() -> contextlib.AbstractContextManager[Connection]:
                return contextlib.nullcontext(connection)

            yield Statements(same, same)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a write transaction, and commit it at the end of the block.

        Raises:
            Transient: The database does not answer.
        """
        with _as_transient(), self._turn(), self.engine.connect() as connection:
            try:
                with connection.begin():
                    yield connection
            finally:
                # The flag is part of the pooled connection and outlives this transaction, so it is taken after a
                # rollback, too. Reading it from an invalidated connection would open a new one just for that.
                due = not connection.invalidated and notices.take_flag(connection)
        # Only after the commit: a listener that looked earlier would not see the rows, and would go back to sleep.
        if due:
            self.notices.notify()

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        """Wait for this writer's turn on an SQLite file, whose own way to let writers wait is unfair."""
        return self._queue.turn() if self._queue is not None else contextlib.nullcontext()

    def now_of(self, connection: Connection) -> float:
        """Return the time that all workers agree on, in seconds since the epoch: the server's on PostgreSQL."""
        if self.is_sqlite:
            return self.now()
        agreed = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        self._agreed = agreed, time.monotonic()
        return agreed

    def recent_now(self, connection: Connection) -> float:
        """Return the same time without a query, where it was asked for within `RECENT_S`."""
        if self._agreed is not None and time.monotonic() - self._agreed[1] < RECENT_S:
            return self.agreed_now()
        return self.now_of(connection)

    def agreed_now(self) -> float:
        """Return the agreed time without a query: the last result of `now_of` plus the time since then.

        Changes of this machine's clock do not affect it, once `now_of` has read the clock of a server.
        """
        if self._agreed is None:
            return self.now()
        server_now, at = self._agreed
        return server_now + time.monotonic() - at

    def running_transactions(self, tx: Connection) -> tuple[int, int]:
        """Return the ids of two transactions: the oldest writer that still runs as seen by `tx`, and the next to begin.

        They are equal when no writer runs, and always on SQLite, where writers exclude one another.
        """
        if self.is_sqlite:
            return 0, 0
        oldest, following = tx.execute(RUNNING).one()
        return int(oldest), int(following)

    def end_frozen_sessions(self, tx: Connection, silent_s: float) -> int:
        """End sessions of the service that have written in a transaction and been silent since, for `silent_s` seconds.

        A worker that is frozen inside a transaction keeps its row locks, so that no other worker could take its shards
        over although the lease has run out. PostgreSQL's own limit for idle transactions
        (`idle_in_transaction_session_timeout`) does not see a client that froze in the middle of a batch of statements.

        Returns:
            How many sessions were ended.
        """
        if self.is_sqlite:
            return 0
        return len(tx.execute(END_FROZEN, {"application": APPLICATION, "silent_s": silent_s}).all())

    def advisory_lock(self, tx: Connection, what: str) -> None:
        """Exclude other transactions that name the same `what` until this one ends.

        For checks that no row lock can protect, since the row that would conflict does not exist yet.
        """
        if not self.is_sqlite:
            tx.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))"), {"what": what})

    def close(self) -> None:
        self.notices.close()
        self.engine.dispose()


def sqlite_url(path: str | os.PathLike[str]) -> str:
    return f"sqlite:///{os.path.abspath(path)}"


def row_lock(rows: Select[Any]) -> Select[Any]:
    """Lock these rows against other writers until the transaction ends; SQLite's writers exclude one another anyway.

    The lock is FOR NO KEY UPDATE, which does not conflict with the checks of foreign keys. Under a plain FOR UPDATE, a
    transaction that inserts a row referring to these (an event of a stack) would wait, and two of them could deadlock.
    """
    return rows.with_for_update(key_share=True)


@contextlib.contextmanager
def _as_transient() -> Iterator[None]:
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
    """Let only one process migrate at a time.

    The lock belongs to the session: it holds however many transactions the migration takes.
    """
    connection.execute(text("SELECT pg_advisory_lock(727373)"))
    try:
        yield
    except BaseException:
        connection.rollback()  # in a failed transaction the unlock would fail, too, and hide the error
        raise
    finally:
        connection.execute(text("SELECT pg_advisory_unlock(727373)"))
        connection.commit()


def _sqlite_connected(connection: Any, _record: Any) -> None:
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


def _sqlite_begin(connection: Connection) -> None:
    """Begin a transaction; a writer takes the write lock at once.

    A transaction that begins as a reader and writes later cannot wait for the lock: if another writer has committed
    since its snapshot, SQLite fails it with SQLITE_BUSY immediately, whatever the timeout.
    """
    reading = connection.get_execution_options().get("homeostat_read")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
