"""Connections and transactions, on SQLite, on PostgreSQL, and on MariaDB and MySQL."""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Connection, Select, Table, make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from homeostat.model.errors import Outage
from homeostat.store.encryption.encrypted_cells import NO_KEYS, Keyring, keys_of, use_keys
from homeostat.store.sql import bulk, migration, notices, timeline
from homeostat.store.sql.backends import backend_of
from homeostat.store.sql.migration import Phase, SchemaStatus
from homeostat.store.sql.notices import Notices
from homeostat.store.sql.timeline import KeptTime, Timeline

DOES_NOT_ANSWER = "the database does not answer"
ROW_S = 1.0
"""Time for which a row of the timeline counts, if reading it costs a statement."""
RECENT_S = 10.0
"""Time for which this machine's own clock extends the last time of the server's clock."""


class Transaction(Connection):
    """A connection in a transaction, with the particulars of its database.

    A function that takes a transaction neither begins nor ends it, so that callers decide which changes are stored
    together. The time of these changes is often an argument: all rows of a decision bear the time of the decision.
    """

    def __init__(self, database: "Database") -> None:
        super().__init__(database.engine)
        self.database = database
        self._gathers = False
        self._late: list[bulk.Values] = []
        self._late_into: tuple[Table, tuple[str, ...]] | None = None

    def __enter__(self) -> Self:
        # Only for mypy: SQLAlchemy declares a plain `Connection`.
        return self

    @property
    def insert(self) -> Any:
        """The dialect's INSERT, which supports ON CONFLICT."""
        return self.database.backend.insert

    def now(self) -> float:
        """Return the time that all workers agree on, see `Database.now_of`."""
        return self.database.now_of(self)

    def recent_now(self) -> float:
        """Return the same time, usually without a query, see `Database.recent_now`."""
        return self.database.recent_now(self)

    @contextlib.contextmanager
    def gathering(self) -> Iterator[Self]:
        """Insert the late rows of the block at its end."""
        self._gathers = True
        try:
            yield self
            self.insert_now()
        finally:
            self._gathers, self._late = False, []

    def insert_late(self, table: Table, columns: tuple[str, ...], rows: Sequence[bulk.Values]) -> None:
        """Insert rows at the end of the block (see `gathering`), with all others of this kind in a single statement.

        Outside of such a block, where each statement may be a transaction of its own, the rows are inserted at once.
        """
        if self._late_into != (table, columns):
            self.insert_now()
            self._late_into = (table, columns)
        self._late += rows
        if not self._gathers:
            self.insert_now()

    def insert_now(self) -> None:
        """Insert the late rows, if any."""
        if self._late and self._late_into is not None:
            rows, self._late = self._late, []
            bulk.insert(self, *self._late_into, rows)

    def advisory_lock(self, name: str) -> None:
        """Exclude other transactions with a lock of this name until this transaction ends.

        For checks that no row lock can protect, since the conflicting row does not exist yet.
        """
        self.database.backend.advisory_lock(self, name)

    def running(self) -> tuple[int, int]:
        """Return the ids of two transactions: the oldest writer still running as seen by this one, and the next.

        They are equal if no writer runs, and always on SQLite, where writers exclude one another.
        """
        return self.database.backend.running_transactions(self)

    def end_frozen_sessions(self, silent_s: float) -> int:
        """End sessions of the service that have written in a transaction, and then been silent for `silent_s` seconds.

        A worker frozen inside a transaction keeps its row locks, so that no other worker could take over its shards
        although the lease has expired.

        Returns:
            The number of sessions ended here. MariaDB and MySQL end such sessions by themselves.
        """
        return self.database.backend.end_frozen_sessions(self, silent_s)


@dataclass(frozen=True, slots=True)
class Statements:
    """Connections for single statements."""

    read: Callable[[], contextlib.AbstractContextManager[Transaction]]
    write: Callable[[], contextlib.AbstractContextManager[Transaction]]


