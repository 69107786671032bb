"""Time and randomness as injected objects, so that a simulation can replay everything from a seed."""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
PAIRS = [first + second for first in ALPHABET for second in ALPHABET]
"""The pair of characters for each value of ten bits."""


def passed() -> float:
    """Return monotonic seconds, including suspended time if the system can measure it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Return the seconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for measuring durations."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class AgreedClock(SystemClock):
    """The time that all workers agree on.

    So a worker with a wrong clock does no harm: no stack times out early, and no observation seems newer than it is.
    """

    def __init__(self, agreed_now: Callable[[], float]) -> None:
        """Read the time from `agreed_now`, see `store.database.Database.agreed_now`."""
        self._agreed_now = agreed_now

    def now(self) -> float:
        return self._agreed_now()


class Keys:
    """Endless supply of row keys of 12 characters. Safe to share between threads.

    Keys come in runs with the same 10 characters, from 50 random bits, and all values of the last two. So rows created
    together are neighbours in every index, and writing the millionth row is as cheap as writing the first thousand.
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
        """Return the keys of a new run."""
        number = int.from_bytes(self._read(7), "big")
        beginning = "".join(PAIRS[(number >> place) & 1023] for place in range(0, 50, 10))
        return (beginning + end for end in PAIRS)


@dataclass(frozen=True, slots=True)
class Entropy:
    """A source of randomness; `read(n)` returns n bytes."""

    read: Callable[[int], bytes] = os.urandom

    def keys(self) -> Keys:
        """Return a supply of row keys."""
        return Keys(self.read)

    def stack_id(self) -> str:
        """Return a new UUID, for a stack or a record."""
        return str(uuid.UUID(bytes=self.read(16), version=4))
