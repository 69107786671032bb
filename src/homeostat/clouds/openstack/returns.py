"""Services that were away and are back: at first some answer before they have read their policies.

Neutron, asked by several threads at once, then refuses everything for a moment, calls all things missing, and leaves
them out of lists. So for some seconds its answers are no reason to give up, nor to make a
thing anew.
"""

import threading
import time
from collections.abc import Callable

DOUBT_S = 5.0
"""Seconds after the first answer of a service that was away."""


class Returns:
    """What one process knows of services that were away. Safe to share between threads."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take the clock of this process."""
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._away: set[str] = set()
        self._doubted_until: dict[str, float] = {}

    def away(self, service: str) -> None:
        """Take note that nothing listens where a service should."""
        with self._lock:
            self._away.add(service)

    def doubt_s(self, service: str) -> float:
        """Return the seconds for which an answer that a service has just given is to be doubted; 0 if it is not."""
        with self._lock:
            now = self._monotonic()
            if service in self._away:
                self._away.remove(service)
                self._doubted_until[service] = now + DOUBT_S
            return max(self._doubted_until.get(service, now) - now, 0.0)
