"""Retry policies: when something that failed is tried again, and when no more."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff; all times are in seconds.

    Attributes:
        first_s: Delay before the first retry; it doubles from there.
        longest_s: Delay that is never exceeded.
        attempts_max: Attempts after which the failure is final; None for no end.
        calm_s: Time for which something has to be well until its failed attempts count no more.
    """

    first_s: float
    longest_s: float
    attempts_max: int | None = None
    calm_s: float = 0.0

    def delay_s(self, retry: int, requested_s: float | None = None) -> float:
        """Return the delay before a retry.

        Args:
            retry: Number of the retry, from 1.
            requested_s: Delay that the other side requests; it takes precedence.
        """
        if requested_s is not None:
            return max(requested_s, 0.1)
        # The exponent is bounded so that attempts without end make no huge numbers.
        return float(min(self.first_s * 2 ** min(retry - 1, 16), self.longest_s))

    def delay_after_s(self, attempts: int) -> float:
        """Return the delay after this many attempts where the second is made at once: 0 up to one attempt."""
        return self.delay_s(attempts - 1) if attempts > 1 else 0.0

    def is_final(self, attempts: int) -> bool:
        """Return whether no attempt is made after this many."""
        return self.attempts_max is not None and attempts >= self.attempts_max

    def is_calm(self, well_s: float) -> bool:
        """Return whether the failed attempts count no more after this time of being well."""
        return well_s >= self.calm_s
