"""Waiting for conditions: as short as they allow, and far longer than a busy machine needs."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE_S = 120.0
LOOK_S = 0.02


def until(
    ask: Callable[[], Found | None],
    what: str = "it to come true",
    rest: Callable[[float], None] = time.sleep,
    within_s: float = PATIENCE_S,
) -> Found:
    """The first true answer of `ask`, looked at again and again. Fails when it takes too long.

    rest — how time passes between two looks; within_s — only where so short a time is promised.
    """
    deadline = time.monotonic() + within_s
    while not (found := ask()):
        assert time.monotonic() < deadline, f"waited {within_s:.0f} s in vain for {what}"
        rest(LOOK_S)
    return found
