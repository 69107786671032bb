"""Worlds of the ring, on the database that a test asks for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import mariadb, postgresql
from tests.databases import MARIADB, SERVER
from tests.real.world import RealWorld, world_on


@pytest.fixture(params=["sql", pytest.param("redis", marks=pytest.mark.redis)])
def world(request: pytest.FixtureRequest, server_database_url: str, tmp_path: Path) -> Iterator[RealWorld]:
    """On a server, once with each job board."""
    redis_url = request.getfixturevalue("redis_running").url if request.param == "redis" else ""
    with world_on(server_database_url, tmp_path, redis_url) as found:
        yield found


@pytest.fixture
def crashing(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], None]]]:
    """URL of a server of the test's own, and what makes that die at once and start again."""
    shared = request.getfixturevalue(f"{SERVER}_url")
    found = mariadb.find_program() if SERVER == MARIADB else postgresql.find_programs()
    assert found is not None, f"{shared} was started from somewhere"
    with (mariadb if SERVER == MARIADB else postgresql).crashing(found) as made:
        yield made
