"""Databases for the tests: SQLite files, PostgreSQL and MariaDB on servers of the tests' own; a Redis likewise."""

import contextlib
import functools
import gc
import time
import zlib
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import CursorResult

from homeostat.store.database import Database, sqlite_url
from homeostat.store.sql import typed
from tests import chromium, forked, homeostat_command, mariadb, openstack_client, postgresql, redis_server
from tests.chromium import Browser
from tests.databases import (
    CHOSEN,
    KINDS,
    SERVER,
    SQLITE,
    TEMPLATES,
    copied,
    migrated_sqlite,
    migrated_template,
    missing,
    new_database,
)
from tests.redis_server import RedisServer
from tests.waiting import PATIENCE_S

HEAVY = frozenset({"wire", "identity"})
"""Folders of which each test is heavy: its client, its service and its Keystone are processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="run one of several equal parts of the tests: 1/2, 2/2")


def pytest_configure(config: pytest.Config) -> None:
    """Compare the columns of each result with the class that `typed.rows` is given for it."""
    typed_rows = typed.rows

    def checked(kind: type[Any], found: CursorResult[Any]) -> Any:
        columns, said = tuple(found.keys()), kind._fields
        assert columns == said, f"{kind.__name__} has {said}, and the query {columns}"
        return typed_rows(kind, found)

    config.add_cleanup(functools.partial(setattr, typed, "rows", typed_rows))
    vars(typed)["rows"] = checked


def pytest_itemcollected(item: pytest.Item) -> None:
    if HEAVY.intersection(item.path.relative_to(item.config.rootpath).parts):
        item.add_marker(pytest.mark.heavy)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest first, so that processes that run tests side by side end together.

    Tests of the wire run on the first kind of database that is chosen. Of all, one part is run.
    """
    part, parts = map(int, config.getoption("--part").split("/"))
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part - 1]
    config.hook.pytest_deselected(items=list(set(items).difference(chosen)))
    items[:] = chosen
    for item in items:
        if CHOSEN[0] != SQLITE and "wire" in item.path.parts:
            item.add_marker(CHOSEN[0])
    items.sort(key=lambda item: item.get_closest_marker("real") is None and item.get_closest_marker("heavy") is None)


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
        missing("no PostgreSQL server programs: install the package 'postgresql' (or put initdb into PATH)")
    with postgresql.running(programs) as url:
        yield url


@pytest.fixture
def redis_running() -> Iterator[RedisServer]:
    """An empty Redis server of the test's own. Without one, tests are skipped; in CI they fail."""
    program = redis_server.find_program()
    if program is None:
        missing("no redis-server in PATH: install the package 'redis-server'")
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
        missing("no chromium and chromedriver in PATH: install the packages 'chromium' and 'chromium-driver'")
    with chromium.browsing(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """A MariaDB server that lives as long as the session. Without one, tests are skipped; in CI they fail."""
    program = mariadb.find_program()
    if program is None:
        missing("no mariadbd in PATH: install the package 'mariadb-server'")
    with mariadb.running(program) as url:
        yield url


@pytest.fixture
def postgresql_database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of its own on the session's PostgreSQL server."""
    with new_database(str(request.getfixturevalue("postgresql_url"))) as url:
        yield url


@pytest.fixture
def server_database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of its own on a server that several processes use: PostgreSQL, or the kind that is tested."""
    with new_database(str(request.getfixturevalue(f"{SERVER}_url"))) as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql_url: str) -> Iterator[str]:
    """URL of a migrated database that is copied faster than another one is migrated."""
    with migrated_template(postgresql_url) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_template(mariadb_url: str) -> Iterator[str]:
    """The same on MariaDB."""
    with migrated_template(mariadb_url) as url:
        yield url


@pytest.fixture(scope="session", autouse=CHOSEN[0] != SQLITE)
def first_server(request: pytest.FixtureRequest) -> None:
    """The server of tests that run on the first kind alone (`tests.databases.migrated`)."""
    TEMPLATES[CHOSEN[0]] = str(request.getfixturevalue(f"{CHOSEN[0]}_template"))


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, once of each kind that is tested."""
    if request.param == SQLITE:
        yield sqlite_url(tmp_path / "homeostat.sqlite")
        return
    with new_database(str(request.getfixturevalue(f"{request.param}_url"))) as url:
        yield url


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated database, once of each kind that is tested."""
    with contextlib.ExitStack() as stack:
        if request.param == SQLITE:
            url = migrated_sqlite(tmp_path / "homeostat.sqlite")
        else:
            url = stack.enter_context(copied(str(request.getfixturevalue(f"{request.param}_template"))))
        yield stack.enter_context(contextlib.closing(Database(url, time.time)))
