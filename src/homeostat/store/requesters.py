"""Who has asked for what a transaction stores: the sender of the request that is being answered.

Events and revisions that are stored meanwhile have it. What the service does by itself has no requester.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Requester:
    """The sender of a request.

    Attributes:
        user: Name; "" where the service does not know the names of users.
        user_id: As the identity service reports it; "" without one.
        request_id: Id of the request, which its answer and the log have, too.
    """

    user: str = ""
    user_id: str = ""
    request_id: str = ""

    @property
    def name(self) -> str:
        """What to call them: the name, else the id."""
        return self.user or self.user_id

    def owns(self, lock: Mapping[str, Any]) -> bool:
        """Return whether a lock is their own."""
        if lock.get("owner_id") is not None or self.user_id:
            return (lock.get("owner_id") or "") == self.user_id
        return (lock.get("owner") or "") == self.user


NOBODY = Requester()
_CURRENT: ContextVar[Requester] = ContextVar("requester", default=NOBODY)


def current() -> Requester:
    """Return the sender of the request that is being answered here; `NOBODY` where none is."""
    return _CURRENT.get()


@contextmanager
def asked_by(requester: Requester) -> Iterator[None]:
    """Have a request count as the cause of what is stored; `NOBODY` for what is done for several at once."""
    token = _CURRENT.set(requester)
    try:
        yield
    finally:
        _CURRENT.reset(token)
