"""The database of a service: connection, migration, checks and encryption keys."""

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.cli.errors import Problem
from homeostat.cli.settings import ServiceSettings
from homeostat.cli.state_directory import State

if TYPE_CHECKING:
    from homeostat.store.database import Database

LOG = logging.getLogger(__name__)


def database(settings: ServiceSettings) -> "Database":
    """Open the database of this service; by default an SQLite file in the state directory."""
    from homeostat.clock import passed
    from homeostat.store.database import Database, sqlite_url

    state = State(settings.state)
    state.make()
    return Database(settings.database or sqlite_url(state.database), time.time, passed=passed)


@contextlib.contextmanager
def ready_database(settings: ServiceSettings) -> "Iterator[Database]":
    """Open the database for a process of the service, checked and with its keys.

    Raises:
        Problem: This version cannot run on it.
    """
    from homeostat.model.errors import Transient

    with contextlib.closing(database(settings)) as db:
        check_schema(db)
        use_keys(db, settings.encryption_keys, settings.state)
        with contextlib.suppress(Transient), db.read() as tx:  # the process waits for an absent database later
            tx.now()
        yield db


def migrate(settings: ServiceSettings) -> None:
    """Migrate the database to this version before any process of the service uses it.

    Raises:
        Problem: The database cannot be used.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from homeostat.cli import key_commands
    from homeostat.model.errors import Transient, in_detail
    from homeostat.store.sql.migration import Outdated, Phase

    try:
        with contextlib.closing(database(settings)) as db:
            key_commands.check_choice(db, settings.encryption_keys)
            # Services of the former version may run on a shared database: contracting would break them (ADR 0015).
            alone = db.is_sqlite or not db.schema_status().heads
            db.migrate(Phase.ALL if alone else Phase.EXPAND)
            use_keys(db, settings.encryption_keys, settings.state)
    except (Outdated, Transient, SQLAlchemyError, ImportError) as error:
        raise Problem(f"the database cannot be used, look at --database: {in_detail(error)}") from error


def check_schema(db: "Database") -> None:
    """Check that this version can run on the database's schema.

    A database that does not answer now is no error: the process waits for the database later.

    Raises:
        Problem: The schema belongs to another version.
    """
    from homeostat.model.errors import Transient

    try:
        usable = db.schema_status().usable
    except Transient as error:
        LOG.warning("starting all the same: %s", error)
        return
    if not usable:
        raise Problem("the schema of the database is not that of this version: run `homeostat migrate --phase expand`")


def use_keys(db: "Database", chosen: str, state: Path) -> None:
    """Give the database the encryption keys, before any read or write.

    Raises:
        Problem: The keys cannot be used.
    """
    from homeostat.cli import key_commands

    key_commands.use_keys(db, chosen, state)
