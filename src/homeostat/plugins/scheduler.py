"""Tasks as plug-ins write them: generators that yield while they wait.

Handlers have better means (`check_…_complete` is called again and again); this is for plug-ins that have such tasks
already. A task runs in the thread of the handler that steps it.
"""

import time
from collections.abc import Callable, Generator, Iterator
from functools import partial, wraps
from typing import Any


class Timeout(BaseException):
    """Raised inside a task whose time is over. BaseException: no `except Exception` of the task is to swallow it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the task took longer than {seconds} s")


class TaskRunner:
    """Runs a task step by step. task — a function; what it returns is stepped through if it is a generator."""

    def __init__(self, task: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not callable(task):
            raise TypeError(f"{task!r} is no function")
        self.name = getattr(task, "__name__", type(task).__name__)
        self._call: Callable[[], Any] = partial(task, *args, **kwargs)
        self._steps: Iterator[Any] | None = None
        self._begun = self._ended = False
        self._limit: tuple[float, float] | None = None

    def start(self, timeout: float | None = None) -> None:
        """Take the first step. timeout — seconds for all steps. Fails: ValueError when it was started before."""
        if self._begun:
            raise ValueError(f"the task {self.name} was started before")
        self._begun = True
        self._limit = (time.monotonic() + timeout, timeout) if timeout is not None else None
        found = self._call()
        if isinstance(found, Generator):
            self._steps = found
            self.step()
        else:
            self._ended = True

    def step(self) -> bool:
        """Take another step. True once the task has ended. Fails: as the task does; Timeout."""
        if self._steps is not None and not self._ended:
            try:
                if self._limit is not None and time.monotonic() > self._limit[0]:
                    self._throw(Timeout(self._limit[1]))
                else:
                    next(self._steps)
            except StopIteration:
                self._ended = True
            except BaseException:
                self._ended = True
                raise
        return self._ended

    def run_to_completion(self, wait_time: float = 1, progress_callback: Callable[[], Any] | None = None) -> None:
        """Step until it has ended. wait_time — seconds between steps."""
        while not self.step():
            if progress_callback is not None:
                progress_callback()
            time.sleep(wait_time)

    def __call__(
        self,
        wait_time: float = 1,
        timeout: float | None = None,
        progress_callback: Callable[[], Any] | None = None,
    ) -> None:
        self.start(timeout)
        if not self._ended:
            time.sleep(wait_time)
        self.run_to_completion(wait_time, progress_callback)

    def cancel(self, grace_period: float | None = None) -> None:
        """End it without another step; a task that was given a grace period may go on for these seconds."""
        if self._ended:
            return
        if self._begun and grace_period is not None:
            self._limit = (time.monotonic() + grace_period, grace_period)
            return
        self._begun = self._ended = True
        if isinstance(self._steps, Generator):
            self._steps.close()

    def started(self) -> bool:
        return self._begun

    def done(self) -> bool:
        return self._ended

    def __bool__(self) -> bool:
        """Is it still to go on?"""
        return not self._ended

    def _throw(self, error: BaseException) -> None:
        assert isinstance(self._steps, Generator)
        self._steps.throw(error)


def wrappertask(task: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a task yield other tasks, which are stepped through in its place."""

    @wraps(task)
    def outer(*args: Any, **kwargs: Any) -> Generator[Any, Any, None]:
        for each in task(*args, **kwargs):
            if isinstance(each, Generator):
                yield from each
            else:
                yield each

    return outer
