"""Time and randomness, as things that are handed in (so that a seed can replay everything)."""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
PAIRS = [first + second for first in ALPHABET for second in ALPHABET]
"""Two characters for ten bits."""


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class AgreedClock(SystemClock):
    """The time that all workers agree on, so that one with a wrong clock does no harm: no stack times out early, and no
    look of its own passes for the newest. Takes: agreed_now — see `store.database.Database`."""

    def __init__(self, agreed_now: Callable[[], float]) -> None:
        self._agreed_now = agreed_now

    def now(self) -> float:
        return self._agreed_now()


class Keys:
    """Endless supply of row keys, 12 characters each. Safe to share between threads.

    50 random bits begin a run of keys that differ in their last two characters: rows that are made together are
    neighbours in every index, which keeps writing a million of them as cheap as writing the first thousand.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._run: Iterator[str] = iter(())

    def __iter__(self) -> "Keys":
        return self

    def __next__(self) -> str:
        with self._lock:
            key = next(self._run, None)
            if key is None:
                self._run = self._begin()
                key = next(self._run)
            return key

    def _begin(self) -> Iterator[str]:
        number = int.from_bytes(self._read(7), "big")
        beginning = "".join(PAIRS[(number >> place) & 1023] for place in range(0, 50, 10))
        return (beginning + end for end in PAIRS)


@dataclass(frozen=True, slots=True)
class Entropy:
    """A source of randomness; `read(n)` gives n bytes."""

    read: Callable[[int], bytes] = os.urandom

    def keys(self) -> Keys:
        return Keys(self.read)

    def stack_id(self) -> str:
        return str(uuid.UUID(bytes=self.read(16), version=4))
