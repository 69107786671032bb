"""A PostgreSQL server of the tests' own: in a temporary directory, on a Unix socket, gone when they end."""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/bin")
START_S = 60.0
SAFE = ("fsync=off", "full_page_writes=off", "deadlock_timeout=100ms", "listen_addresses=")
"""What was committed outlives the server, as long as this machine runs."""
FAST = (*SAFE, "synchronous_commit=off")
IN_MEMORY_BYTES = 2 * 1024**3
PR_SET_PDEATHSIG = 1


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
def _prepared(programs: Path, place: Path | None = None) -> Iterator[tuple[Path, pwd.struct_passwd | None]]:
    """A new cluster; gives its directory, and the account that runs it."""
    root = Path(tempfile.mkdtemp(prefix="homeostat-postgresql-", dir=place or in_memory()))
    try:
        account = _account()
        if account is not None:
            os.chown(root, account.pw_uid, account.pw_gid)
        _run_initdb(programs, root, account)
        yield root, account
    finally:
        shutil.rmtree(root, ignore_errors=True)


def in_memory() -> Path | None:
    """In memory where there is enough of it: a database is many files, and each test has one."""
    memory = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if shutil.disk_usage(memory).free >= IN_MEMORY_BYTES and os.access(memory, os.W_OK):
            return memory
    return None


def _url(root: Path) -> str:
    return f"postgresql+psycopg://homeostat@/postgres?host={root}"


def _account() -> pwd.struct_passwd | None:
    """Return another user to run the server as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")


def identity(account: pwd.struct_passwd | None) -> dict[str, object]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _run_initdb(programs: Path, root: Path, account: pwd.struct_passwd | None) -> None:
    command = [programs / "initdb", "--pgdata", root / "data", "--username=homeostat", "--auth=trust"]
    command += ["--encoding=UTF8", "--locale=C", "--no-sync"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, **identity(account))  # type: ignore[call-overload]
    if done.returncode != 0:
        raise RuntimeError(f"initdb failed: {done.stderr}")


@contextlib.contextmanager
def _server(
    programs: Path, root: Path, account: pwd.struct_passwd | None, settings: tuple[str, ...]
) -> Iterator[subprocess.Popen[bytes]]:
    command = [programs / "postgres", "-D", root / "data", "-k", root]
    command += [part for setting in settings for part in ("-c", setting)]
    with (root / "log").open("ab") as log:
        server = subprocess.Popen(
            command,
            cwd=root,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_the_tests,
            **identity(account),  # type: ignore[call-overload]
        )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=START_S)


def end_with_the_tests() -> None:
    """Not even killed tests leave a server behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


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
