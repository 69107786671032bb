"""PostgreSQL, by psycopg."""

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.dialects import postgresql

from homeostat.store.sql.backends.backend import APPLICATION, Backend
from homeostat.store.sql.notices import Channel, Notifications

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


class PostgreSQL(Backend):
    """A PostgreSQL server."""

    insert = staticmethod(postgresql.insert)

    def __init__(self, url: str, pool_size: int) -> None:
        # No prepared statements: a plan made for a small table would scan all of it once it is large, and a statement
        # prepared before a migration fails afterwards.
        arguments = {"application_name": APPLICATION, "prepare_threshold": None}
        self.engine = create_engine(
            url, pool_size=pool_size, max_overflow=20, pool_pre_ping=True, connect_args=arguments
        )

    def channel(self) -> Channel | None:
        return Notifications(self.engine)

    def reading(self, connection: Connection) -> None:
        # PostgreSQL's default takes a new snapshot for each statement: the rows of a shard could be older than the
        # observations read after them.
        connection.execution_options(isolation_level="REPEATABLE READ")

    def single(self, connection: Connection) -> bool:
        """Save the messages that begin and end a transaction."""
        connection.execution_options(isolation_level="AUTOCOMMIT")
        return True

    @contextlib.contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        """Take a lock of the session, not of a transaction: the migration may take several."""
        connection.execute(text("SELECT pg_advisory_lock(727373)"))
        try:
            yield
        except BaseException:
            connection.rollback()  # in a failed transaction the unlock would fail as well, and hide the error
            raise
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(727373)"))
            connection.commit()

    clock = "extract(epoch FROM clock_timestamp())"

    def running_transactions(self, tx: Connection) -> tuple[int, int]:
        oldest, following = tx.execute(RUNNING).one()
        return int(oldest), int(following)

    def end_frozen_sessions(self, tx: Connection, silent_s: float) -> int:
        """End the sessions from here.

        PostgreSQL's own limit for idle transactions (`idle_in_transaction_session_timeout`) does not see a client that
        froze in the middle of a batch of statements.
        """
        return len(tx.execute(END_FROZEN, {"application": APPLICATION, "silent_s": silent_s}).all())

    def advisory_lock(self, tx: Connection, name: str) -> None:
        tx.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
