"""What Nova last told of the servers of a project, so that a look at many that are quiet is one small request."""

import threading
import time
from collections.abc import Callable, Iterator

from homeostat.clouds.openstack.service import Wire

FULL_S = 600.0
"""Seconds after which everything is listed anew."""
MARGIN_S = 300.0
"""Seconds for which a change is asked for again: so much may the clocks of this machine and of Nova differ."""


class ServerLooks:
    """The servers of a project, as one process knows them. Safe to share between threads.

    Every look lists what has changed since the one before (`changes-since`); every ten minutes all servers are listed.
    Nova does not list so a server whose tags were changed, or that lost an entry of its metadata, or got or lost an
    interface, a volume or a floating IP: that is seen within ten minutes. What this service itself changes of these it
    follows up with a change that is told (`Servers.tell`), since other processes look as well. What Nova finds out only
    after that is seen all the same, since every look asks again for the changes of the last minutes.
    """

    def __init__(self, listed: Callable[..., Iterator[Wire]]) -> None:
        """Take the function that lists servers, for some filters."""
        self._list = listed
        self._lock = threading.Lock()
        self._things: dict[str, Wire] = {}
        self._listed_at = self._looked_at = 0.0

    def things(self) -> dict[str, Wire]:
        """Return handle -> server, for those that exist.

        Raises:
            Transient: Nova does not answer.
        """
        with self._lock:
            now = time.time()
            # A clock that was set back would let changes be missed.
            full = not self._listed_at <= self._looked_at <= now < self._listed_at + FULL_S
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._looked_at - MARGIN_S))
            found = {str(each["id"]): each for each in self._list(**({} if full else {"changes-since": since}))}
            known = found if full else {**self._things, **found}
            self._things = {handle: each for handle, each in known.items() if each["status"] != "DELETED"}
            self._listed_at, self._looked_at = now if full else self._listed_at, now
            return dict(self._things)

    def learn(self, thing: Wire) -> None:
        """Take note of what a single look has told."""
        with self._lock:
            self._things[str(thing["id"])] = thing
