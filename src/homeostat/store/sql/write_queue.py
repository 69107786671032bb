"""A queue for the writers of an SQLite database, in all threads and processes.

SQLite admits a single writer at a time, and lets the rest poll at growing intervals: during continuous writes of a
worker, an API process waits for seconds. The operating system wakes a process that waits for a file lock at once, and
releases the locks of processes that die (ADR 0019).
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator

from homeostat.model.errors import Outage

PATIENCE_S = 30.0
"""Time after which a writer gives up: the holder of the lock is frozen in its transaction."""


class WriteQueue:
    """The queue of all writers of a database.

    Args:
        path: A file next to the database. It stays empty, and is created on first use.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn to write, and keep it during the block.

        Raises:
            Outage: The turn did not come within `PATIENCE_S`.
        """
        # A new descriptor each time: flock belongs to the open file, so threads exclude each other, too.
        place = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _try(place):
            self._wait(place)
        try:
            yield
        finally:
            os.close(place)  # releases the lock

    def _wait(self, place: int) -> None:
        """Wait for the lock in a separate thread, since flock itself has no time limit.

        After a failure, the descriptor belongs to the thread, and is closed once the thread gets the lock.
        """
        waiter = _Waiter(place)
        waiter.start()
        if not waiter.acquired.wait(PATIENCE_S) and waiter.give_up():
            raise Outage("the database does not answer", f"it has been locked for {PATIENCE_S:.0f} s ({self._path})")


def _try(place: int) -> bool:
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Waiter(threading.Thread):
    """A thread that waits for the lock, and releases it at once if its caller has given up meanwhile."""

    def __init__(self, place: int) -> None:
        super().__init__(name="write-queue", daemon=True)
        self.acquired = threading.Event()
        self._place = place
        self._gave_up = False
        self._deciding = threading.Lock()

    def run(self) -> None:
        fcntl.flock(self._place, fcntl.LOCK_EX)
        # Under the mutex: either the caller gets the lock, or this thread closes the file.
        with self._deciding:
            if self._gave_up:
                os.close(self._place)
            else:
                self.acquired.set()

    def give_up(self) -> bool:
        """Give up waiting; return False if the lock was acquired at the last moment, so that the caller has it."""
        with self._deciding:
            self._gave_up = not self.acquired.is_set()
            return self._gave_up
