"""A few threads that all projects share, in which work may take long for reasons that a user controls (RU8).

Projects take turns, and each has at most a share of the places. So a project whose work is slow waits for itself alone.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor

Turn = Callable[[], bool]
"""Does a part of some work, and returns whether there is more; raises nothing."""


class FairTurns:
    """Runs the turns of projects in a pool of threads."""

    def __init__(self, pool: Executor, places: int, share: int) -> None:
        """Take the threads.

        Args:
            pool: The threads.
            places: How many turns are taken at a time; the threads there are.
            share: How many of them may be those of one project.
        """
        self._pool, self._places, self._share = pool, places, share
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Turn]] = {}
        """Turns by project; the project whose turn comes next is first."""
        self._taken: Counter[str] = Counter()

    def add(self, project: str, turn: Turn) -> None:
        """Have a turn taken once a place is free, and again after the others of its project while there is more."""
        with self._lock:
            self._waiting.setdefault(project, deque()).append(turn)
        self._begin()

    def _begin(self) -> None:
        """Begin as many turns as may be taken now."""
        while (chosen := self._choose()) is not None:
            self._pool.submit(self._take, *chosen)

    def _choose(self) -> tuple[str, Turn] | None:
        with self._lock:
            if self._taken.total() >= self._places:
                return None
            project = next((each for each in self._waiting if self._taken[each] < self._share), None)
            if project is None:
                return None
            turns = self._waiting.pop(project)
            turn = turns.popleft()
            if turns:
                self._waiting[project] = turns  # the last by now
            self._taken[project] += 1
            return project, turn

    def _take(self, project: str, turn: Turn) -> None:
        more = False
        try:
            more = turn()
        finally:
            with self._lock:
                self._taken[project] -= 1
                if not self._taken[project]:
                    del self._taken[project]
                if more:
                    self._waiting.setdefault(project, deque()).append(turn)
            self._begin()
