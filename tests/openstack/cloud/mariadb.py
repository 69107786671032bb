"""MariaDB: a server of the cloud's own."""

import getpass
from pathlib import Path

from tests.openstack.cloud.processes import Processes
from tests.openstack.cloud.site import PASSWORD, Site
from tests.openstack.cloud.waiting import listening, wait_for

NAME = "mariadb"
START_S = 120.0


def command(site: Site) -> list[str]:
    return [
        "mariadbd",
        "--no-defaults",
        f"--datadir={data(site)}",
        "--bind-address=127.0.0.1",
        f"--port={site.port(NAME)}",
        "--socket=mariadb.sock",  # relative to the data directory
        f"--user={getpass.getuser()}",
        "--max-connections=500",
        "--innodb-log-file-size=32M",
        "--innodb-buffer-pool-size=192M",
        # A cloud for tests need not survive a power cut.
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
    ]


def data(site: Site) -> Path:
    return site.run("mariadb")


def initialize(site: Site) -> None:
    """Make the data directory of a new server."""
    site.call_inside(
        NAME,
        "mariadb-install-db",
        "--no-defaults",
        f"--datadir={data(site)}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    )


def start(site: Site, processes: Processes) -> None:
    processes.start(NAME)
    wait_for("MariaDB", lambda: processes.check(NAME) and listening(site.port(NAME)), START_S)


def create_account(site: Site) -> None:
    """The one that all services share."""
    name = site.settings.name
    for host in ("localhost", "127.0.0.1"):
        run_sql(
            site,
            f"CREATE USER '{name}'@'{host}' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON *.* TO '{name}'@'{host}'",
        )


def create_databases(site: Site, names: list[str]) -> None:
    """Those that are there already stay."""
    run_sql(site, *(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4" for name in names))


def run_sql(site: Site, *statements: str) -> None:
    port = f"--port={site.port(NAME)}"
    client = ("mariadb", "--no-defaults", "--user=root", "--host=127.0.0.1", port)
    site.call(*client, "--execute", ";".join(statements))
