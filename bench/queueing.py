"""A small discrete-event simulation: cores, a log with one sync for all transactions that wait, and jobs that visit
them. Random only by the seed."""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

Act = Callable[[], None]


class Timeline:
    """Acts, each at its time; those of one time in the order in which they were added."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.random = Random(seed)
        self._due: list[tuple[float, int, Act]] = []
        self._numbers = itertools.count()

    def after(self, seconds: float, act: Act) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._numbers), act))

    def run(self, until: float) -> None:
        while self._due and self._due[0][0] <= until:
            self.now, _, act = heapq.heappop(self._due)
            act()
        self.now = until


class Cores:
    """Processors that take jobs in the order in which they come; the time of each is exponential around its mean."""

    def __init__(self, timeline: Timeline, count: int) -> None:
        self._timeline, self.count = timeline, count
        self._free = count
        self._waiting: deque[tuple[float, Act]] = deque()
        self.busy_s = 0.0

    def serve(self, mean_s: float, then: Act) -> None:
        seconds = self._timeline.random.expovariate(1 / mean_s) if mean_s else 0.0
        if self._free:
            self._begin(seconds, then)
        else:
            self._waiting.append((seconds, then))

    def _begin(self, seconds: float, then: Act) -> None:
        self._free -= 1
        self.busy_s += seconds

        def end() -> None:
            self._free += 1
            if self._waiting:
                self._begin(*self._waiting.popleft())
            then()

        self._timeline.after(seconds, end)


class Log:
    """The write-ahead log of one database: one sync at a time, for all transactions that waited when it began."""

    def __init__(self, timeline: Timeline, sync_s: float) -> None:
        self._timeline, self._sync_s = timeline, sync_s
        self._waiting: list[Act] = []
        self._syncing = False
        self.busy_s = 0.0
        self.syncs = self.transactions = 0

    def commit(self, then: Act) -> None:
        self._waiting.append(then)
        self.transactions += 1
        if not self._syncing:
            self._sync()

    def _sync(self) -> None:
        together, self._waiting, self._syncing = self._waiting, [], True
        self.busy_s += self._sync_s
        self.syncs += 1

        def end() -> None:
            self._syncing = False
            if self._waiting:
                self._sync()
            for then in together:
                then()

        self._timeline.after(self._sync_s, end)


Visit = Callable[[Act], None]
"""A stop of a job: called with what comes after it."""


def visit(stops: Sequence[Visit], then: Act) -> None:
    """Make the stops one after the other."""
    if stops:
        stops[0](lambda: visit(stops[1:], then))
    else:
        then()
