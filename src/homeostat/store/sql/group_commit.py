"""Group commit: what several threads ask for at the same time is stored by one transaction (ADR 0066).

The first thread that asks leads: it commits what has been asked for, and wakes the others. What comes in meanwhile is
the next group, which its first thread leads. So a group is as large as the database makes them wait, and a thread that
is alone waits for no other.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from homeostat.model.errors import Bug, Outage, Transient
from homeostat.store.requesters import NOBODY, asked_by

A = TypeVar("A")
R = TypeVar("R")
Turn = threading.Lock
"""What a thread waits at for its turn."""
GROUP_MAX = 200
"""Requests that one transaction answers."""


class Alone(Enum):
    """In place of the answer to one of a group: ask once more, for this one alone."""

    ALONE = "alone"


ALONE = Alone.ALONE


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """What a thread gets after the commit.

    Attributes:
        outcome: The answer to what it asked for, or the error.
        led: The answers of its group, where this thread led it and has to see to what follows; otherwise empty.
    """

    outcome: R | Exception
    led: Sequence[R] = ()

    def value(self) -> R:
        """Return the answer; raise the error."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class _Asked(Generic[A, R]):
    """One request; the thread that waits for its turn finds either an answer, or that it leads."""

    __slots__ = ("answer", "turn", "what")

    def __init__(self, what: A) -> None:
        self.what = what
        self.answer: R | Exception | Alone = ALONE
        self.turn = Turn()
        self.turn.acquire()


class GroupCommit(Generic[A, R]):
    """Answers the requests of all threads, those with the same key in groups, one group at a time.

    Args:
        commit: Stores what is asked for under one key in one transaction, and returns the answers in the same order: a
            value, an error that concerns this request only, or `ALONE`. What it raises is the error of a group of one;
            any other group is split, and each request committed alone, unless the database does not answer.
        group_max: Requests in one group.
    """

    def __init__(
        self, commit: Callable[[str, Sequence[A]], Sequence[R | Exception | Alone]], group_max: int = GROUP_MAX
    ) -> None:
        self._commit = commit
        self._group_max = group_max
        self._mutex = threading.Lock()
        self._waiting: dict[str, deque[_Asked[A, R]]] = {}
        """Requests by key; a key is there as long as a thread leads."""

    def ask(self, key: str, what: A) -> Answer[R]:
        """Return after the commit that contains this request."""
        asked: _Asked[A, R] = _Asked(what)
        with self._mutex:
            queue = self._waiting.get(key)
            if queue is None:
                self._waiting[key] = deque()
            else:
                queue.append(asked)
        if queue is not None:
            asked.turn.acquire()
            if not isinstance(asked.answer, Alone):
                return Answer(asked.answer)
        return self._lead(key, asked)

    def _lead(self, key: str, asked: _Asked[A, R]) -> Answer[R]:
        group = [asked]
        with self._mutex:
            queue = self._waiting[key]
            while queue and len(group) < self._group_max:
                group.append(queue.popleft())
        answers: Sequence[R | Exception] = ()
        try:
            with asked_by(NOBODY):  # this thread's own request is not the cause of what others ask for
                answers = self._committed(key, [each.what for each in group])
        finally:
            self._pass_on(key)
            # Without answers this thread is being ended, and its group must not wait for it.
            for number, each in enumerate(group):
                each.answer = answers[number] if answers else Transient("the commit was broken off: ask again")
                if each is not asked:
                    each.turn.release()
        return Answer(answers[0], [each for each in answers if not isinstance(each, Exception)])

    def _pass_on(self, key: str) -> None:
        """Let the next thread that waits lead."""
        with self._mutex:
            queue = self._waiting[key]
            if queue:
                queue.popleft().turn.release()
            else:
                del self._waiting[key]

    def _committed(self, key: str, asked: Sequence[A]) -> Sequence[R | Exception]:
        try:
            answers = self._commit(key, asked)
        except Transient as error:
            return [_again(error) for _ in asked]
        except Exception as error:  # noqa: BLE001 -- it is raised in the thread that asked
            if len(asked) == 1:
                return [error]
            answers = [ALONE] * len(asked)
        committed: list[R | Exception] = []
        failed: Transient | None = None
        for what, answer in zip(asked, answers, strict=True):
            if not isinstance(answer, Alone):
                committed.append(answer)
                continue
            # A database that does not answer is not waited for once more for each of the others.
            own_answer = self._alone(key, what) if failed is None else _again(failed)
            failed = own_answer if isinstance(own_answer, Transient) else None
            committed.append(own_answer)
        return committed

    def _alone(self, key: str, what: A) -> R | Exception:
        try:
            (answer,) = self._commit(key, [what])
        except Exception as error:  # noqa: BLE001 -- it is raised in the thread that asked
            return error
        return Bug(f"{key}: what is asked for alone has no answer") if isinstance(answer, Alone) else answer


def _again(error: Transient) -> Transient:
    """Return an error for one of several threads, since raising it writes into it."""
    if isinstance(error, Outage):
        outage: Transient = Outage(str(error), error.details, error.retry_after_s)
    else:
        outage = Transient(str(error), error.retry_after_s)
    outage.__cause__ = error
    return outage
