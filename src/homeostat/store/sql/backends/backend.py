"""The interface of a database beyond statements."""

import contextlib
from abc import ABC, abstractmethod
from typing import Any

from sqlalchemy import Connection, Engine

from homeostat.store.sql.notices import Channel

APPLICATION = "homeostat"
"""The application name of the service's sessions on a server."""


class Backend(ABC):
    """A kind of database. The defaults suit a database whose writers exclude one another.

    Attributes:
        path: The path of a database that is a file; otherwise "".
    """

    engine: Engine
    insert: Any
    path: str = ""

    @abstractmethod
    def channel(self) -> Channel | None:
        """Return the channel of notices to other processes; None for a database without other processes."""

    @abstractmethod
    def reading(self, connection: Connection) -> None:
        """Let all statements of the next transaction see the same snapshot."""

    def single(self, connection: Connection) -> bool:
        """Make each statement its own transaction; return False if this would save nothing."""
        return False

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """Wait for this writer's turn, if the writers of all processes queue."""
        return contextlib.nullcontext()

    def migrating(self, connection: Connection) -> contextlib.AbstractContextManager[None]:
        """Let only one process migrate at a time, however many transactions the migration takes."""
        return contextlib.nullcontext()

    clock = ""
    """SQL of the server's time, in seconds since the epoch; "" without a server."""

    def running_transactions(self, tx: Connection) -> tuple[int, int]:
        """See `Transaction.running`."""
        return 0, 0

    def end_frozen_sessions(self, tx: Connection, silent_s: float) -> int:
        """See `Transaction.end_frozen_sessions`."""
        return 0

    def advisory_lock(self, tx: Connection, name: str) -> None:  # noqa: B027 -- its writers exclude one another
        """See `Transaction.advisory_lock`."""
