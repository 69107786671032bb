"""A database on a server is set back by its own tools; what was made since is found in the cloud."""

import contextlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url
from tests.cli.conftest import GENUINE, Home
from tests.databases import on_a_server

from homeostat.store.database import Database

STACK = "heat_template_version: wallaby\nresources: {disk: {type: OS::Cinder::Volume, properties: {size: 1}}}\n"


def run(*command: str, **more: Path) -> None:
    """Run a tool of a database."""
    streams = {name: path.open("rb" if name == "stdin" else "wb") for name, path in more.items()}
    subprocess.run(command, check=True, timeout=120, **streams)  # type: ignore[call-overload]


def dump_postgresql(url: URL, file: Path) -> None:
    run("pg_dump", "--format", "custom", "--file", str(file), _libpq(url))


def read_postgresql(url: URL, file: Path) -> None:
    run("pg_restore", "--clean", "--if-exists", "--single-transaction", "--dbname", _libpq(url), str(file))


def _libpq(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def dump_mariadb(url: URL, file: Path) -> None:
    run("mariadb-dump", *_options(url), "--single-transaction", "--databases", str(url.database), stdout=file)


def read_mariadb(url: URL, file: Path) -> None:
    run("mariadb", *_options(url), stdin=file)


def _options(url: URL) -> list[str]:
    socket, password = url.query["unix_socket"], url.password or ""
    return ["--no-defaults", f"--socket={socket}", f"--user={url.username}", f"--password={password}"]


Tool = Callable[[URL, Path], None]
TOOLS: dict[str, tuple[Tool, Tool]] = {
    "postgresql": (dump_postgresql, read_postgresql),
    "mysql": (dump_mariadb, read_mariadb),
}


@pytest.mark.heavy
@on_a_server
@pytest.mark.timeout(300)
def test_a_database_that_is_set_back(server_database_url: str, tmp_path: Path) -> None:
    home, url = Home(tmp_path / "state", GENUINE), make_url(server_database_url)
    dump, read = TOOLS[url.get_backend_name()]
    template, keys = tmp_path / "disk.yaml", tmp_path / "keys"
    template.write_text(STACK)
    options = ("--database", server_database_url, "--encryption-keys", str(keys))
    assert home.run("keys", "generate", "--encryption-keys", str(keys)).code == 0
    try:
        _serve(home, options)
        assert home.run("up", str(template), "old").code == 0
        dump(url, tmp_path / "dump")
        assert home.run("up", str(template), "new").code == 0
        home.end_service()
        read(url, tmp_path / "dump")
        done = home.run("migrate", "--database", server_database_url)
        assert done.code == 0, done.err
        untracked = home.run("untracked", "--database", server_database_url, "--json").json()["untracked"]
        assert [(each["kind"], each["name"].startswith("new-")) for each in untracked] == [("volume", True)]

        _serve(home, options)
        assert [each["stack_name"] for each in home.run("list", "--json").json()] == ["old"]
        changed = home.run("up", str(template), "old", "-P", "x=1")
        assert "x" in changed.err, "the service takes requests"
        assert home.run("down", "old", "-y").code == 0
        deleted = home.run("untracked", "--database", server_database_url, "--delete-all", "-y", "--json").json()
        assert deleted == {"deleted": [untracked[0]["id"]], "failed": {}}
    finally:
        home.stop()
    with contextlib.closing(Database(server_database_url, time.time)) as db:
        assert db.schema_status().usable


def _serve(home: Home, options: tuple[str, ...]) -> None:
    done = home.run("serve", "--detach", "--port", "0", *options)
    assert done.code == 0, done.err
