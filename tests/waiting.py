"""Waiting for conditions: as short as they allow, and far longer than a busy machine needs."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

QUIET = os.environ.get("HOMEOSTAT_QUIET_MACHINE") == "1"
"""Nothing else runs here: times are asserted as they are promised, not as a busy machine can keep them."""
PATIENCE_S = 120.0
LOOK_S, LOOK_S_MAX = 0.02, 0.25
LOOK_PART = 0.1
"""Pause between two looks, as a part of the time that was waited: looks cost CPU time, which others wait for."""


def until(
    ask: Callable[[], Found | None],
    what: str = "it to come true",
    rest: Callable[[float], None] = time.sleep,
    within_s: float = PATIENCE_S,
) -> Found:
    """The first true answer of `ask`, looked at again and again. Fails when it takes too long.

    rest — how time passes between two looks; within_s — only where so short a time is promised.
    """
    began = time.monotonic()
    while not (found := ask()):
        waited_s = time.monotonic() - began
        assert waited_s < within_s, f"waited {within_s:.0f} s in vain for {what}"
        rest(min(max(LOOK_S, waited_s * LOOK_PART), LOOK_S_MAX))
    return found
