"""Returning freed memory to the system.

The allocator of glibc keeps freed memory for the arena that it came from, and each thread has its own: after a few
heavy passes a worker held three times as much as it used.
"""

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

GROWN = 64 * 1024 * 1024
"""Bytes by which a process may grow before it looks for memory to return."""
STATM = Path("/proc/self/statm")


def resident() -> int:
    """Return the bytes of memory that this process holds; 0 where the system does not say."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def allocator() -> Callable[[int], int] | None:
    """Return the allocator's function that returns free memory; None where it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


class Memory:
    """Memory of this process, to be tidied from time to time."""

    def __init__(self) -> None:
        self._trim = allocator()
        self._held = resident()

    def tidy(self) -> int:
        """Return free memory to the system if the process has grown much since the last time; return its bytes."""
        before = resident()
        if self._trim is None or before - self._held < GROWN:
            # The process may have shrunk by itself: growth counts from its smallest size.
            self._held = min(self._held, before)
            return 0
        gc.collect()
        self._trim(0)
        self._held = resident()
        return max(before - self._held, 0)
