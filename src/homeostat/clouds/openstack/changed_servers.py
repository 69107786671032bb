"""Servers that this service changes in ways of which Nova's list of changes says nothing (ADR 0100)."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from cachetools import TTLCache

from homeostat.clock import passed
from homeostat.clouds.openstack.lately import RecentIds

KEPT_S = 900.0
"""Seconds after which a note says no more than every look does: see `server_looks`."""
OWN_MAX = 100_000
READDRESSED_MAX = 10_000
READDRESSED_S = 120.0
"""Seconds for which floating addresses that were changed are asked for where they are: Nova looks each minute."""


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


class ServerChanges:
    """What is noted of the servers of one project, and for this process alone, of their floating addresses."""

    def __init__(self, project: str, noted: ChangedServers) -> None:
        """Take the project, and the notes of all processes."""
        self._project = project
        self._noted = noted
        self._readdressed = RecentIds(READDRESSED_MAX, READDRESSED_S)

    def announce(self, handle: str) -> None:
        """Have all processes look at a server by itself that is about to be changed, since Nova may not list it.

        Raises:
            Transient: They cannot be told now, so it must not be changed.
        """
        self._noted.note(self._project, handle)

    def announce_addresses(self, handles: Iterable[str]) -> None:
        """Announce that floating IPs are about to lead to these servers, or to do so no more.

        Raises:
            Transient: As for `announce`.
        """
        for handle in sorted(handles):
            self.announce(handle)
            self._readdressed.note([handle])

    def ages(self, handles: Collection[str]) -> dict[str, float]:
        """Return handle -> seconds since the last note, of those of these servers that were announced lately.

        Raises:
            Transient: That cannot be read now.
        """
        return {handle: ago for handle, ago in self._noted.ages(self._project).items() if handle in handles}

    def readdressed(self, handles: Iterable[str]) -> set[str]:
        """Return those of these servers of which this process has announced other addresses lately."""
        return self._readdressed.among(handles)
