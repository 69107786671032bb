"""Threads for a worker's periodic tasks: observing, sweeping, collecting snapshots, delivering events.

One thread queries the database for all tasks. While nothing is due, the threads of the tasks cost nothing (ADR 0053).
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
"""Minimum pause between two queries, however many notices arrive."""
STOP_S = 5.0
"""Time that stopping waits for each thread."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Work that is done whenever some is due according to the database.

    Attributes:
        name: A name in `store.operation.periodic`.
        run: Does the work that is due, and returns how much there was.
        idle_s: Pause after a run without work, for example since another worker was faster.
    """

    name: str
    run: Callable[[], int]
    idle_s: float
    due: threading.Event = field(default_factory=threading.Event)
    """Set while work is due or being done."""


class PeriodicTasks:
    """One thread for each task, and a thread that finds out which tasks are due."""

    def __init__(self, db: Database, tasks: Sequence[PeriodicTask], vantage: str = DEFAULT_VANTAGE) -> None:
        """Create the threads; `vantage` is the name of the place from which URLs are checked."""
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
                threading.Thread(target=self._run, args=(task,), name=f"periodic-{task.name}", daemon=True)
                for task in tasks
            ),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop; running tasks are finished, unless that takes long."""
        self._stop.set()
        # Wakes the waiting threads, which see `_stop` and end.
        self._wake.set()
        for task in self._tasks:
            task.due.set()
        for thread in self._threads:
            thread.join(timeout=STOP_S)

    def _watch(self) -> None:
        while not self._stop.wait(QUERY_PAUSE_S):
            # Cleared before the query, so that a notice during the query leads to another query.
            self._wake.clear()
            try:
                pause_s = self.begin_due()
            except Exception:
                LOG.exception("cannot find out which periodic tasks are due; it is tried again")
                pause_s = RETRY_S
            self._wake.wait(pause_s)

    def begin_due(self) -> float:
        """Start every task that has work due; return the seconds until the next query."""
        within_s = self._db.notices.longest_wait_s()
        with self._db.single_read() as tx:
            waits = periodic.due_in(tx, self._db.agreed_now(), within_s, self._vantage)
        # A running task needs no wake-up: it triggers another query once it is done (see `_run`).
        resting = [task for task in self._tasks if not task.due.is_set()]
        for task in resting:
            if waits[task.name] <= 0.0:
                task.due.set()
        return min((waits[task.name] for task in resting if not task.due.is_set()), default=within_s)

    def _run(self, task: PeriodicTask) -> None:
        while task.due.wait() and not self._stop.is_set():
            try:
                pause_s = 0.0 if task.run() else task.idle_s
            except Exception:
                LOG.exception("%s failed; it is tried again", task.name)
                pause_s = RETRY_S
            self._stop.wait(pause_s)
            # Not due until the pause is over; work that came up meanwhile is found by the query that follows.
            task.due.clear()
            self._wake.set()
