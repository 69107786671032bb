"""Parts that a service lists for one thing at a time: those of a quiet thing need not be listed in each look."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from homeostat.clouds.openstack.service import Wire

FULL_S = 600.0
"""Seconds after which the parts are listed anew even if nothing seems to have changed."""
SETTLED_S = 2.0
"""Seconds for which an entry has to be the same when the parts are listed: services tell times in whole seconds."""
KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Known:
    """entry — of the parent. since, listed_at — when it was first the same, and when the parts were listed."""

    entry: Wire
    since: float
    listed_at: float
    parts: Sequence[Wire]


class ChildListCache:
    """What one process knows of the parts of things. Safe to share between threads.

    The entry of a thing in the list of its kind tells when it was changed last, which a change of a part changes, too,
    and which parts it has. As long as the entry stays the same, the parts are those of before.
    """

    def __init__(
        self, parts_of: Callable[[str], Sequence[Wire]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the function that lists the parts of one thing, and the clock of this process."""
        self._parts_of = parts_of
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: LRUCache[str, _Known] = LRUCache(KNOWN_MAX)

    def of(self, parent: str, entry: Wire) -> Sequence[Wire]:
        """Return the parts of a thing with an entry that was just listed.

        Raises:
            Transient: The service does not answer.
        """
        now = self._monotonic()
        with self._lock:
            known = self._known.get(parent)
        since = known.since if known is not None and known.entry == entry else now
        if known is not None and since + SETTLED_S <= known.listed_at and now < known.listed_at + FULL_S:
            return known.parts
        parts = self._parts_of(parent)
        with self._lock:
            self._known[parent] = _Known(entry, since, now, parts)
        return parts
