"""Cache of child lists: services list children by parent only, and unchanged parents need not be listed anew."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from homeostat.clouds.openstack.service import Wire

FULL_S = 600.0
"""Seconds after which children are listed anew even if the parent seems unchanged."""
SETTLED_S = 2.0
"""Seconds for which the entry must have been unchanged when listing: services round timestamps to whole seconds."""
KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Known:
    """entry — of the parent. since, listed_at — when the entry was first seen, and when its children were listed."""

    entry: Wire
    since: float
    listed_at: float
    parts: Sequence[Wire]


class ChildListCache:
    """Children by parent, as this process last listed them. Safe to share between threads.

    A parent's entry in the list of its kind has the time of its last change, which a change of a child updates, too,
    and the ids of its children. As long as the entry stays the same, so do the children.
    """

    def __init__(
        self, parts_of: Callable[[str], Sequence[Wire]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the function that lists the children of a parent, and the clock of this process."""
        self._parts_of = parts_of
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: LRUCache[str, _Known] = LRUCache(KNOWN_MAX)

    def of(self, parent: str, entry: Wire) -> Sequence[Wire]:
        """Return the children of a parent whose entry was just listed.

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
