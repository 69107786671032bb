"""Tasks: generators that yield while they wait, as some plug-ins of Heat use them.

New handlers should use `check_…_complete` instead, which is called repeatedly. The steps of a task run in the thread of
the handler.
"""

import time
from collections.abc import Callable, Generator, Iterator
from functools import partial, wraps
from typing import Any


class Timeout(BaseException):
    """Raised inside a task after its time limit; a BaseException, since tasks often catch `Exception`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the task took longer than {seconds} s")


class TaskRunner:
    """Runs a task step by step.

    Args:
        task: A function; if it returns a generator, the generator is stepped through.
    """

    def __init__(self, task: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not callable(task):
            raise TypeError(f"{task!r} is no function")
        self.name = getattr(task, "__name__", type(task).__name__)
        self._call: Callable[[], Any] = partial(task, *args, **kwargs)
        self._steps: Iterator[Any] | None = None
        self._begun = self._ended = False
        self._limit: tuple[float, float] | None = None

    def start(self, timeout: float | None = None) -> None:
        """Take the first step.

        Args:
            timeout: Seconds for all steps; None for no limit.

        Raises:
            ValueError: The task was started before.
        """
        if self._begun:
            raise ValueError(f"the task {self.name} was started before")
        self._begun = True
        self._limit = (time.monotonic() + timeout, timeout) if timeout is not None else None
        result = self._call()
        if isinstance(result, Generator):
            self._steps = result
            self.step()
        else:
            self._ended = True

    def step(self) -> bool:
        """Take another step, and return whether the task has ended.

        Raises:
            Timeout: The time limit of the task is exceeded. Errors of the task itself are raised as well.
        """
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
        """Step until the task has ended, with `wait_time` seconds between the steps."""
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
        """End the task without another step, or let it continue for a grace period, in seconds."""
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
        """Return whether the task has not ended yet."""
        return not self._ended

    def _throw(self, error: BaseException) -> None:
        assert isinstance(self._steps, Generator)
        self._steps.throw(error)


def wrappertask(task: Callable[..., Any]) -> Callable[..., Any]:
    """Let a task yield other tasks, which are stepped through in its place."""

    @wraps(task)
    def outer(*args: Any, **kwargs: Any) -> Generator[Any, Any, None]:
        for step in task(*args, **kwargs):
            if isinstance(step, Generator):
                yield from step
            else:
                yield step

    return outer
