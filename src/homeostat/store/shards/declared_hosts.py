"""Hosts that fences of health policies have declared down: reason and time, until the declaration is lifted.

Compute stores neither, and an operator who has to lift the declaration needs both (ADR 0093).
"""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, select

from homeostat.model.node_health import DeclaredHost
from homeostat.store import schema
from homeostat.store.database import Transaction

_host = schema.declared_host


def note(tx: Transaction, stack_id: str, hosts: Sequence[DeclaredHost], now: float) -> None:
    """Note hosts whose fencing cuts off members of a stack; a host already noted keeps its reason and time."""
    rows = [{"stack_id": stack_id, "at": now, **host._asdict()} for host in hosts]
    tx.execute(tx.insert(_host).on_conflict_do_nothing(index_elements=["stack_id", "host"]), rows)


def of_stacks(tx: Transaction, stack_ids: Collection[str]) -> list[tuple[str, str]]:
    """Return stack and host of the noted hosts of these stacks."""
    chosen = select(_host.c.stack_id, _host.c.host).where(_host.c.stack_id.in_(stack_ids))
    return [(row[0], row[1]) for row in tx.execute(chosen)] if stack_ids else []


def forget(tx: Transaction, lifted: Collection[tuple[str, str]], seen_at: float) -> None:
    """Delete hosts, as stack and host, that were seen up again, if they were noted before `seen_at`."""
    for stack_id, host in lifted:
        tx.execute(delete(_host).where(_host.c.stack_id == stack_id, _host.c.host == host, _host.c.at < seen_at))
