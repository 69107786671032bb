"""A few threads that all projects share, for work whose duration users control (RU8).

Projects take turns, and each has at most a share of the threads. So a project with slow work delays only itself.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor

Turn = Callable[[], bool]
"""Does a part of some work, and returns whether more is left; raises nothing."""


class FairTurns:
    """Runs the turns of projects in a pool of threads."""

    def __init__(self, pool: Executor, places: int, share: int) -> None:
        """Take the threads.

        Args:
            pool: The threads.
            places: Maximum of concurrent turns: the number of threads.
            share: Maximum of concurrent turns of one project.
        """
        self._pool, self._places, self._share = pool, places, share
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Turn]] = {}
        """Turns by project; the project whose turn comes next is first."""
        self._taken: Counter[str] = Counter()

    def add(self, project: str, turn: Turn) -> None:
        """Queue a turn; while more is left, it is queued again behind its project's other turns."""
        with self._lock:
            self._waiting.setdefault(project, deque()).append(turn)
        self._begin()

    def _begin(self) -> None:
        """Begin as many turns as places allow."""
        while (chosen := self._choose()) is not None:
            # Outside the lock, which is not reentrant: an executor may run the turn in this very thread.
            self._pool.submit(self._take, *chosen)

    def _choose(self) -> tuple[str, Turn] | None:
        with self._lock:
            if self._taken.total() >= self._places:
                return None
            project = next((name for name in self._waiting if self._taken[name] < self._share), None)
            if project is None:
                return None
            turns = self._waiting.pop(project)
            turn = turns.popleft()
            if turns:
                self._waiting[project] = turns  # moves the project to the end
            self._taken[project] += 1
            return project, turn

    def _take(self, project: str, turn: Turn) -> None:
        more = False
        try:
            more = turn()
        finally:
            # Also after an error: a place that is not given back would be lost to all projects.
            with self._lock:
                self._taken[project] -= 1
                if not self._taken[project]:
                    del self._taken[project]
                if more:
                    self._waiting.setdefault(project, deque()).append(turn)
            self._begin()
