"""Delays between attempts after a failure that time mends."""

FIRST_S = 1.0
"""Seconds before the first retry; the delay doubles from there."""
LONGEST_S = 60.0
"""Seconds that no delay exceeds."""


def delay_s(attempt: int, asked_s: float | None = None) -> float:
    """Return the seconds to wait before a retry.

    Args:
        attempt: Number of the retry, from 1.
        asked_s: Delay that the cloud asks for; it takes precedence.
    """
    if asked_s is not None:
        return max(asked_s, 0.1)
    # The exponent is bounded so that attempts without end make no huge numbers.
    return float(min(FIRST_S * 2 ** min(attempt - 1, 16), LONGEST_S))
