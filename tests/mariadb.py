"""A MariaDB server of the tests' own: in a temporary directory, on a Unix socket, gone when they end."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pymysql

from tests.database_servers import START_S, Account, directory, process, run

USER = "homeostat"
USERS = ("mysql", "nobody")
SAFE = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M")
"""What was committed outlives the server."""
FAST = (*SAFE, "--innodb-flush-log-at-trx-commit=0")


def find_program() -> Path | None:
    """The server, in PATH or where Debian has it."""
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


@contextlib.contextmanager
def running(program: Path) -> Iterator[str]:
    """Start a server; gives a SQLAlchemy URL of a user that may create databases. Fails: RuntimeError with its log."""
    with prepared(program) as (root, account), server(program, root, account, FAST):
        yield url(root)


@contextlib.contextmanager
def crashing(program: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A server that loses nothing when it dies: gives its URL, and what makes it die at once and start again."""
    with prepared(program) as (root, account), contextlib.ExitStack() as stack:
        running = [stack.enter_context(server(program, root, account, SAFE))]

        def crash() -> None:
            running[0].kill()
            running[0].wait(timeout=START_S)
            running[0] = stack.enter_context(server(program, root, account, SAFE))

        with contextlib.closing(pymysql.connect(unix_socket=f"{root}/socket", user="root")) as admin:
            admin.cursor().execute("CREATE DATABASE homeostat")
        yield url(root, "homeostat"), crash


@contextlib.contextmanager
def prepared(program: Path) -> Iterator[tuple[Path, Account]]:
    """The directory of a server, with an empty data directory, and the account that runs it."""
    with directory("MariaDB", USERS) as (root, account):
        install = shutil.which("mariadb-install-db", path=f"{os.environ.get('PATH', '')}:{program.parent}:/usr/bin")
        command = [str(install), "--no-defaults", f"--datadir={root}/data", "--skip-test-db"]
        # A server removes what others left in its directory for temporary tables, or are using just now.
        run([*command, f"--tmpdir={root}", "--auth-root-authentication-method=normal"], root, account)
        yield root, account


@contextlib.contextmanager
def server(program: Path, root: Path, account: Account, settings: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a directory, until the end of the block; returns once it answers."""
    command = [str(program), "--no-defaults", f"--datadir={root}/data", f"--socket={root}/socket"]
    command += ["--skip-networking", f"--pid-file={root}/pid", f"--tmpdir={root}", *settings]
    with process(command, root, account, signal.SIGTERM) as found:
        _wait(found, root)
        yield found


def url(root: Path, database: str = "") -> str:
    return f"mysql+pymysql://{USER}@/{database}?unix_socket={root}/socket"


def _wait(process: subprocess.Popen[bytes], root: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with contextlib.closing(pymysql.connect(unix_socket=f"{root}/socket", user="root")) as admin:
                with admin.cursor() as cursor:
                    cursor.execute(f"CREATE USER IF NOT EXISTS {USER}@localhost")
                    # The rights on its databases that operators are told to give, and those to make databases.
                    cursor.execute(f"GRANT ALL ON `homeostat%`.* TO {USER}@localhost")
                return
        except pymysql.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MariaDB did not start: {(root / 'log').read_text()}") from error
            time.sleep(0.05)
