"""State of services that are away, hang, or have just come back."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from homeostat.model.errors import Transient

DOUBT_S = 5.0
"""Seconds after the first answer of a restarted service, for which its answers are doubted.

Some services answer before they have read their policies: Neutron, asked by several threads at once, then for a moment
refuses every request, answers 404 for existing objects, and omits them from lists. So in this time its answers are no
reason to give up a resource, or to create it anew.
"""
PATIENCE_S = 5.0
"""Timeout in seconds of the first read after a timeout; each further read waits longer."""
SHARE = 3
"""Limit of this timeout: the regular timeout divided by this."""


@dataclass(slots=True)
class _Silence:
    """A hanging service.

    Attributes:
        words: Error of the request without an answer.
        patience_s: Timeout of the next read.
        again_at: When the next request may be sent.
    """

    words: str
    patience_s: float
    again_at: float


class Outages:
    """Services that are not working normally, as seen by this process. Safe to share between threads.

    Requests to a hanging service would occupy all threads until their timeouts, and so block all services. So after a
    timeout only one request at a time is sent to the service, reads with a short timeout; all further requests fail at
    once, until the service answers any request.
    """

    def __init__(self, request_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take the regular timeout of requests in seconds, and the clock of this process."""
        self._longest_s = request_s / SHARE
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._away: set[str] = set()
        self._doubted_until: dict[str, float] = {}
        self._silences: dict[str, _Silence] = {}

    def away(self, service: str) -> None:
        """Record that no process listens at a service's endpoint."""
        with self._lock:
            self._away.add(service)

    def doubt_s(self, service: str) -> float:
        """Return the seconds for which the latest answer of a service is doubtful; 0 if it is not."""
        with self._lock:
            now = self._monotonic()
            if service in self._away:
                self._away.remove(service)
                self._doubted_until[service] = now + DOUBT_S
            return max(self._doubted_until.get(service, now) - now, 0.0)

    def silent(self, service: str, words: str) -> None:
        """Record that a request to a service timed out."""
        with self._lock:
            self._silences.setdefault(service, _Silence(words, min(PATIENCE_S, self._longest_s), self._monotonic()))

    def answered(self, service: str) -> None:
        """Record that a service answered, with success or not."""
        with self._lock:
            self._silences.pop(service, None)

    def patience_s(self, service: str) -> float | None:
        """Return the timeout in seconds for a read; None for the regular timeout.

        Raises:
            Transient: The service hangs, and another request is already probing it.
        """
        with self._lock:
            silence = self._silences.get(service)
            if silence is None:
                return None
            now, patience_s = self._monotonic(), silence.patience_s
            if now < silence.again_at:
                raise Transient(silence.words, silence.again_at - now)
            # While this request probes the service, requests of other threads fail at once.
            silence.again_at = now + 2 * patience_s
            silence.patience_s = min(2 * patience_s, self._longest_s)
            return patience_s
