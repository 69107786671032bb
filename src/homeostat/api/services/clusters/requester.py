"""Who asks for something, in which project, and what is said of what they refer to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from homeostat.api.access.auth import Caller
from homeostat.model.errors import Rejected


@dataclass(frozen=True, slots=True)
class RequestScope:
    """The caller of a request.

    Attributes:
        caller: Who it is.
        project: The project in which something is made.
        action_name: What the action is called that begins; "" for its usual name.
    """

    caller: Caller
    project: str
    action_name: str = ""

    @property
    def reach(self) -> str | None:
        """Project that lookups are limited to; None for an admin, who reaches all."""
        return None if self.caller.is_admin else self.project

    @property
    def owner(self) -> dict[str, Any]:
        """Columns that say to whom something belongs."""
        return {"project": self.project, "user": self.caller.user_id or self.caller.user, "domain": self.caller.domain}


InTransaction = Callable[[Connection, str], None]
"""Store something in the transaction that makes or changes the thing of this id. What it raises undoes both."""


def no_op(tx: Connection, identity: str) -> None:
    """Store nothing besides."""


@contextmanager
def referring(subject: str) -> Iterator[None]:
    """Look up what a request refers to: where that is not found the request is wrong, and its address is not.

    Args:
        subject: What is looked up, such as `The specified policy 'p'`.

    Raises:
        Rejected: BadRequest in the place of ResourceNotFound.
    """
    try:
        yield
    except Rejected as error:
        if error.fault != "ResourceNotFound":
            raise
        raise Rejected("BadRequest", f"{subject} could not be found.") from error
