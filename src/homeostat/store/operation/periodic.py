"""When the periodic tasks of workers are due: one query for all of them (ADR 0053)."""

from typing import Any

from sqlalchemy import Select, func, select

from homeostat.model.health_policy import DEFAULT_VANTAGE
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql.prepared import prepared

LOOKS = "looks"
ORPHANS = "orphans"
SNAPSHOTS = "snapshots"
EVENTS = "events"
SIGNALS = "signals"
ROLLOUTS = "rollouts"
HEALTH = "health"
VANTAGE = "vantage"
_AT = {
    LOOKS: schema.shard.c.observe_at,
    ORPHANS: schema.orphan.c.look_at,
    SNAPSHOTS: schema.snapshot.c.due_at,
    EVENTS: schema.event_sink.c.due_at,
    SIGNALS: schema.deferred_signal.c.due_at,
    ROLLOUTS: schema.rollout.c.due_at,
    HEALTH: schema.shard.c.health_at,
}
"""The due time of each task: the first column of an index, so that its minimum is cheap to find."""


def due_in(tx: Transaction, now: float, within_s: float, vantage: str = DEFAULT_VANTAGE) -> dict[str, float]:
    """Return the seconds until each task has something to do: 0 if already, at most `within_s`.

    Args:
        within_s: The maximum result.
        vantage: Name of the place from which the caller requests URLs.
    """
    first = _first(tx, vantage).one()._mapping
    names = (*_AT, VANTAGE)
    return {name: within_s if first[name] is None else min(max(first[name] - now, 0.0), within_s) for name in names}


@prepared
def _first(vantage: str) -> Select[Any]:
    look = schema.vantage_look.c
    condition = select(func.min(look.due_at)).where(look.vantage == vantage).scalar_subquery().label(VANTAGE)
    return select(*(select(func.min(at)).scalar_subquery().label(name) for name, at in _AT.items()), condition)
