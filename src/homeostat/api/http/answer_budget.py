"""The budget of bytes that one answer has, and what all answers of a process may hold together (ADR 0084).

Requests and stored values are limited where they come in; an answer may multiply them, since what is shared is written
as often as it occurs. So the bytes of an answer are counted while it is made, and one that is too large is refused
before its first byte is sent. `api.answer_limit` stands around all routes, and weighs what does not count itself.
"""

import threading
import weakref
from collections import Counter
from collections.abc import Iterable
from contextvars import ContextVar

from homeostat.model.errors import Rejected, Transient

ANSWER_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of one answer that is made before it is sent. Streams are not made before: they are sent piece by piece."""
PAGE_BYTES = 4 * 1024 * 1024
"""Bytes from which on a page of a list ends, where clients follow its link to the next one."""
HELD_BYTES_MAX = 96 * 1024 * 1024
"""Bytes of all large answers of a process that are made and not yet sent."""
SHARE_BYTES_MAX = HELD_BYTES_MAX // 2
"""Bytes of these that one project has."""
LARGE_BYTES = 1024 * 1024
"""Size up to which an answer takes nothing of what all have together."""
RETRY_AFTER_S = 5.0
STREAMED = "homeostat.streamed"
"""Key in the first message of an answer that is sent piece by piece, and has no budget."""
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
        """Begin empty; `most` are the bytes of all together, `share` those of one project."""
        self._most = most
        self._share = share
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()
        self.taken = 0

    def take(self, owner: str, count: int) -> None:
        """Take bytes for an answer.

        Raises:
            Transient: There are none left, or the owner has its share.
        """
        with self._lock:
            if self._of[owner] + count > self._share or self.taken + count > self._most:
                whose = "this project" if self._of[owner] + count > self._share else "this process"
                raise Transient(f"too many large answers of {whose} have not been read yet", RETRY_AFTER_S)
            self._of[owner] += count
            self.taken += count

    def give_back(self, owner: str, count: int) -> None:
        """Give back bytes that were taken."""
        with self._lock:
            self._of[owner] -= count
            self.taken -= count
            if not self._of[owner]:
                del self._of[owner]


HELD = HeldBytes()


class AnswerBytes:
    """The bytes of one answer that is made before it is sent.

    What it takes of the bytes that all large answers have together it gives back once it is sent, or dropped.

    Attributes:
        pieces: What is to be sent, in order.
        size: Its bytes.
    """

    def __init__(self, pieces: Iterable[bytes], remedy: str = REMEDY, held: HeldBytes = HELD) -> None:
        """Make the whole answer.

        Args:
            pieces: The answer, each piece made when it is asked for.
            remedy: What a caller may do about an answer that is too large.
            held: What is taken from.

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
        """Give back what was taken; nothing of the answer is kept any more."""
        self.pieces.clear()
        self._finalizer()


class _Taken:
    """What one answer has taken."""

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
