"""Memory that heavy work has left behind goes back to the system.

What threads free, the allocator of glibc keeps for the arena that it came from: after a few heavy passes a worker held
three times as much as was alive in it.
"""

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

GROWN = 64 * 1024 * 1024
"""Bytes by which a process may grow before it looks for what it could give back."""
STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def allocator() -> Callable[[int], int] | None:
    """The allocator's function that gives free memory back; None where it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


class Memory:
    """Of this process. Give back from time to time what is free in it."""

    def __init__(self) -> None:
        self._trim = allocator()
        self._held = resident()

    def tidy(self) -> int:
        """Give back what is free, where much was taken since the last time. Gives how many bytes went."""
        before = resident()
        if self._trim is None or before - self._held < GROWN:
            self._held = min(self._held, before)
            return 0
        gc.collect()
        self._trim(0)
        self._held = resident()
        return max(before - self._held, 0)
