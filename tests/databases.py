"""The kinds of databases that the tests run on, and empty migrated ones.

They are copied, since a copy takes a fraction of the time of all migrations.
"""

import contextlib
import functools
import itertools
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pymysql
import pytest
from sqlalchemy import URL, make_url

from homeostat.store.database import Database, sqlite_url

SQLITE, POSTGRESQL, MARIADB = "sqlite", "postgresql", "mariadb"
CHOSEN = os.environ.get("HOMEOSTAT_DATABASES", f"{SQLITE} {POSTGRESQL}").split()
"""What the tests run on; `make test-mariadb` chooses MariaDB instead."""
KINDS = [each if each == SQLITE else pytest.param(each, marks=getattr(pytest.mark, each)) for each in CHOSEN]
SERVER = MARIADB if POSTGRESQL not in CHOSEN else POSTGRESQL
"""The kind of what several processes share."""
on_a_server: pytest.MarkDecorator = getattr(pytest.mark, SERVER)
"""Marks a test that needs a server."""
_NUMBERS = itertools.count()


def missing(message: str) -> NoReturn:
    """Skip a test whose program is not there; in CI it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


MIGRATOR = os.environ.get("HOMEOSTAT_MIGRATOR", "")
"""Command of a newer version that expands each schema first, so that these tests run on its schema."""


def migrate(url: str) -> None:
    if MIGRATOR:
        subprocess.run([*MIGRATOR.split(), "migrate", "--phase", "expand", "--database", url], check=True)
    with contextlib.closing(Database(url, time.time)) as database:
        database.migrate()


def migrated_sqlite(path: Path) -> str:
    """Write an empty migrated database to this file unless it exists. Returns its URL."""
    if not path.exists():
        path.write_bytes(_content())
    return sqlite_url(path)


@functools.cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "homeostat.sqlite"
        migrate(sqlite_url(path))
        return path.read_bytes()


@contextlib.contextmanager
def new_database(server: str) -> Iterator[str]:
    """An empty database of its own on a server; gives its URL."""
    name = f"homeostat_{os.getpid()}_{next(_NUMBERS)}"
    with _made(make_url(server), name):
        yield make_url(server).set(database=name).render_as_string(hide_password=False)


@contextlib.contextmanager
def migrated_template(server: str) -> Iterator[str]:
    """A migrated database on a server, to be `copied`; gives its URL."""
    with new_database(server) as url:
        migrate(url)
        yield url


@contextlib.contextmanager
def copied(template: str) -> Iterator[str]:
    """A copy of an empty migrated database; gives its URL."""
    there, name = make_url(template), f"homeostat_{os.getpid()}_{next(_NUMBERS)}"
    with _made(there, name, str(there.database)):
        yield there.set(database=name).render_as_string(hide_password=False)


def is_blocked(url: str) -> bool:
    """Whether a transaction waits for a lock in a database."""
    there = make_url(url)
    if there.get_backend_name() == POSTGRESQL:
        with psycopg.connect(host=str(there.query["host"]), user=there.username, dbname=there.database) as it:
            waits = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return bool(it.execute(waits).fetchall()[0][0])
    # Only the administrator may see that.
    with _connected(there, "root") as admin, admin.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
        return bool(cursor.fetchall()[0][0])


def cut_off(url: str) -> None:
    """End all sessions in a database."""
    there = make_url(url)
    if there.get_backend_name() == POSTGRESQL:
        rest = "datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(host=str(there.query["host"]), user=there.username, dbname=there.database) as it:
            it.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {rest}")
        return
    with _connected(there, "root") as admin, admin.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (there.database,))
        for (session,) in cursor.fetchall():
            with contextlib.suppress(pymysql.OperationalError):  # it has ended by itself
                cursor.execute(f"KILL {session}")


def _connected(server: URL, user: str) -> contextlib.closing[Any]:
    return contextlib.closing(pymysql.connect(unix_socket=str(server.query["unix_socket"]), user=user))


@contextlib.contextmanager
def _made(server: URL, name: str, template: str = "") -> Iterator[None]:
    if server.get_backend_name() != POSTGRESQL:
        with _connected(server, str(server.username)) as it:
            _copy(it, name, template)
            yield
            it.cursor().execute(f"DROP DATABASE {name}")
        return
    with psycopg.connect(
        host=str(server.query["host"]), user=server.username, dbname="postgres", autocommit=True
    ) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
        yield
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _copy(admin: Any, name: str, template: str) -> None:
    """MariaDB copies no databases: each table is made as the server says that the one of the template is."""
    with admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        for table, definition in _tables(template, admin) if template else ():
            cursor.execute(f"USE {name}")
            cursor.execute("SET foreign_key_checks = 0")
            cursor.execute(definition)
            if table == "alembic_version":
                cursor.execute(f"INSERT INTO {table} SELECT * FROM {template}.{table}")
        admin.commit()


@contextlib.contextmanager
def migrated(directory: Path) -> Iterator[str]:
    """An empty migrated database of the first kind that is tested; gives its URL."""
    if CHOSEN[0] == SQLITE:
        yield migrated_sqlite(directory / "homeostat.db")
        return
    with copied(TEMPLATES[CHOSEN[0]]) as url:
        yield url


TEMPLATES: dict[str, str] = {}
"""URLs of migrated databases, by kind: those of the servers that run."""
_TABLES: dict[str, list[tuple[str, str]]] = {}


def _tables(template: str, admin: Any) -> list[tuple[str, str]]:
    if template not in _TABLES:
        with admin.cursor() as cursor:
            cursor.execute(f"SHOW TABLES FROM {template}")
            names = [row[0] for row in cursor.fetchall()]
            found = []
            for each in names:
                cursor.execute(f"SHOW CREATE TABLE {template}.{each}")
                found.append((each, re.sub(r" AUTO_INCREMENT=\d+", "", cursor.fetchone()[1])))
            _TABLES[template] = found
    return _TABLES[template]
