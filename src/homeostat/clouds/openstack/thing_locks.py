"""Mutual exclusion of changes to the same object: some services refuse a change during another."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachetools import TTLCache

from homeostat.model.errors import Transient

RETRY_S = 1.0
"""Seconds after which a change that had to wait is tried again."""
BUSY_S = 0.7
"""Seconds for which an object counts as busy after a change, or after it was seen busy, without a new read."""
BUSY_MAX = 10_000


class ThingLocks:
    """Locks of objects by id. Safe to share between threads.

    Of several concurrent changes one holds the lock; the rest raise `Transient` without a request that could only fail.
    """

    def __init__(self, what: str) -> None:
        """Choose the noun for the objects in error messages."""
        self._what = what
        self._lock = threading.Lock()
        self._taken: set[str] = set()
        self._busy: TTLCache[str, bool] = TTLCache(BUSY_MAX, BUSY_S)

    @contextmanager
    def turn(self, id: str, busy: Callable[[], bool]) -> Iterator[None]:
        """Run the body while no other change of the object runs.

        Args:
            busy: Asks the service whether the object is busy.

        Raises:
            Transient: The object is being changed.
        """
        with self._lock:
            if id in self._taken or id in self._busy:
                raise self._not_now(id)
            self._taken.add(id)
        try:
            if busy():
                self._rests(id)
                raise self._not_now(id)
            yield
            self._rests(id)
        except Transient:
            self._rests(id)
            raise
        finally:
            with self._lock:
                self._taken.discard(id)

    def _rests(self, id: str) -> None:
        with self._lock:
            self._busy[id] = True

    def _not_now(self, id: str) -> Transient:
        return Transient(f"{self._what} {id} takes one change at a time, and carries one out now", RETRY_S)
