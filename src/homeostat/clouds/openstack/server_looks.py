"""What Nova last told of the servers of a project, so that a look at many that are quiet is one small request."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from homeostat.clock import passed
from homeostat.clouds.openstack.collection import FEW
from homeostat.clouds.openstack.service import Wire

FULL_S = 600.0
"""Seconds after which everything is listed anew."""
MARGIN_S = 300.0
"""Seconds for which a change is asked for again: so much may the clocks of this machine and of Nova differ."""
SETTLED_S = 300.0
"""Seconds after a note that a server is about to be changed, after which Nova shows the change: with `FULL_S`, the age
from which a note need not be known."""


class ServerLooks:
    """The servers of a project, as one process knows them. Safe to share between threads.

    Every look lists what has changed since the one before (`changes-since`); every ten minutes all servers are listed.
    Nova does not list so a server whose tags were changed, or that lost an entry of its metadata, or got or lost an
    interface, a volume or a floating IP. What this service itself changes of these it has noted before
    (`changed_servers`): what is known of such a server counts only if it was seen some minutes after that. What others
    change so is seen within ten minutes. What Nova finds out only after a change is seen all the same, since every look
    asks again for the changes of the last minutes.
    """

    def __init__(self, listed: Callable[..., Iterator[Wire]]) -> None:
        """Take the function that lists servers, for some filters."""
        self._list = listed
        self._lock = threading.Lock()
        self._things: dict[str, Wire] = {}
        self._seen_at: dict[str, float] = {}
        self._listed_at = self._looked_at = 0.0

    def things(self, noted: Callable[[], Mapping[str, float]] = dict) -> dict[str, Wire]:
        """Return handle -> server, for those that exist and are known well enough.

        Args:
            noted: Returns those of the servers that matter which are noted as changed -> seconds since then. It is
                asked once more after the look: what is not noted by then was not changed before it.

        Raises:
            Transient: Nova does not answer.
        """
        with self._lock:
            now, at = time.time(), passed()
            # A clock that was set back would let changes be missed.
            full = not self._listed_at <= self._looked_at <= now < self._listed_at + FULL_S
            full = full or len(self._outdated(noted())) > FEW
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._looked_at - MARGIN_S))
            found = {str(each["id"]): each for each in self._list(**({} if full else {"changes-since": since}))}
            known = found if full else {**self._things, **found}
            self._things = {handle: each for handle, each in known.items() if each["status"] != "DELETED"}
            seen_at = {} if full else self._seen_at
            self._seen_at = {handle: at if handle in found else seen_at[handle] for handle in self._things}
            self._listed_at, self._looked_at = now if full else self._listed_at, now
            outdated = set() if full else self._outdated(noted()) - found.keys()
            return {handle: each for handle, each in self._things.items() if handle not in outdated}

    def _outdated(self, noted: Mapping[str, float]) -> set[str]:
        """Return those of these servers that were not seen since their change has settled."""
        now = passed()
        return {handle for handle, ago in noted.items() if self._seen_at.get(handle, 0.0) < now - ago + SETTLED_S}

    def learn(self, thing: Wire, at: float) -> None:
        """Take note of what a single look has told that began at a time of `clock.passed`."""
        with self._lock:
            handle = str(thing["id"])
            if at >= self._seen_at.get(handle, 0.0):
                self._things[handle], self._seen_at[handle] = thing, at
