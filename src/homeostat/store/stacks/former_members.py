"""The former owners of cloud ids: things that are deleted or being replaced, from rows and events of a stack."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from homeostat.store import schema
from homeostat.store.database import Transaction

IDS_MAX = 400
"""Ids in one query."""


def names(tx: Transaction, stack_id: str, ids: Sequence[str], since: float) -> Mapping[str, str]:
    """Return the name of the resource that had each cloud id; unknown ids are left out.

    Args:
        since: Ignore ids that the stack no longer had at this time.
    """
    name_of: dict[str, str] = {}
    event, resource = schema.event, schema.resource
    for start in range(0, len(ids), IDS_MAX):
        part = ids[start : start + IDS_MAX]
        # A deletion ends with the last event of a thing, so `since` excludes things that were deleted before.
        of_events = select(event.c.handle, event.c.name).where(
            event.c.stack_id == stack_id, event.c.handle.in_(part), event.c.at >= since, event.c.key != ""
        )
        name_of.update((row.handle, row.name) for row in tx.execute(of_events.order_by(event.c.seq)))
        of_rows = select(resource.c.handle, resource.c.name)
        rows = tx.execute(of_rows.where(resource.c.stack_id == stack_id, resource.c.handle.in_(part)))
        name_of.update((row.handle, row.name) for row in rows)
    return name_of
