"""Retry policies: delays between attempts, and the end of retries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff; all times are in seconds.

    Attributes:
        first_s: Delay before the first retry; doubles with each retry.
        longest_s: Maximum delay.
        attempts_max: Attempts after which the failure is final; None for no limit.
        calm_s: Healthy time after which failed attempts are forgotten.
    """

    first_s: float
    longest_s: float
    attempts_max: int | None = None
    calm_s: float = 0.0

    def delay_s(self, retry: int, requested_s: float | None = None) -> float:
        """Return the delay before a retry.

        Args:
            retry: Number of the retry, from 1.
            requested_s: Delay requested by the server, which takes precedence.
        """
        if requested_s is not None:
            return max(requested_s, 0.1)
        # Bounded: with unlimited attempts, the power would grow huge.
        return float(min(self.first_s * 2 ** min(retry - 1, 16), self.longest_s))

    def delay_after_s(self, attempts: int) -> float:
        """Return the delay after this many attempts, with an immediate second attempt: 0 up to one attempt."""
        return self.delay_s(attempts - 1) if attempts > 1 else 0.0

    def is_final(self, attempts: int) -> bool:
        """Return whether this many attempts are the last."""
        return self.attempts_max is not None and attempts >= self.attempts_max

    def is_calm(self, well_s: float) -> bool:
        """Return whether failed attempts are forgotten after this healthy time."""
        return well_s >= self.calm_s
