"""Threads for what a worker does beside the passes. One asks the database for all of them whether there is something to
do, so that the others cost nothing while there is not."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from homeostat.store.database import Database
from homeostat.store.operation import periodic

LOG = logging.getLogger(__name__)
AGAIN_S = 1.0
BREATH_S = 0.02
"""Between two questions, however many notices come in."""
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """name — see `store.operation.periodic`; run — gives how much it did; idle_s — pause after a run that found nothing
    to do, as when somebody else was faster."""

    name: str
    run: Callable[[], int]
    idle_s: float
    wanted: threading.Event = field(default_factory=threading.Event)
    """Set while there is something to do, until it is done."""


class PeriodicTasks:
    """A thread for each chore, and one that looks out for all."""

    def __init__(self, db: Database, chores: Sequence[PeriodicTask]) -> None:
        self._db = db
        self._chores = chores
        self._stop = threading.Event()
        self._news = threading.Event()
        self.nudge: Callable[[], None] = self._news.set
        """There may be something to do."""
        self._threads = [
            threading.Thread(target=self._look_out, name="chores", daemon=True),
            *(
                threading.Thread(target=self._do, args=(each,), name=f"chore-{each.name}", daemon=True)
                for each in chores
            ),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """What is being done is finished, if that does not take long."""
        self._stop.set()
        self._news.set()
        for each in self._chores:
            each.wanted.set()
        for thread in self._threads:
            thread.join(timeout=STOP_S)

    def _look_out(self) -> None:
        while not self._stop.wait(BREATH_S):
            self._news.clear()
            try:
                pause_s = self.begin_due()
            except Exception:
                LOG.exception("cannot ask what there is to do beside the passes; it is tried again")
                pause_s = AGAIN_S
            self._news.wait(pause_s)

    def begin_due(self) -> float:
        """Have everything done that is due. Gives seconds until the next question."""
        within_s = self._db.notices.longest_wait_s()
        with self._db.glance() as tx:
            waits = periodic.due_in(tx, self._db.agreed_now(), within_s)
        resting = [each for each in self._chores if not each.wanted.is_set()]
        for each in resting:
            if waits[each.name] <= 0.0:
                each.wanted.set()
        return min((waits[each.name] for each in resting if not each.wanted.is_set()), default=within_s)

    def _do(self, chore: PeriodicTask) -> None:
        while chore.wanted.wait() and not self._stop.is_set():
            try:
                pause_s = 0.0 if chore.run() else chore.idle_s
            except Exception:
                LOG.exception("%s failed; it is tried again", chore.name)
                pause_s = AGAIN_S
            self._stop.wait(pause_s)
            chore.wanted.clear()
            self._news.set()
