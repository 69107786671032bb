"""Returns freed memory to the system.

The allocator of glibc keeps freed memory in arenas, one per thread: after a few heavy passes a worker held three times
as much memory as it used.
"""

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

GROWN = 64 * 1024 * 1024
"""Growth of the process, in bytes, that triggers a return of memory."""
STATM = Path("/proc/self/statm")


def resident() -> int:
    """Return the resident memory of this process in bytes; 0 if unknown."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def allocator() -> Callable[[int], int] | None:
    """Return the allocator's function that releases free memory, if any."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


class Memory:
    """Memory of this process, released from time to time."""

    def __init__(self) -> None:
        self._trim = allocator()
        self._held = resident()

    def tidy(self) -> int:
        """Release free memory if the process has grown by `GROWN` since the last time; return the bytes released."""
        before = resident()
        if self._trim is None or before - self._held < GROWN:
            # The process may have shrunk without us: growth counts from the smallest size.
            self._held = min(self._held, before)
            return 0
        gc.collect()
        self._trim(0)
        self._held = resident()
        return max(before - self._held, 0)
