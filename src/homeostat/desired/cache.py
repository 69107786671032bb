"""What a process keeps in memory since it is dear to make, and what that asks of the garbage collector."""

import gc
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """The values that were used last. Safe to share between threads, which may make one value twice.

    Takes: size_max — of all values together, the newest stays in any case; size — of one value, 1 without.
    """

    def __init__(self, size_max: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._values: LRUCache[K, V] = LRUCache(size_max, lambda value: min(size(value), size_max))
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key; `make` is called only when it is not in memory."""
        with self._lock:
            if key in self._values:
                return self._values[key]
        value = make()
        with self._lock:
            return self._values.setdefault(key, value)  # another thread may have been quicker


def spare_the_collector() -> None:
    """Let Python look for cycles more rarely, and not among what is there already: ten thousand rows or definitions
    have none, and walking them takes a tenth of a second, in which a process answers nobody. For a process of the
    service, once all that stays is there."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
