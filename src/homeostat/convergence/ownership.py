"""Ownership of a shard: who may act in its name, and until when."""

from typing import Protocol

from sqlalchemy import Connection


class ShardGuard(Protocol):
    """Ownership of the shard in whose name steps are executed (invariant 4, CONTRIBUTING.md)."""

    def check(self) -> None:
        """Make sure that this worker may still act, as far as it can tell by its own clock.

        Raises:
            Superseded: A newer owner has the shard.
        """

    def fence(self, tx: Connection) -> int:
        """Check the ownership within a transaction that is itself the act; return the shard's count of wake-ups.

        Raises:
            Superseded: A newer owner has the shard.
        """
