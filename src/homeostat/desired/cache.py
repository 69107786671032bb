"""A cache of expensive values."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """The most recently used values. Safe to share between threads, which may compute the same value twice."""

    def __init__(self, size_max: int, size: Callable[[V], int] = lambda _: 1) -> None:
        """Begin empty.

        Args:
            size_max: Size of all values together. The newest value stays even if it alone is larger.
            size: Returns the size of a value; by default each counts 1.
        """
        # A value larger than the cache counts as the full size, since LRUCache refuses such values.
        self._values: LRUCache[K, V] = LRUCache(size_max, lambda value: min(size(value), size_max))
        self._lock = threading.Lock()

    def peek(self, key: K) -> V | None:
        """Return the value of a key; None if it is not in memory."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._values[key] = value

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; `make` is called only if the value is not in memory."""
        with self._lock:
            if key in self._values:
                return self._values[key]
        # Without the lock, since making a value takes long, and other threads need other values meanwhile.
        value = make()
        with self._lock:
            return self._values.setdefault(key, value)  # another thread may have been quicker
