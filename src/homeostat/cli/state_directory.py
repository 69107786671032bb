"""The state directory: the files of a service, and the lock of the service that uses it.

service.json   process ids and address of the running service     service.lock   held while the service lives
service.log    log of a detached service                          homeostat.db   SQLite, unless there is a URL
cloud/         the local cloud                                    keys           encrypt the secrets in homeostat.db
.restoring/    a backup that is being restored
"""

import contextlib
import fcntl
import json
import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from homeostat.cli.errors import Problem

LOG = logging.getLogger(__name__)
_PATIENCE_S = 0.3
_OTHERS = 0o077
"""Permissions of group and others."""
_CHANGING = 0o022
"""Permissions by which other users could replace files of a directory."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Attributes:
        pid: Of its supervisor.
        children: Process ids by name.
    """

    pid: int
    url: str
    children: Mapping[str, int] = field(default_factory=dict)


class State:
    """A state directory, created by the first claim, with access for its owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "service.log"
        self.database = root / "homeostat.db"
        self.cloud = root / "cloud"
        self.keys = root / "keys"
        self.restoring = root / ".restoring"
        self._service = root / "service.json"
        self._lock = root / "service.lock"

    def running(self) -> Service | None:
        """Return the running service of this directory, if any; files of a dead service do not count."""
        if not self._is_claimed():
            return None
        try:
            return Service(**json.loads(self._service.read_text(encoding="utf-8")))
        except FileNotFoundError:
            # The service is starting or stopping.
            return None

    @contextlib.contextmanager
    def claim(self, *, interrupted: bool = False) -> Iterator[None]:
        """Hold the directory exclusively.

        Args:
            interrupted: Accept a directory in which a restore was interrupted.

        Raises:
            Problem: Another service has the directory; or the restore of a backup was interrupted.
        """
        self.make()
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _locked(descriptor):
                raise Problem(self._occupied())
            if self.restoring.exists() and not interrupted:
                raise Problem("the restore of a backup was interrupted: run `homeostat restore` once more")
            # A dead service may have left its address.
            self._service.unlink(missing_ok=True)
            yield
        finally:
            os.close(descriptor)

    def make(self) -> None:
        """Create the directory; make existing and future files of this process private to their owner.

        Raises:
            Problem: Other users could put files into the directory.
        """
        os.umask(_OTHERS)
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._check_others()
            for path in self._files():
                _take_from_others(path, _OTHERS)
        except PermissionError as error:
            remedy = "let its user run the service, or choose another directory with --state-dir"
            raise Problem(f"{error.filename} belongs to another user: {remedy}") from error

    def _check_others(self) -> None:
        if self.root.stat().st_mode & stat.S_ISVTX:
            remedy = "choose a directory of your own with --state-dir"
            raise Problem(f"the state directory {self.root} is shared by all users: {remedy}")
        _take_from_others(self.root, _CHANGING)

    def _files(self) -> Iterator[Path]:
        """Yield the service's files, which an older version, or a copy, may have created with wider permissions."""
        for name in ("service.*", f"{self.database.name}*", self.keys.name, f".{self.keys.name}.*", self.cloud.name):
            yield from self.root.glob(name)

    def announce(self, service: Service) -> None:
        """Write the running service's address, atomically for readers."""
        partial = self._service.with_suffix(".new")
        partial.write_text(json.dumps(asdict(service)), encoding="utf-8")
        partial.replace(self._service)

    def retract(self) -> None:
        self._service.unlink(missing_ok=True)

    def _is_claimed(self) -> bool:
        try:
            descriptor = os.open(self._lock, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _occupied(self) -> str:
        service = self.running()
        who = f"a service (process {service.pid}, {service.url})" if service else "another service that is starting"
        return f"{who} has the state directory {self.root} already: stop it first, or choose another with --state-dir"


def _take_from_others(path: Path, rights: int) -> None:
    """Remove permissions from a file. Raise PermissionError."""
    with contextlib.suppress(FileNotFoundError):  # e.g. the journal of a database that was just closed
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & rights:
            path.chmod(mode & ~rights)
            LOG.warning("others could use %s: it had the mode %o, and has %o now", path, mode, mode & ~rights)


def _locked(descriptor: int) -> bool:
    """Try to lock, with a short wait: a process that checks for a running service holds the lock for an instant."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
