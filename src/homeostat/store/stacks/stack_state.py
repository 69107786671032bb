"""The action and the status of a stack: this module alone writes them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, UpdateBase, bindparam, update

from homeostat.model.plan import Event
from homeostat.model.status import Status
from homeostat.store import events, schema
from homeostat.store.shards import shards

BEFORE = "before"
"""Key in a lock: the stack's state before it was locked, `{"action", "status", "reason"}`.

Kept only if the stack had failed or was suspended: after unlocking it must report that again.
"""


def stack_event(stack_id: str, name: str, action: str, status: str, reason: str = "") -> Event:
    """Return an event of the stack itself: clients recognise it by the stack's name and id, as in Heat."""
    return Event(name, action, status, reason or f"Stack {action} started", "OS::Heat::Stack", handle=stack_id)


def change_status_at_rest(tx: Connection, row: Row[Any], action: str, status: Status, reason: str, now: float) -> None:
    """Change the state that a stack at rest reports, with its event, and wake its parent."""
    change(tx, row.id, {"action": action, "status": status, "reason": reason})
    events.append(tx, row.id, [stack_event(row.id, row.name, action, status, reason)], now)
    wake_parent(tx, row, now)


def change(tx: Connection, stack_id: str, values: Mapping[str, Any]) -> None:
    """Set some columns of a stack."""
    tx.execute(_changing(tuple(values)), {f"new_{name}": value for name, value in values.items()} | {"this": stack_id})


@cache
def _changing(columns: tuple[str, ...]) -> UpdateBase:
    changed: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return update(schema.stack).where(schema.stack.c.id == bindparam("this")).values(changed)


def wake_parent(tx: Connection, row: Row[Any], now: float) -> None:
    """Wake the shard of the parent resource of a nested stack, since the stack has changed."""
    if row.parent_id is not None:
        shards.wake(tx, row.parent_id, now, shards.USER, [row.parent_shard])
