"""Announced changes of servers that Nova's list of changes does not show (ADR 0100)."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from cachetools import TTLCache

from homeostat.clock import passed
from homeostat.clouds.openstack.recent_ids import RecentIds

KEPT_S = 900.0
"""Seconds after which an announcement is obsolete: see `server_looks`."""
OWN_MAX = 100_000
READDRESSED_MAX = 10_000
READDRESSED_S = 120.0
"""Seconds for which changed floating addresses are read from Neutron: Nova refreshes its copy each minute."""


class ChangedServers(Protocol):
    """Announcements that all processes share. Each is stored before the request for the change is sent."""

    def note(self, project: str, handle: str) -> None:
        """Announce the change of a server.

        Raises:
            Transient: The announcement cannot be stored, so the request must not be sent.
        """

    def ages(self, project: str) -> Mapping[str, float]:
        """Return handle -> seconds since the last announcement, if at most `KEPT_S`, for the servers of a project.

        Raises:
            Transient: The announcements cannot be read.
        """


class OwnChangedServers:
    """Announcements of a deployment with a single process. Safe to share between threads."""

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
    """Announced changes of the servers of a project, and this process's own changes of their floating addresses."""

    def __init__(self, project: str, noted: ChangedServers) -> None:
        """Take the project, and the announcements of all processes."""
        self._project = project
        self._noted = noted
        self._readdressed = RecentIds(READDRESSED_MAX, READDRESSED_S)

    def announce(self, handle: str) -> None:
        """Have all processes read a server individually after its imminent change, since Nova's list may not show it.

        Raises:
            Transient: The announcement cannot be stored, so the server must not be changed.
        """
        self._noted.note(self._project, handle)

    def announce_addresses(self, handles: Iterable[str]) -> None:
        """Announce that floating IPs are about to be associated with, or dissociated from, these servers.

        Raises:
            Transient: As for `announce`.
        """
        for handle in sorted(handles):
            self.announce(handle)
            self._readdressed.note([handle])

    def ages(self, handles: Collection[str]) -> dict[str, float]:
        """Return handle -> seconds since the last announcement, for the recently announced servers among these.

        Raises:
            Transient: The announcements cannot be read.
        """
        return {handle: ago for handle, ago in self._noted.ages(self._project).items() if handle in handles}

    def readdressed(self, handles: Iterable[str]) -> set[str]:
        """Return the servers whose floating addresses this process changed lately."""
        return self._readdressed.recent(handles)
