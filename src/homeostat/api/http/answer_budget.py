"""Memory budgets of each answer, and of all answers of a process together (ADR 0084).

Requests and stored values have limits at the entrance, but an answer may multiply them, since shared values are written
repeatedly. So bytes are counted while an answer is built, and too large answers are refused before their first byte is
sent. `api.answer_limit` counts all answers that are not built here.
"""

import threading
import weakref
from collections import Counter
from collections.abc import Iterable
from contextvars import ContextVar

from homeostat.model.errors import Rejected, Transient

ANSWER_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of an answer that is built as a whole. Streams are sent piece by piece, without a budget."""
PAGE_BYTES = 4 * 1024 * 1024
"""Size at which a page of a list ends, if clients can follow a link to the next page."""
HELD_BYTES_MAX = 96 * 1024 * 1024
"""Bytes of all large answers of a process that are built and not yet sent."""
SHARE_BYTES_MAX = HELD_BYTES_MAX // 2
"""Share of one project in `HELD_BYTES_MAX`."""
LARGE_BYTES = 1024 * 1024
"""Answers up to this size do not count towards `HELD_BYTES_MAX`."""
RETRY_AFTER_S = 5.0
STREAMED = "homeostat.streamed"
"""Key in the first message of a stream, which has no budget."""
REMEDY = "ask for a part of it: a page (limit and marker), fewer details, fewer levels, or one thing alone"
OWNER: ContextVar[str] = ContextVar("owner_of_answer", default="")
"""Project of the request that is being answered."""


def too_large(remedy: str = REMEDY) -> Rejected:
    """Return the error for an answer beyond the budget."""
    message = f"Request limit exceeded: the answer would have more than {ANSWER_BYTES_MAX} bytes: {remedy}"
    return Rejected("RequestLimitExceeded", message)


class HeldBytes:
    """Bytes of large answers that wait for their clients. Safe to share between threads."""

    def __init__(self, most: int = HELD_BYTES_MAX, share: int = SHARE_BYTES_MAX) -> None:
        """Begin empty, with a limit for all projects together (`most`) and for one project (`share`)."""
        self._most = most
        self._share = share
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()
        self.taken = 0

    def take(self, owner: str, count: int) -> None:
        """Take bytes for an answer.

        Raises:
            Transient: All bytes, or the owner's share, are in use.
        """
        with self._lock:
            if self._of[owner] + count > self._share or self.taken + count > self._most:
                whose = "this project" if self._of[owner] + count > self._share else "this process"
                raise Transient(f"too many large answers of {whose} have not been read yet", RETRY_AFTER_S)
            self._of[owner] += count
            self.taken += count

    def give_back(self, owner: str, count: int) -> None:
        """Give back taken bytes."""
        with self._lock:
            self._of[owner] -= count
            self.taken -= count
            if not self._of[owner]:
                del self._of[owner]


HELD = HeldBytes()


class AnswerBytes:
    """The bytes of one answer, built as a whole before sending.

    Bytes taken from `held` are given back once the answer is sent, or garbage-collected.

    Attributes:
        pieces: Pieces to send, in order.
        size: Total number of bytes.
    """

    def __init__(self, pieces: Iterable[bytes], remedy: str = REMEDY, held: HeldBytes = HELD) -> None:
        """Build the whole answer.

        Args:
            pieces: Generates the pieces of the answer.
            remedy: Advice for the caller if the answer is too large.
            held: Budget of all large answers.

        Raises:
            Rejected: RequestLimitExceeded: the answer is larger than its budget.
            Transient: Too many large answers have not been sent yet.
        """
        self.pieces: list[bytes] = []
        self.size = 0
        taken = _Taken(held, OWNER.get())
        self._finalizer = weakref.finalize(self, taken.give_back)
        try:
            for piece in pieces:
                self.size += len(piece)
                if self.size > ANSWER_BYTES_MAX:
                    raise too_large(remedy)
                if self.size > LARGE_BYTES:
                    taken.up_to(self.size)
                self.pieces.append(piece)
        except BaseException:
            self.done()
            raise

    def done(self) -> None:
        """Drop the answer and give back its bytes."""
        self.pieces.clear()
        self._finalizer()


class _Taken:
    """The bytes that one answer has taken from `HeldBytes`."""

    def __init__(self, held: HeldBytes, owner: str) -> None:
        self._held = held
        self._owner = owner
        self._count = 0

    def up_to(self, count: int) -> None:
        self._held.take(self._owner, count - self._count)
        self._count = count

    def give_back(self) -> None:
        if self._count:
            self._held.give_back(self._owner, self._count)
            self._count = 0
