"""Threads for a worker's periodic tasks: observing, sweeping, collecting snapshots, delivering events.

One thread queries the database for all of them, so that the others cost nothing while there is nothing to do
(ADR 0053).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from homeostat.model.health_policy import DEFAULT_VANTAGE
from homeostat.store.database import Database
from homeostat.store.operation import periodic

LOG = logging.getLogger(__name__)
RETRY_S = 1.0
"""Pause after a failure."""
QUERY_PAUSE_S = 0.02
"""Least time between two queries, however many notices come in."""
STOP_S = 5.0
"""Time that stopping waits for each thread."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Work that is done whenever the database says that some of it is due.

    Attributes:
        name: One of the names in `store.operation.periodic`.
        run: Does what is due, and returns how much that was.
        idle_s: Pause after a run that found nothing to do, for example since another worker was faster.
    """

    name: str
    run: Callable[[], int]
    idle_s: float
    due: threading.Event = field(default_factory=threading.Event)
    """Set from when something is due until it is done."""


class PeriodicTasks:
    """One thread for each task, and one that finds out which tasks are due."""

    def __init__(self, db: Database, tasks: Sequence[PeriodicTask], vantage: str = DEFAULT_VANTAGE) -> None:
        """Make the threads, which `start` starts; vantage — name of the place from which URLs are asked."""
        self._db = db
        self._vantage = vantage
        self._tasks = tasks
        self._stop = threading.Event()
        self._wake = threading.Event()
        self.nudge: Callable[[], None] = self._wake.set
        """Report that something may be due."""
        self._threads = [
            threading.Thread(target=self._watch, name="periodic-tasks", daemon=True),
            *(
                threading.Thread(target=self._run, args=(each,), name=f"periodic-{each.name}", daemon=True)
                for each in tasks
            ),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop; tasks that are running are finished, if that does not take long."""
        self._stop.set()
        # Wakes the threads that wait: they see `_stop`, and end.
        self._wake.set()
        for each in self._tasks:
            each.due.set()
        for thread in self._threads:
            thread.join(timeout=STOP_S)

    def _watch(self) -> None:
        while not self._stop.wait(QUERY_PAUSE_S):
            # Cleared before the query: a notice that comes in during it leads to another one.
            self._wake.clear()
            try:
                pause_s = self.begin_due()
            except Exception:
                LOG.exception("cannot find out which periodic tasks are due; it is tried again")
                pause_s = RETRY_S
            self._wake.wait(pause_s)

    def begin_due(self) -> float:
        """Start every task that has something due; return the seconds until the next query."""
        within_s = self._db.notices.longest_wait_s()
        with self._db.single_read() as tx:
            waits = periodic.due_in(tx, self._db.agreed_now(), within_s, self._vantage)
        # A task that runs needs no wake-up: it has the database queried again once it is done (see `_run`).
        resting = [each for each in self._tasks if not each.due.is_set()]
        for each in resting:
            if waits[each.name] <= 0.0:
                each.due.set()
        return min((waits[each.name] for each in resting if not each.due.is_set()), default=within_s)

    def _run(self, task: PeriodicTask) -> None:
        while task.due.wait() and not self._stop.is_set():
            try:
                pause_s = 0.0 if task.run() else task.idle_s
            except Exception:
                LOG.exception("%s failed; it is tried again", task.name)
                pause_s = RETRY_S
            self._stop.wait(pause_s)
            task.due.clear()
            self._wake.set()
