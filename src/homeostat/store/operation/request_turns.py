"""Turns of requests to services, shared by all processes to keep a common rate limit."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, Update, select, update

from homeostat.model.rates import Rate
from homeostat.store import schema
from homeostat.store.database import Database, row_lock
from homeostat.store.sql.prepared import prepared

_turn = schema.request_turn
AHEAD_MAX_S = 60.0
"""Far more than is ever taken ahead: if a row says more, the clock was set back."""


class RequestTurns:
    """The turns of each service, in the order in which they were taken."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def take(self, service: str, rate: Rate, wanted: int, within_s: float) -> tuple[list[float], float]:
        """Take the next turns of a service, in one short transaction.

        Args:
            rate: Its limit, which must be the same in every process.
            within_s: Turns further away are not taken; far less than `AHEAD_MAX_S`.

        Returns:
            The seconds until each turn, and until the next free turn.
        """
        step_s = 1 / rate.per_s
        with self._db.write() as tx:
            row = _locked(tx, service).first()
            if row is None:
                # Another process may insert the row at the same time: then both wait for the lock of that row.
                tx.execute(tx.insert(_turn).values(service=service, free_at=0.0).on_conflict_do_nothing())
                row = _locked(tx, service).one()
            now = tx.now()
            free_at = row.free_at if row.free_at < now + AHEAD_MAX_S + 2 * step_s else now
            first = max(free_at, now - (rate.burst - 1) * step_s)
            turns = [max(first + n * step_s - now, 0.0) for n in range(wanted) if first + n * step_s <= now + within_s]
            _advance(tx, service, first + len(turns) * step_s)
        return turns, max(first + len(turns) * step_s - now, 0.0)


def free_in(db: Database) -> Mapping[str, float]:
    """Return service -> seconds until the next free turn; negative if a turn has been free for some time."""
    with db.read() as tx:
        now = tx.now()
        return {service: free_at - now for service, free_at in tx.execute(select(_turn.c.service, _turn.c.free_at))}


@prepared
def _locked(service: str) -> Select[Any]:
    return row_lock(select(_turn.c.free_at).where(_turn.c.service == service))


@prepared
def _advance(service: str, free_at: float) -> Update:
    return update(_turn).where(_turn.c.service == service).values(free_at=free_at)
