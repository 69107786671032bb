"""The differences between SQLite, PostgreSQL, and MariaDB and MySQL: a module for each (ADR 0083).

`backend` has their interface. Statements for many rows are in `sql.bulk_statements`.
"""

from collections.abc import Callable

from sqlalchemy import make_url

from homeostat.store.sql.backends.backend import Backend
from homeostat.store.sql.backends.mysql import MySQL
from homeostat.store.sql.backends.postgresql import PostgreSQL
from homeostat.store.sql.backends.sqlite import SQLite

__all__ = ["Backend", "MySQL", "PostgreSQL", "SQLite", "backend_of"]


def backend_of(url: str, pool_size: int) -> Backend:
    """Return the backend of a SQLAlchemy URL, with an engine that has not connected yet."""
    kinds: dict[str, Callable[[str, int], Backend]] = {"sqlite": SQLite, "mysql": MySQL, "mariadb": MySQL}
    return kinds.get(make_url(url).get_backend_name(), PostgreSQL)(url, pool_size)
