"""The whole program in Keystone's catalogue, for clients that find it there with nothing but a login."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from homeostat.main import main
from tests.cli.conftest import home_below
from tests.identity.conftest import Person, admin, keystone, person, variables
from tests.keystone_server import PASSWORD, Admin, KeystoneServer

__all__ = ["Person", "admin", "keystone", "person"]


def installed(client: str, program: str) -> Path:
    """The directory where `scripts/CLIENT` puts the client. Without it tests are skipped; in CI they fail."""
    place = Path(os.environ.get(f"HOMEOSTAT_{client.upper()}") or Path(sys.prefix).parent / f".{client}")
    if not (place / program).exists():
        missing(f"{client} is not installed: run scripts/{client}")
    return place


def missing(message: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def service_url(
    keystone: KeystoneServer, admin: Admin, homeostat_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a service that is in Keystone's catalogue, and lives as long as the session."""
    directory = tmp_path_factory.mktemp("service")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    config = directory / "keystone.ini"
    with pytest.MonkeyPatch.context() as environ:
        for name, value in variables(keystone.url, "admin", PASSWORD, "admin").items():
            environ.setenv(name, value)
        assert main(["register", "--keystone-config", str(config), "--public-url", url]) == 0
    with home_below(directory, homeostat_program) as home:
        flags = ("--users-run-code-as-me", "--access", "keystone", "--keystone-config", str(config))
        started = home.run("serve", "--detach", "--port", str(port), *flags)
        assert started.code == 0, started.err
        yield url
        assert "Traceback" not in home.state.log.read_text()
