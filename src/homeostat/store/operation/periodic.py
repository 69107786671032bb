"""What workers do beside the passes, and when each of it is next to be done: one question for all."""

from typing import Any

from sqlalchemy import Connection, Select, func, select

from homeostat.store import schema
from homeostat.store.sql.prepared import prepared

LOOK = "look"
LATE = "late"
DISPOSE = "dispose"
TELL = "tell"
_AT = {
    LOOK: schema.shard.c.observe_at,
    LATE: schema.forsaken.c.look_at,
    DISPOSE: schema.snapshot.c.due_at,
    TELL: schema.event_sink.c.due_at,
}
"""Each is the first column of an index."""


def due_in(tx: Connection, now: float, within_s: float) -> dict[str, float]:
    """Chore -> seconds until there is something to do: 0 where there is now, at most `within_s`."""
    first = _first(tx).one()._mapping
    return {name: within_s if first[name] is None else min(max(first[name] - now, 0.0), within_s) for name in _AT}


@prepared
def _first() -> Select[Any]:
    return select(*(select(func.min(at)).scalar_subquery().label(name) for name, at in _AT.items()))
