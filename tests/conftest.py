"""Databases for the tests: SQLite files, and PostgreSQL on a server of the tests' own; a Redis server likewise."""

import contextlib
import functools
import gc
import itertools
import os
import time
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import NoReturn

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from homeostat.store.database import Database, sqlite_url
from tests import chromium, forked, homeostat_command, openstack_client, postgresql, redis_server
from tests.chromium import Browser
from tests.databases import migrate, migrated_sqlite
from tests.redis_server import RedisServer
from tests.waiting import PATIENCE_S

_NUMBERS = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first, so that processes that run tests side by side end together."""
    items.sort(key=lambda item: item.get_closest_marker("real") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tests and modules live as long as the process: keep the garbage collector from going through them, ever."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def patient_requests() -> Iterator[None]:
    """Requests with httpx wait as long as everything else, where the test says nothing: not five seconds."""
    default = signature(httpx.get).parameters["timeout"].default  # one object for all of them
    with pytest.MonkeyPatch.context() as patch:
        for phase in ("connect", "read", "write", "pool"):
            patch.setattr(default, phase, PATIENCE_S)
        yield


@pytest.fixture(scope="session", autouse=True)
def authorities_read_once() -> Iterator[None]:
    """Each client of httpx, and each request without one, would read all authorities for HTTPS: 30 ms of CPU time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", functools.cache(httpx.create_ssl_context))
        yield


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A PostgreSQL server that lives as long as the session. Without one, tests are skipped; in CI they fail."""
    programs = postgresql.find_programs()
    if programs is None:
        _missing("no PostgreSQL server programs: install the package 'postgresql' (or put initdb into PATH)")
    with postgresql.running(programs) as url:
        yield url


@pytest.fixture
def redis_running() -> Iterator[RedisServer]:
    """An empty Redis server of the test's own. Without one, tests are skipped; in CI they fail."""
    program = redis_server.find_program()
    if program is None:
        _missing("no redis-server in PATH: install the package 'redis-server'")
    with redis_server.running(program) as server:
        yield server


@pytest.fixture(scope="session")
def openstack_program() -> Iterator[Path]:
    """The `openstack` command, which starts in a tenth of its time. See `tests.forked`."""
    with forked.running(openstack_client.__name__, openstack_client.NAME) as program:
        yield program


@pytest.fixture(scope="session")
def homeostat_program() -> Iterator[Path]:
    """The `homeostat` command, which starts in a tenth of its time, and the services that it starts too."""
    with forked.running(homeostat_command.__name__, homeostat_command.NAME) as program:
        yield program


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser of the module's own. Without one, tests are skipped; in CI they fail."""
    if not chromium.is_installed():
        _missing("no chromium and chromedriver in PATH: install the packages 'chromium' and 'chromium-driver'")
    with chromium.browsing(tmp_path_factory.mktemp("chromium")) as found:
        yield found


def _missing(message: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def postgresql_database_url(postgresql_url: str) -> Iterator[str]:
    """An empty database of its own on the session's server."""
    with _postgresql_database(postgresql_url) as url:
        yield url


@contextlib.contextmanager
def _postgresql_database(server_url: str, template: str = "template1") -> Iterator[str]:
    server = make_url(server_url)
    name = f"homeostat_{next(_NUMBERS)}"
    with psycopg.connect(
        host=str(server.query["host"]), user=server.username, dbname="postgres", autocommit=True
    ) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield server.set(database=name).render_as_string(hide_password=False)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgresql_template(postgresql_url: str) -> Iterator[str]:
    """Name of a migrated database that is copied faster than another one is migrated."""
    with _postgresql_database(postgresql_url) as url:
        migrate(url)
        yield str(make_url(url).database)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once of each kind that the service runs on."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "homeostat.sqlite")
    return str(request.getfixturevalue("postgresql_database_url"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated database, once of each kind that the service runs on."""
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            url = migrated_sqlite(tmp_path / "homeostat.sqlite")
        else:
            server, template = map(request.getfixturevalue, ("postgresql_url", "postgresql_template"))
            url = stack.enter_context(_postgresql_database(server, template))
        yield stack.enter_context(contextlib.closing(Database(url, time.time)))
