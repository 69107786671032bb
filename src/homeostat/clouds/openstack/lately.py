"""What was noted about things, for some seconds."""

import threading
import time
from collections.abc import Callable, Iterable

from cachetools import TTLCache


class RecentIds:
    """Ids of which something was noted lately. Safe to share between threads."""

    def __init__(self, most: int, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Choose how many ids are known at most, and for how long each, and the clock of this process."""
        self._lock = threading.Lock()
        self._noted: TTLCache[str, bool] = TTLCache(most, seconds, monotonic)

    def note(self, ids: Iterable[str]) -> None:
        with self._lock:
            self._noted.update(dict.fromkeys(ids, True))

    def forget(self, ids: Iterable[str]) -> None:
        with self._lock:
            for each in ids:
                self._noted.pop(each, None)

    def among(self, ids: Iterable[str]) -> set[str]:
        """Return those of these ids that were noted lately."""
        with self._lock:
            return {each for each in ids if each in self._noted}
