"""Cache of the servers of a project, so that a look at many quiet servers is one small request."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from homeostat.clock import passed
from homeostat.clouds.openstack.collection import FEW
from homeostat.clouds.openstack.service import Wire

FULL_S = 600.0
"""Seconds after which all servers are listed anew."""
MARGIN_S = 300.0
"""Overlap of the queries for changes in seconds: the most that the clocks of this machine and of Nova may differ."""
SETTLED_S = 300.0
"""Seconds from the announcement of a change until Nova shows it; with `FULL_S`, the lifetime of announcements."""


class ServerLooks:
    """The servers of a project, as this process last saw them. Safe to share between threads.

    Each look lists the changes since the last look (`changes-since`); every ten minutes all servers are listed. Nova
    does not count a change of tags, a removed metadata entry, or a changed interface, volume or floating IP as a change
    of the server. Before this service makes such a change, it announces the server (`changed_servers`): a cached server
    then counts only if it was seen some minutes after its announcement. Such changes by other clients are seen within
    ten minutes. Changes that Nova records late are seen in time, since each look overlaps the last few minutes.
    """

    def __init__(self, listed: Callable[..., Iterator[Wire]]) -> None:
        """Take the function that lists servers, given filters."""
        self._list = listed
        self._lock = threading.Lock()
        self._things: dict[str, Wire] = {}
        self._seen_at: dict[str, float] = {}
        self._listed_at = self._looked_at = 0.0

    def things(self, noted: Callable[[], Mapping[str, float]] = dict) -> dict[str, Wire]:
        """Return handle -> server, for the existing servers whose cached state is reliable.

        Args:
            noted: Returns handle -> seconds since its announcement. It is called again after the look: a change without
                announcement by then was requested after the look.

        Raises:
            Transient: Nova does not answer.
        """
        with self._lock:
            now, at = time.time(), passed()
            # If the clock was set back, `changes-since` would miss changes: list everything.
            full = not self._listed_at <= self._looked_at <= now < self._listed_at + FULL_S
            full = full or len(self._outdated(noted())) > FEW
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._looked_at - MARGIN_S))
            listed = {str(thing["id"]): thing for thing in self._list(**({} if full else {"changes-since": since}))}
            known = listed if full else {**self._things, **listed}
            self._things = {handle: thing for handle, thing in known.items() if thing["status"] != "DELETED"}
            seen_at = {} if full else self._seen_at
            self._seen_at = {handle: at if handle in listed else seen_at[handle] for handle in self._things}
            self._listed_at, self._looked_at = now if full else self._listed_at, now
            outdated = set() if full else self._outdated(noted()) - listed.keys()
            return {handle: thing for handle, thing in self._things.items() if handle not in outdated}

    def _outdated(self, noted: Mapping[str, float]) -> set[str]:
        """Return the announced servers that were not seen since their change settled."""
        now = passed()
        return {handle for handle, ago in noted.items() if self._seen_at.get(handle, 0.0) < now - ago + SETTLED_S}

    def learn(self, thing: Wire, at: float) -> None:
        """Cache a server read individually by a request that began at time `at` of `clock.passed`."""
        with self._lock:
            handle = str(thing["id"])
            if at >= self._seen_at.get(handle, 0.0):
                self._things[handle], self._seen_at[handle] = thing, at
