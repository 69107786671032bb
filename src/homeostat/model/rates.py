"""Rate limits in the notation that operators write."""

import math
import re
from dataclasses import dataclass

_RATE = re.compile(r"(\d+(?:\.\d+)?)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit: `per_s` requests a second in the long run, and bursts of up to `burst` requests."""

    per_s: float
    burst: int


def read_rate(text: str) -> Rate | None:
    """Read `REQUESTS_PER_SECOND[:BURST]`; return None, which means no limit, for an empty text.

    The default burst is the number of requests in a second, at least 1.

    Raises:
        ValueError: The text has another form, or a number is too small.
    """
    if not text:
        return None
    match = _RATE.fullmatch(text)
    per_s, burst = (float(match[1]), match[2]) if match else (0.0, None)
    if per_s <= 0 or (burst is not None and int(burst) < 1):
        raise ValueError("give requests a second, and how many at once if that is not as many: 10 or 10:50")
    return Rate(per_s, math.ceil(per_s) if burst is None else int(burst))
