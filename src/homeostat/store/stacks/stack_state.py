"""The action and the status of stacks: only this module writes them, and checks that each transition is legal.

An illegal transition is an internal error: the transaction is rolled back, and the shard is set aside.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import sqlalchemy
from sqlalchemy import UpdateBase, bindparam, update

from homeostat.model.plan import Event
from homeostat.model.stack_actions import STACK_TRANSITIONS
from homeostat.model.status import Status, check_transition
from homeostat.store import events, schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards

BEFORE = "before"
"""Key in a lock: the stack's state before it was locked, `{"action", "status", "reason"}`.

Stored only if the stack had failed or was suspended, to report the same after unlocking.
"""


def stack_event(stack_id: str, name: str, action: str, status: str, reason: str = "") -> Event:
    """Return an event of the stack itself: clients recognise such events by the stack's name and id, as in Heat."""
    return Event(name, action, status, reason or f"Stack {action} started", "OS::Heat::Stack", handle=stack_id)


class StackState(Protocol):
    """The columns of a stack's row that a change of its state is checked against."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def action(self) -> str: ...

    @property
    def status(self) -> str: ...


def change_status_at_rest(tx: Transaction, row: StackRow, action: str, status: Status, reason: str, now: float) -> None:
    """Change the status that a stack at rest reports, with an event, and wake its parent."""
    change(tx, row, {"action": action, "status": status, "reason": reason})
    events.append(tx, row.id, [stack_event(row.id, row.name, action, status, reason)], now)
    wake_parent(tx, row, now)


def insert(tx: Transaction, values: Mapping[str, Any]) -> None:
    """Insert the row of a new stack.

    Raises:
        Bug: A stack cannot begin in this state.
        IntegrityError: The project has a live stack of that name.
    """
    state = (values["action"], values["status"])
    check_transition(STACK_TRANSITIONS, ("stack", values["id"], values["name"]), None, state)
    tx.execute(sqlalchemy.insert(schema.stack), values)


def change(tx: Transaction, row: StackRow, values: Mapping[str, Any]) -> None:
    """Set some columns of a stack, its action and its status among them.

    Args:
        row: The stack's row, locked.

    Raises:
        Bug: The transition is illegal.
    """
    _check(row, values)
    tx.execute(_changing(tuple(values)), {f"new_{name}": value for name, value in values.items()} | {"this": row.id})


def change_all(tx: Transaction, rows: Sequence[StackState], values: Mapping[str, Any]) -> None:
    """Set the same columns of several stacks, see `change`."""
    for row in rows:
        _check(row, values)
    tx.execute(update(schema.stack).where(schema.stack.c.id.in_([row.id for row in rows])).values(**values))


def _check(row: StackState, values: Mapping[str, Any]) -> None:
    after = (values.get("action", row.action), values.get("status", row.status))
    check_transition(STACK_TRANSITIONS, ("stack", row.id, row.name), (row.action, row.status), after)


@cache
def _changing(columns: tuple[str, ...]) -> UpdateBase:
    # Prefixed, since SQLAlchemy reserves parameters with the names of assigned columns.
    changed: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return update(schema.stack).where(schema.stack.c.id == bindparam("this")).values(changed)


def wake_parent(tx: Transaction, row: StackRow, now: float) -> None:
    """Wake the shard of the parent resource of a nested stack, since the stack has changed."""
    if row.parent_id is not None and row.parent_shard is not None:
        shards.wake(tx, row.parent_id, now, shards.USER, [row.parent_shard])
