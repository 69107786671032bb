"""Whose ids things have that are gone, or are being replaced: told by rows, and by the events of a stack."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from homeostat.store import schema

IDS_MAX = 400
"""Ids in one query."""


def names(tx: Connection, stack_id: str, ids: Sequence[str], since: float) -> Mapping[str, str]:
    """Return the name of the resource whose thing had an id, by the id; those that none had are left out.

    Args:
        tx: A consistent read.
        ids: Ids in the cloud.
        since: Only those count that something of the stack had at this time, or later.
    """
    found: dict[str, str] = {}
    event, resource = schema.event, schema.resource
    for start in range(0, len(ids), IDS_MAX):
        some = ids[start : start + IDS_MAX]
        # What was replaced before had its last event, the end of its deletion, before.
        told = select(event.c.handle, event.c.name).where(
            event.c.stack_id == stack_id, event.c.handle.in_(some), event.c.at >= since, event.c.key != ""
        )
        found.update((row.handle, row.name) for row in tx.execute(told.order_by(event.c.seq)))
        there = select(resource.c.handle, resource.c.name)
        rows = tx.execute(there.where(resource.c.stack_id == stack_id, resource.c.handle.in_(some)))
        found.update((row.handle, row.name) for row in rows)
    return found
