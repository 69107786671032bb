"""What a process keeps in memory since it is dear to make, and what that asks of the garbage collector."""

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """The values that were used last. Safe to share between threads, which may make one value twice.

    Takes: size_max — of all values together, the newest stays in any case; size — of one value, 1 without.
    """

    def __init__(self, size_max: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._size_max = size_max
        self._size_of = size
        self._size = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key; `make` is called only when it is not in memory."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            return self._add(key, value)

    def _add(self, key: K, value: V) -> V:
        if key in self._values:  # another thread was quicker
            return self._values[key]
        self._values[key] = value
        self._size += self._size_of(value)
        while self._size > self._size_max and len(self._values) > 1:
            self._size -= self._size_of(self._values.popitem(last=False)[1])
        return value


def spare_the_collector() -> None:
    """Let Python look for cycles more rarely, and not among what is there already: ten thousand rows or definitions
    have none, and walking them takes a tenth of a second, in which a process answers nobody. For a process of the
    service, once all that stays is there."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
