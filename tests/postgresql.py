"""A PostgreSQL server of the tests' own: in a temporary directory, on a Unix socket, gone when they end."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from tests.database_servers import START_S, Account, directory, process, run

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/bin")
SAFE = ("fsync=off", "full_page_writes=off", "deadlock_timeout=100ms", "listen_addresses=")
"""What was committed outlives the server, as long as this machine runs."""
FAST = (*SAFE, "synchronous_commit=off")
USERS = ("postgres", "nobody")


def find_programs() -> Path | None:
    """Directory of `initdb` and `postgres`: from PATH, else the newest of the usual places."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = [each for pattern in PLACES for each in Path("/").glob(pattern.lstrip("/"))]
    return max((place for place in places if (place / "initdb").exists()), default=None)


@contextlib.contextmanager
def running(programs: Path, settings: tuple[str, ...] = FAST, place: Path | None = None) -> Iterator[str]:
    """Start a server; gives a SQLAlchemy URL of a user that may create databases. Fails: RuntimeError with its log.

    Args:
        programs: Directory of its programs.
        settings: What differs from the server's own settings.
        place: Where its directory is made; None for memory, if there is enough.
    """
    with _prepared(programs, place) as (root, account), _server(programs, root, account, settings) as server:
        _wait(server, root)
        yield _url(root)


@contextlib.contextmanager
def crashing(programs: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A server that loses nothing when it dies: gives its URL, and what makes it die at once and start again."""
    with _prepared(programs) as (root, account), contextlib.ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            server = stack.enter_context(_server(programs, root, account, SAFE))
            _wait(server, root)
            return server

        running = [start()]

        def crash() -> None:
            running[0].send_signal(signal.SIGQUIT)  # the immediate shutdown: recovery comes with the next start
            running[0].wait(timeout=START_S)
            running[0] = start()

        yield _url(root), crash


@contextlib.contextmanager
def _prepared(programs: Path, place: Path | None = None) -> Iterator[tuple[Path, Account]]:
    """A new cluster; gives its directory, and the account that runs it."""
    with directory("PostgreSQL", USERS, place) as (root, account):
        command: list[str | Path] = [
            programs / "initdb",
            "--pgdata",
            root / "data",
            "--username=homeostat",
            "--auth=trust",
        ]
        run([*command, "--encoding=UTF8", "--locale=C", "--no-sync"], root, account)
        yield root, account


def _url(root: Path) -> str:
    return f"postgresql+psycopg://homeostat@/postgres?host={root}"


def _server(
    programs: Path, root: Path, account: Account, settings: tuple[str, ...]
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    command: list[str | Path] = [programs / "postgres", "-D", root / "data", "-k", root]
    command += [part for setting in settings for part in ("-c", setting)]
    return process(command, root, account, signal.SIGINT)


def _wait(server: subprocess.Popen[bytes], root: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(host=str(root), user="homeostat", dbname="postgres").close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(root / 'log').read_text()}") from error
            time.sleep(0.05)
