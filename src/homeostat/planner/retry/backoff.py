"""When to try again after a failure that time mends."""

FIRST_S = 1.0
LONGEST_S = 60.0


def delay_s(attempt: int, asked_s: float | None = None) -> float:
    """Seconds to wait before attempt number `attempt` (1 is the first retry); the cloud's own wish comes first."""
    if asked_s is not None:
        return max(asked_s, 0.1)
    return float(min(FIRST_S * 2 ** min(attempt - 1, 16), LONGEST_S))
