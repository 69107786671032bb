"""Rate limits of requests per service, shared by all processes.

A process takes several turns at once, at most the turns of a fifth of a second. So a limit of any size costs about five
short transactions per second in total, and none while no request is sent.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from homeostat.model.errors import Transient
from homeostat.model.rates import Rate, read_rate

SLICE_S = 0.2
"""Seconds of turns that are taken in advance at most, and for which an unused turn stays valid."""
LOOK_WAITS_S = 2.0
"""Seconds that a read waits for its turn."""
CHANGE_WAITS_S = 5.0
"""Seconds that a change waits for its turn: longer, since users and unhealthy resources depend on it."""
PAUSE_MAX_S = 300.0
"""Longest pause that a service can request."""


class RateGate(Protocol):
    """Turns that all processes share."""

    def take(self, service: str, rate: Rate, wanted: int, within_s: float) -> tuple[list[float], float]:
        """Take the next turns of a service.

        Args:
            wanted: Maximum number of turns.
            within_s: Only turns within so many seconds are taken.

        Returns:
            The seconds until each turn, and until the first free turn.

        Raises:
            Transient: The shared state is unavailable.
        """


@dataclass(slots=True)
class _Ahead:
    """Turns of a service held by this process. Times are of the process's monotonic clock.

    Attributes:
        turns: Times of the turns taken in advance.
        waiting: Number of waiting threads.
        taken_at: When turns were last taken.
        taken: Number of turns last taken.
        paused_until: End of the pause requested by the service.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    turns: deque[float] = field(default_factory=deque)
    waiting: int = 0
    taken_at: float = 0.0
    taken: int = 0
    paused_until: float = 0.0


class Budget:
    """Limits the requests of a process. Safe to share between threads."""

    def __init__(
        self,
        limits: Mapping[str, Rate] | None = None,
        turns: RateGate | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the limits.

        Args:
            limits: Type of a service -> its limit; "" -> the limit of each further service. None for no limits.
            turns: RateGate that all processes share; required with limits.
            monotonic: Clock of this process.
            sleep: Waits for some seconds.
        """
        self._limits = limits or {}
        self._turns = turns
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._ahead: dict[str, _Ahead] = {}

    def take(self, service: str, looks: bool = False) -> None:
        """Wait for the turn of one request.

        Args:
            looks: The request is a read.

        Raises:
            Transient: The turn is too far away to wait.
        """
        ahead = self._of(service)
        waits_s = LOOK_WAITS_S if looks else CHANGE_WAITS_S
        pause_s = ahead.paused_until - self._monotonic()
        if pause_s > waits_s:
            raise Transient(f"{service} has asked for a pause of {pause_s:.0f} s", pause_s)
        rate = self._limits.get(service) or self._limits.get("")
        turn_s = self._turn_s(service, ahead, rate, waits_s) if rate is not None else 0.0
        if max(pause_s, turn_s) > 0:
            self._sleep(max(pause_s, turn_s))

    def pause(self, service: str, seconds: float) -> None:
        """Stop requests to a service for the seconds of its `Retry-After`."""
        ahead = self._of(service)
        ahead.paused_until = max(ahead.paused_until, self._monotonic() + min(seconds, PAUSE_MAX_S))

    def _of(self, service: str) -> _Ahead:
        with self._lock:
            return self._ahead.setdefault(service, _Ahead())

    def _turn_s(self, service: str, ahead: _Ahead, rate: Rate, waits_s: float) -> float:
        """Take a turn, and return the seconds until it.

        Raises:
            Transient: No turn is near enough.
        """
        with self._lock:
            ahead.waiting += 1
        try:
            with ahead.lock:
                now = self._monotonic()
                while ahead.turns and ahead.turns[0] < now - SLICE_S:
                    ahead.turns.popleft()
                if not ahead.turns:
                    self._take_ahead(service, ahead, rate, waits_s)
                return ahead.turns.popleft() - self._monotonic()
        finally:
            with self._lock:
                ahead.waiting -= 1

    def _take_ahead(self, service: str, ahead: _Ahead, rate: Rate, waits_s: float) -> None:
        """Take a turn for each waiting thread, or more if the last turns were used up soon."""
        assert self._turns is not None
        started = self._monotonic()
        eager = 2 * ahead.taken if started < ahead.taken_at + 2 * SLICE_S else 0
        wanted = max(1, ahead.waiting, min(eager, int(rate.per_s * SLICE_S)))
        turns, free_s = self._turns.take(service, rate, wanted, waits_s)
        ahead.taken_at, ahead.taken = self._monotonic(), len(turns)
        if not turns:
            raise Transient(f"{service}: the limit of {rate.per_s:g} requests a second is reached", free_s)
        ahead.turns.extend(ahead.taken_at + turn_s for turn_s in turns)


def read_limits(text: str) -> dict[str, Rate]:
    """Read `RATE[:BURST]` for all services, or `SERVICE=RATE[:BURST],…`, or both; {} for an empty text.

    Raises:
        ValueError: The text is malformed.
    """
    limits: dict[str, Rate] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        service, _, rate = entry.rpartition("=")
        limit = read_rate(rate)
        if limit is None or service in limits:
            raise ValueError(
                f"{entry!r}: write SERVICE=RATE[:BURST], each service once, as in compute=20,network=50:100"
            )
        limits[service] = limit
    return limits
