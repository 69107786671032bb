"""Rate limits: a token bucket per caller, refilled at an even rate."""

import hashlib
import threading
import time
from collections.abc import Callable, Hashable

from homeostat.model.errors import TooManyRequests
from homeostat.model.rates import Rate

BUCKETS_MAX = 10_000
"""Buckets kept before full ones are dropped."""


class TokenBuckets:
    """Token buckets by key, full at first. Safe to share between threads.

    Args:
        rate: None for no limit.
    """

    def __init__(self, rate: Rate | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._full_at: dict[bytes, float] = {}
        """Digest of a key -> time at which the bucket is full again, which determines its content at any time."""

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, *key: Hashable) -> None:
        """Take a token. Raise TooManyRequests if the bucket is empty."""
        if self._rate is None:
            return
        now = self._monotonic()
        # A key may hold text of the caller, of any length; digests bound the memory.
        digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
        with self._lock:
            full_at = max(self._full_at.get(digest, now), now) + 1 / self._rate.per_s
            wait_s = full_at - now - self._rate.burst / self._rate.per_s
            if wait_s <= 1e-9:
                if len(self._full_at) >= BUCKETS_MAX:
                    self._forget(now)
                self._full_at[digest] = full_at
                return
        raise TooManyRequests(f"At most {self._rate.per_s:g} requests a second, and {self._rate.burst} at once", wait_s)

    def _forget(self, now: float) -> None:
        """Drop full buckets, at least the fullest quarter."""
        by_time = sorted(self._full_at.items(), key=lambda bucket: bucket[1])
        self._full_at = {key: at for key, at in by_time[len(by_time) // 4 :] if at > now}
