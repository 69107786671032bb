"""Set of ids that forgets each id after some seconds."""

import threading
import time
from collections.abc import Callable, Iterable

from cachetools import TTLCache


class RecentIds:
    """Ids noted lately. Safe to share between threads."""

    def __init__(self, most: int, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Choose how many ids are kept at most, and for how many seconds, and the clock of this process."""
        self._lock = threading.Lock()
        self._noted: TTLCache[str, bool] = TTLCache(most, seconds, monotonic)

    def note(self, ids: Iterable[str]) -> None:
        with self._lock:
            self._noted.update(dict.fromkeys(ids, True))

    def forget(self, ids: Iterable[str]) -> None:
        with self._lock:
            for id in ids:
                self._noted.pop(id, None)

    def recent(self, ids: Iterable[str]) -> set[str]:
        """Return the ids that were noted lately."""
        with self._lock:
            return {id for id in ids if id in self._noted}
