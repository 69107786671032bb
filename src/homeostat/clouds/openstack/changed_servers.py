"""Servers that this service changes in ways of which Nova's list of changes says nothing (ADR 0100)."""

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from cachetools import TTLCache

from homeostat.clock import passed

KEPT_S = 900.0
"""Seconds after which a note says no more than every look does: see `server_looks`."""
OWN_MAX = 100_000


class ChangedServers(Protocol):
    """Notes that all processes share. Each is stored before the request that changes the server is sent."""

    def note(self, project: str, handle: str) -> None:
        """Note that a server is about to be changed.

        Raises:
            Transient: That cannot be noted now, so the request must not be sent.
        """

    def ages(self, project: str) -> Mapping[str, float]:
        """Return handle -> seconds since the last note, of those of a project that are not older than `KEPT_S`.

        Raises:
            Transient: They cannot be read now.
        """


class OwnChangedServers:
    """The notes of one process that has the cloud for itself. Safe to share between threads."""

    def __init__(self, seconds: Callable[[], float] = passed) -> None:
        """Take the clock of this process."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._noted: TTLCache[tuple[str, str], float] = TTLCache(OWN_MAX, KEPT_S, seconds)

    def note(self, project: str, handle: str) -> None:
        with self._lock:
            self._noted[project, handle] = self._seconds()

    def ages(self, project: str) -> Mapping[str, float]:
        with self._lock:
            now = self._seconds()
            return {handle: now - at for (of, handle), at in self._noted.items() if of == project}
