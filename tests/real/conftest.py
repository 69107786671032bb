"""Worlds of the ring, on the database that a test asks for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import postgresql
from tests.real.world import RealWorld, world_on


@pytest.fixture(params=["sql", pytest.param("redis", marks=pytest.mark.redis)])
def world(request: pytest.FixtureRequest, postgresql_database_url: str, tmp_path: Path) -> Iterator[RealWorld]:
    """On PostgreSQL, once with each job board."""
    redis_url = request.getfixturevalue("redis_running").url if request.param == "redis" else ""
    with world_on(postgresql_database_url, tmp_path, redis_url) as found:
        yield found


@pytest.fixture
def crashing(postgresql_url: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """URL of a PostgreSQL server of the test's own, and what makes that die at once and start again."""
    programs = postgresql.find_programs()
    assert programs is not None, f"{postgresql_url} was started from somewhere"
    with postgresql.crashing(programs) as found:
        yield found
