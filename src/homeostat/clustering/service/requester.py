"""The caller of a clustering request, and errors for unknown references."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.store.database import Transaction


@dataclass(frozen=True, slots=True)
class RequestScope:
    """The caller of a request.

    Attributes:
        caller: The authenticated user.
        project: The project of new objects.
        action_name: Name of the new action; "" for its usual name.
    """

    caller: Caller
    project: str
    action_name: str = ""

    @property
    def reach(self) -> str | None:
        """Project that lookups are limited to; None for an admin, who has access to all."""
        return None if self.caller.is_admin else self.project

    @property
    def owner(self) -> dict[str, Any]:
        """Columns for the owner of a new row."""
        return {"project": self.project, "user": self.caller.user_id or self.caller.user, "domain": self.caller.domain}


InTransaction = Callable[[Transaction, str], None]
"""Store further rows in the transaction that makes or changes the object of this id. An error undoes both."""


def no_op(tx: Transaction, identity: str) -> None:
    """Store nothing besides."""


@contextmanager
def referring(subject: str) -> Iterator[None]:
    """Look up a reference of a request: an unknown one makes the request invalid (400), not its address (404).

    Args:
        subject: The reference, such as `The specified policy 'p'`.

    Raises:
        Rejected: BadRequest in the place of ResourceNotFound.
    """
    try:
        yield
    except Rejected as error:
        if error.fault != "ResourceNotFound":
            raise
        raise Rejected("BadRequest", f"{subject} could not be found.") from error
