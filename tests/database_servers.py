"""Servers of databases that tests start: a directory of their own, a user who may run them, and a process that ends.

See `tests.postgresql` and `tests.mariadb`.
"""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

START_S = 60.0
"""How long a server may take to start, and to end."""
IN_MEMORY_BYTES = 2 * 1024**3
PR_SET_PDEATHSIG = 1
Account = pwd.struct_passwd | None
"""Who runs a server: another user, or None for oneself."""


@contextlib.contextmanager
def directory(name: str, users: Sequence[str], place: Path | None = None) -> Iterator[tuple[Path, Account]]:
    """An empty directory, gone at the end of the block, and the account that runs the server in it.

    Args:
        name: Of the server.
        users: Names of those who may run it, since such servers refuse to run as root; the first that is there.
        place: Where the directory is made; None for memory, if there is enough.
    """
    root = Path(tempfile.mkdtemp(prefix=f"homeostat-{name.lower()}-", dir=place or _in_memory()))
    try:
        account = _account(name, users)
        if account is not None:
            os.chown(root, account.pw_uid, account.pw_gid)
        yield root, account
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _in_memory() -> Path | None:
    """In memory where there is enough of it: a database is many files, and each test has one."""
    memory = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if shutil.disk_usage(memory).free >= IN_MEMORY_BYTES and os.access(memory, os.W_OK):
            return memory
    return None


def _account(name: str, users: Sequence[str]) -> Account:
    if os.getuid() != 0:
        return None
    for user in users:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(user)
    raise RuntimeError(f"{name} does not run as root, and there is no user {' or '.join(users)}")


def _identity(account: Account) -> dict[str, object]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def run(command: Sequence[str | Path], root: Path, account: Account) -> None:
    """Run a program that prepares the directory. Fails: RuntimeError with what it says."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, **_identity(account))  # type: ignore[call-overload]
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def process(
    command: Sequence[str | Path], root: Path, account: Account, stop: signal.Signals
) -> Iterator[subprocess.Popen[bytes]]:
    """A server, with its log in the file `log`. The signal ends it, also when the tests are killed."""

    def end_with_the_tests() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, stop)

    with (root / "log").open("ab") as log:
        server = subprocess.Popen(
            command,
            cwd=root,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_the_tests,
            **_identity(account),  # type: ignore[call-overload]
        )
    try:
        yield server
    finally:
        server.send_signal(stop)
        server.wait(timeout=START_S)
