"""A queue for the writers of an SQLite database, in all threads and processes.

SQLite lets one writer in at a time, and has the others ask again and again, at growing intervals: beside a worker that
writes without a pause, an API process waits for seconds. The operating system wakes whoever waits for a lock on a file
at once, and lets go of the locks of processes that die.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator

from homeostat.model.errors import Transient

PATIENCE_S = 30.0
"""How long to wait before giving up: somebody is frozen in the middle of a transaction."""


class WriteQueue:
    """Takes: path — of a file beside the database; it stays empty, and is made when it is first needed."""

    def __init__(self, path: str) -> None:
        self._path = path

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn to write. Fails: Transient when it does not come in time."""
        place = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _try(place):
            self._wait(place)
        try:
            yield
        finally:
            os.close(place)  # lets go of the lock

    def _wait(self, place: int) -> None:
        """In a thread of its own, since nothing else can end the wait; it closes the place if it comes too late."""
        waiter = _Waiter(place)
        waiter.start()
        if not waiter.there.wait(PATIENCE_S) and waiter.give_up():
            raise Transient(f"the database does not answer: it has been locked for {PATIENCE_S:.0f} s ({self._path})")


def _try(place: int) -> bool:
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Waiter(threading.Thread):
    """Waits for the lock; whoever gave up in between does not get it any more."""

    def __init__(self, place: int) -> None:
        super().__init__(name="write-queue", daemon=True)
        self.there = threading.Event()
        self._place = place
        self._given_up = False
        self._deciding = threading.Lock()

    def run(self) -> None:
        fcntl.flock(self._place, fcntl.LOCK_EX)
        with self._deciding:
            if self._given_up:
                os.close(self._place)
            else:
                self.there.set()

    def give_up(self) -> bool:
        """False: the lock came in the last moment."""
        with self._deciding:
            self._given_up = not self.there.is_set()
            return self._given_up