class Database:
    """A database of the service. Transactions raise `Outage` if it does not answer.

    Args:
        url: SQLAlchemy URL, `sqlite:///path`, `postgresql+psycopg://…` or `mysql+pymysql://…`.
        now: The clock, in seconds since the epoch. A server's own clock decides about leases, whatever `now` says; see
            `now_of`.
        passed: Monotonic seconds (`clock.passed`), to notice steps of the clock; None if the clock is never set.
    """

    def __init__(
        self,
        url: str,
        now: Callable[[], float],
        *,
        passed: Callable[[], float] | None = None,
        pool_size: int = 10,
        keys: Keyring = NO_KEYS,
    ) -> None:
        self.url = url
        self.now = now
        self._agreed: tuple[float, float] | None = None
        self._passed = passed or time.monotonic
        self.kept_time = KeptTime(passed) if passed is not None else None
        self._row_read_at = -math.inf
        self.is_sqlite = make_url(url).get_backend_name() == "sqlite"
        self.backend = backend_of(url, pool_size)
        self.engine = self.backend.engine
        self.use_keys(keys)
        self.notices = Notices(self.backend.channel())
        """Notices that something is due, sent to and received from all processes."""

    @property
    def keys(self) -> Keyring:
        """The keys that encrypt and decrypt secrets in this database."""
        return keys_of(self.engine.dialect)

    def use_keys(self, keys: Keyring) -> None:
        use_keys(self.engine.dialect, keys)

    def migrate(self, phase: Phase = Phase.ALL) -> SchemaStatus:
        """Migrate the schema to this version; create it in an empty database.

        Raises:
            Outdated: A newer version has removed parts needed here, or the schema predates the first release.
        """
        with self.engine.connect() as connection, self.backend.migrating(connection):
            return migration.migrate(connection, phase)

    def schema_status(self) -> SchemaStatus:
        """Return the state of the schema's migration."""
        with self.read() as tx:
            return migration.schema_status(tx)

    @property
    def missing_file(self) -> str:
        """The path of an SQLite database that does not exist yet, since connecting would create it; "" otherwise."""
        path = self.backend.path
        return path if path and not os.path.exists(path) else ""

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a read transaction in which all statements see the same snapshot of the database."""
        with _as_transient(), Transaction(self) as tx:
            self.backend.reading(tx)
            yield tx

    @contextlib.contextmanager
    def single_read(self) -> Iterator[Transaction]:
        """Open a connection for a single statement that changes nothing.

        On a server this saves the messages that begin and end a transaction.
        """
        with _as_transient(), Transaction(self) as tx:
            if not self.backend.single(tx):
                self.backend.reading(tx)
            yield tx

    @contextlib.contextmanager
    def statements(self) -> Iterator["Statements"]:
        """Open a connection for a few statements, each in its own transaction.

        On a server this saves the messages that begin and end transactions, and the checkouts from the pool.
        """
        # Without UPDATE … RETURNING some statements become several (a lock, the change, a query), within a transaction.
        if self.is_sqlite or not self.engine.dialect.update_returning:
            yield Statements(self.single_read, self.write)
            return
        with self.single_read() as tx:

            def same() -> contextlib.AbstractContextManager[Transaction]:
                return contextlib.nullcontext(tx)

            yield Statements(same, same)

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a write transaction, and commit it at the end of the block."""
        # The turn comes first: a thread that waits in the queue holds no connection of the pool.
        with _as_transient(), self.backend.turn(), Transaction(self) as tx:
            try:
                with tx.begin(), tx.gathering():
                    yield tx
            finally:
                # The flag is stored with the pooled connection and outlives this transaction, so it is taken after a
                # rollback, too. Reading the flag of an invalidated connection would open a new connection needlessly.
                due = not tx.invalidated and notices.take_flag(tx)
        # Only after the commit: an earlier reader would not see the rows, and would go back to sleep.
        if due:
            self.notices.notify()

    def now_of(self, connection: Connection) -> float:
        """Return the time that all workers agree on, in seconds since the epoch: the server's, if there is a server.

        The agreed time is continuous even if the clock is set, see `sql.timeline`.
        """
        if self.kept_time is None:
            if not self.backend.clock:
                return self.now()
            agreed = self.clock_of(connection)
        else:
            agreed = self.kept_time.read(lambda: self._clock_and_row(connection))
        self._agreed = agreed, self._passed()
        return agreed

    def clock_of(self, connection: Connection) -> float:
        """Return the time of the clock, the server's if there is a server; unlike `now_of`, it may step."""
        if not self.backend.clock:
            return self.now()
        return float(connection.exec_driver_sql(f"SELECT {self.backend.clock}").scalar_one())

    def _clock_and_row(self, connection: Connection) -> tuple[float, Timeline | None]:
        passed = self._passed()
        if not self.backend.clock and self.kept_time is not None:
            # Without a server, the row costs an extra statement; a running process notices steps itself.
            if passed - self._row_read_at < ROW_S:
                return self.now(), self.kept_time.known
            self._row_read_at = passed
        return timeline.clock_and_row(connection, self.backend.clock, self.now)

    def note_time(self, tx: Transaction) -> None:
        """Store the time for processes that start later, and any step of the clock noticed in this process."""
        if self.kept_time is not None:
            self.now_of(tx)
            timeline.note(tx, tx.insert, self.kept_time.known, self.clock_of(tx))

    def recent_now(self, connection: Connection) -> float:
        """Return the same time without a query, if requested before within `RECENT_S`."""
        if self._agreed is not None and self._passed() - self._agreed[1] < RECENT_S:
            return self.agreed_now()
        return self.now_of(connection)

    def agreed_now(self) -> float:
        """Return the agreed time without a query: the last result of `now_of` plus the time since then.

        After the first call of `now_of`, changes of this machine's clock do not affect the result.
        """
        if self._agreed is None:
            return self.now()
        server_now, at = self._agreed
        return server_now + self._passed() - at

    def close(self) -> None:
        self.notices.close()
        self.engine.dispose()


def sqlite_url(path: str | os.PathLike[str]) -> str:
    return f"sqlite:///{os.path.abspath(path)}"


def row_lock(rows: Select[Any]) -> Select[Any]:
    """Lock these rows against other writers until the transaction ends; SQLite's writers exclude one another anyway.

    The lock is FOR NO KEY UPDATE, which does not conflict with the checks of foreign keys. With a plain FOR UPDATE, the
    insertion of a row referring to these (an event of a stack) would wait, and two transactions could deadlock.
    """
    return rows.with_for_update(key_share=True)


@contextlib.contextmanager
def _as_transient() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise Outage(DOES_NOT_ANSWER, str(error.orig)) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Outage(DOES_NOT_ANSWER, f"the connection was lost: {error.orig}") from error
        raise
