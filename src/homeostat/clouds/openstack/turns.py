"""One change at a time: some things take none while they carry out another."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachetools import TTLCache

from homeostat.model.errors import Transient

RETRY_S = 1.0
"""Seconds after which a change that had to wait is tried again."""
BUSY_S = 0.7
"""Seconds for which a thing counts as busy after a change, or after it was seen busy, without being looked at."""
BUSY_MAX = 10_000


class ThingLocks:
    """Who may change what now. Safe to share between threads.

    A request that cannot succeed is not sent: of several changes one takes the turn, and the others come back later.
    """

    def __init__(self, what: str) -> None:
        """Choose the words for the things in errors."""
        self._what = what
        self._lock = threading.Lock()
        self._taken: set[str] = set()
        self._busy: TTLCache[str, bool] = TTLCache(BUSY_MAX, BUSY_S)

    @contextmanager
    def turn(self, id: str, busy: Callable[[], bool]) -> Iterator[None]:
        """Let the body change a thing, alone.

        Args:
            id: Id of the thing.
            busy: Asks the service whether the thing is busy.

        Raises:
            Transient: The thing is being changed.
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
