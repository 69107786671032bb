"""Time and randomness, as things that are handed in (so that a seed can replay everything)."""

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
PAIRS = [ALPHABET[number & 31] + ALPHABET[number >> 5] for number in range(1024)]
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


@dataclass(frozen=True, slots=True)
class Keys:
    """Endless supply of row keys: 12 characters, 60 bits. Safe to share between threads."""

    read: Callable[[int], bytes]

    def __iter__(self) -> "Keys":
        return self

    def __next__(self) -> str:
        number = int.from_bytes(self.read(8), "big")
        return "".join([PAIRS[(number >> place) & 1023] for place in range(0, 60, 10)])


@dataclass(frozen=True, slots=True)
class Entropy:
    """A source of randomness; `read(n)` gives n bytes."""

    read: Callable[[int], bytes] = os.urandom

    def keys(self) -> Keys:
        return Keys(self.read)

    def stack_id(self) -> str:
        return str(uuid.UUID(bytes=self.read(16), version=4))
