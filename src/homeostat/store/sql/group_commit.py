"""Group commit: one transaction stores the concurrent requests of several threads (ADR 0066).

The first thread leads: it commits all waiting requests, and wakes their threads. Requests that arrive meanwhile form
the next group, led by its first thread. So the size of a group follows from the latency of the database, and a single
thread does not wait.
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
"""The lock at which a thread waits for its turn."""
GROUP_MAX = 200
"""Number of requests that one transaction answers."""


class Alone(Enum):
    """In place of an answer: commit this request again, on its own."""

    ALONE = "alone"


ALONE = Alone.ALONE


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """The result of a request after the commit.

    Attributes:
        outcome: The answer to the request, or the error.
        led: The answers of the whole group, if this thread led it and has to do the follow-up work; otherwise empty.
    """

    outcome: R | Exception
    led: Sequence[R] = ()

    def value(self) -> R:
        """Return the answer; raise the error."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class _Asked(Generic[A, R]):
    """A request; its thread waits for its turn, and then finds an answer, or becomes the leader."""

    __slots__ = ("answer", "request", "turn")

    def __init__(self, request: A) -> None:
        self.request = request
        self.answer: R | Exception | Alone = ALONE
        self.turn = Turn()
        self.turn.acquire()


class GroupCommit(Generic[A, R]):
    """Answers the requests of all threads: requests with the same key in groups, one group at a time.

    Args:
        commit: Stores requests under a key in a transaction, and returns the answers in the same order: a value, an
            error of this request only, or `ALONE`. An exception is the answer to a single request; a larger group is
            split, and each request committed alone, unless the database is unavailable.
        group_max: Number of requests in a group.
    """

    def __init__(
        self, commit: Callable[[str, Sequence[A]], Sequence[R | Exception | Alone]], group_max: int = GROUP_MAX
    ) -> None:
        self._commit = commit
        self._group_max = group_max
        self._mutex = threading.Lock()
        self._waiting: dict[str, deque[_Asked[A, R]]] = {}
        """Requests by key; the key exists as long as a thread leads."""

    def ask(self, key: str, request: A) -> Answer[R]:
        """Return after the commit that contains this request."""
        asked: _Asked[A, R] = _Asked(request)
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
            with asked_by(NOBODY):  # this thread's user is not the requester of the group
                answers = self._committed(key, [member.request for member in group])
        finally:
            self._pass_on(key)
            # Without answers this thread is being killed, and its group must not wait for it.
            for number, member in enumerate(group):
                member.answer = answers[number] if answers else Transient("the commit was broken off: ask again")
                if member is not asked:
                    member.turn.release()
        return Answer(answers[0], [answer for answer in answers if not isinstance(answer, Exception)])

    def _pass_on(self, key: str) -> None:
        """Make the next waiting thread the leader."""
        with self._mutex:
            queue = self._waiting[key]
            if queue:
                queue.popleft().turn.release()
            else:
                del self._waiting[key]

    def _committed(self, key: str, requests: Sequence[A]) -> Sequence[R | Exception]:
        try:
            answers = self._commit(key, requests)
        except Transient as error:
            return [_copy_of(error) for _ in requests]
        except Exception as error:  # noqa: BLE001 -- raised in the thread of the request
            if len(requests) == 1:
                return [error]
            answers = [ALONE] * len(requests)
        committed: list[R | Exception] = []
        failed: Transient | None = None
        for request, answer in zip(requests, answers, strict=True):
            if not isinstance(answer, Alone):
                committed.append(answer)
                continue
            # After a Transient error, do not wait for an unavailable database once per request.
            own_answer = self._alone(key, request) if failed is None else _copy_of(failed)
            failed = own_answer if isinstance(own_answer, Transient) else None
            committed.append(own_answer)
        return committed

    def _alone(self, key: str, request: A) -> R | Exception:
        try:
            (answer,) = self._commit(key, [request])
        except Exception as error:  # noqa: BLE001 -- raised in the thread of the request
            return error
        return Bug(f"{key}: what is asked for alone has no answer") if isinstance(answer, Alone) else answer


def _copy_of(error: Transient) -> Transient:
    """Return a copy of an error for each thread, since raising an error changes it."""
    if isinstance(error, Outage):
        outage: Transient = Outage(str(error), error.details, error.retry_after_s)
    else:
        outage = Transient(str(error), error.retry_after_s)
    outage.__cause__ = error
    return outage
