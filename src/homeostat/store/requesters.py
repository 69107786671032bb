"""The requester of a change: the sender of the current request.

Events and revisions stored during the request name the requester. Work of the service itself has none.
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
        user_id: As reported by the identity service; "" without one.
    """

    user: str = ""
    user_id: str = ""
    request_id: str = ""

    @property
    def name(self) -> str:
        """The name to display: the user's name, or else the id."""
        return self.user or self.user_id

    def owns(self, lock: Mapping[str, Any]) -> bool:
        """Return whether this requester owns a lock."""
        if lock.get("owner_id") is not None or self.user_id:
            return (lock.get("owner_id") or "") == self.user_id
        return (lock.get("owner") or "") == self.user


NOBODY = Requester()
_CURRENT: ContextVar[Requester] = ContextVar("requester", default=NOBODY)


def current() -> Requester:
    """Return the sender of the current request; `NOBODY` outside requests."""
    return _CURRENT.get()


@contextmanager
def asked_by(requester: Requester) -> Iterator[None]:
    """Record the requester as the cause of all changes in the block; `NOBODY` for work on behalf of several."""
    token = _CURRENT.set(requester)
    try:
        yield
    finally:
        _CURRENT.reset(token)
