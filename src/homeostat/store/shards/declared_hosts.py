"""Hosts that are declared down, as the fences of health policies have it: why, since when, until that is lifted.

Compute keeps neither, and an operator who is to lift it has to know both (ADR 0093).
"""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, select

from homeostat.model.node_health import DeclaredHost
from homeostat.store import schema
from homeostat.store.database import Database

_host = schema.declared_host


def note(db: Database, tx: Connection, stack_id: str, found: Sequence[DeclaredHost], now: float) -> None:
    """Note hosts by which members of a stack are cut off; what is known of one stays: by that it was declared."""
    rows = [{"stack_id": stack_id, "at": now, **each._asdict()} for each in found]
    tx.execute(db.insert(_host).on_conflict_do_nothing(index_elements=["stack_id", "host"]), rows)


def of_stacks(tx: Connection, stack_ids: Collection[str]) -> list[tuple[str, str]]:
    """Return stack and host of what is noted of these stacks."""
    chosen = select(_host.c.stack_id, _host.c.host).where(_host.c.stack_id.in_(stack_ids))
    return [(row[0], row[1]) for row in tx.execute(chosen)] if stack_ids else []


def forget(tx: Connection, lifted: Collection[tuple[str, str]], seen_at: float) -> None:
    """Forget hosts, each as stack and host, that were seen not to be declared down, if that was noted before."""
    for stack_id, host in lifted:
        tx.execute(delete(_host).where(_host.c.stack_id == stack_id, _host.c.host == host, _host.c.at < seen_at))
