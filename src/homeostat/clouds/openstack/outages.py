"""Services that are away, hang, or are just back."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from homeostat.model.errors import Transient

DOUBT_S = 5.0
"""Seconds after the first answer of a service that was away.

At first some answer before they have read their policies: Neutron, asked by several threads at once, then refuses
everything for a moment, calls all things missing, and leaves them out of lists. So for some seconds its answers are no
reason to give up, nor to make a thing anew.
"""
PATIENCE_S = 5.0
"""Seconds for which the first look after an answer that never came waits for its own; each further one waits longer."""
SHARE = 3
"""The most that such a look waits is this part of the time that a request may take."""


@dataclass(slots=True)
class _Silence:
    """What is known of a service that hangs.

    Attributes:
        words: Why there was no answer.
        patience_s: Seconds for which the next look waits.
        again_at: When the next request may be sent.
    """

    words: str
    patience_s: float
    again_at: float


class Outages:
    """What one process knows of services that do not answer as usual. Safe to share between threads.

    A service that hangs would hold up the requests to all others: its own would take all threads, each for as long as
    a request may take. So once one got no answer in time, one at a time is sent, and a look with little patience, until
    anything is answered; all others fail at once.
    """

    def __init__(self, request_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take the seconds that a request may take, and the clock of this process."""
        self._longest_s = request_s / SHARE
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._away: set[str] = set()
        self._doubted_until: dict[str, float] = {}
        self._silences: dict[str, _Silence] = {}

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

    def silent(self, service: str, words: str) -> None:
        """Take note that a service let a request wait in vain."""
        with self._lock:
            self._silences.setdefault(service, _Silence(words, min(PATIENCE_S, self._longest_s), self._monotonic()))

    def answered(self, service: str) -> None:
        """Take note that a service gave an answer, whatever it says."""
        with self._lock:
            self._silences.pop(service, None)

    def patience_s(self, service: str) -> float | None:
        """Return the seconds for which a look may wait for its answer; None for as long as usual.

        Raises:
            Transient: The service hangs, and another request finds out whether it still does.
        """
        with self._lock:
            silence = self._silences.get(service)
            if silence is None:
                return None
            now, patience_s = self._monotonic(), silence.patience_s
            if now < silence.again_at:
                raise Transient(silence.words, silence.again_at - now)
            # As long as a try takes, others have the time.
            silence.again_at = now + 2 * patience_s
            silence.patience_s = min(2 * patience_s, self._longest_s)
            return patience_s
