"""The stored state of groups that scale: their cooldown, and the signals that wait for the end of an action."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, delete, func, insert, or_, select, update

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import DeferredSignalRow, StackRow
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared

_deferred = schema.deferred_signal
_stack = schema.stack


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A period in which signals do not change the size of a group.

    Attributes:
        reason: The change of size that started the cooldown.
    """

    until: float = 0.0
    reason: str = ""

    def as_metadata(self) -> dict[str, Any]:
        """Return the metadata that a group shows of its cooldown, in Heat's form."""
        at = datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
        return {"scaling_in_progress": False, "cooldown_end": {at: self.reason}}


def cooldown_of(nested: StackRow) -> Cooldown:
    """Return the cooldown of a group from the row of its stack."""
    return Cooldown(**nested.cooldown) if nested.cooldown else Cooldown()


def cooldown_in(tx: Transaction, parent_key: str) -> Cooldown | None:
    """Return the cooldown of a group by the key of its row; None if the group never changed its size."""
    conditions = (_stack.c.parent_key == parent_key, _stack.c.deleted_at.is_(None))
    cooldown = tx.execute(select(_stack.c.cooldown).where(*conditions)).scalar()
    return Cooldown(**cooldown) if cooldown else None


def longest(nested: StackRow | None, new: Cooldown) -> Mapping[str, Any]:
    """Return the new value of the column `cooldown` of a group: the cooldown that ends last."""
    before = cooldown_of(nested) if nested is not None else Cooldown()
    return asdict(new if new.until >= before.until else before)


@dataclass(frozen=True, slots=True)
class Resize:
    """The effect of a signal on the size of a group; see the columns of `schema.resize`."""

    adjustment: float
    adjustment_type: str
    before: int
    after: int


def note(tx: Transaction, event: int, stack_id: str, resize: Resize) -> None:
    """Store the effect of a signal on the size of the group with this stack; `event` is the event of the signal."""
    tx.execute(insert(schema.resize).values(event=event, stack_id=stack_id, **asdict(resize)))


def group_stack(tx: Transaction, parent_id: str, reference: str) -> StackRow | None:
    """Return the row of the stack of a group in a stack, by the group's reference or name; None if absent."""
    conditions = (_stack.c.parent_id == parent_id, _stack.c.deleted_at.is_(None))
    named = or_(_stack.c.id == reference, _stack.c.parent_name == reference)
    rows = tx.execute(select(_stack).where(*conditions, named).order_by(_stack.c.created_at.desc()).limit(1))
    return typed.rows(StackRow, rows).first()


def defer(tx: Transaction, stack_id: str, record_id: str, reason: str, now: float) -> None:
    """Postpone a signal to the end of the action of the group's stack."""
    tx.execute(insert(_deferred).values(stack_id=stack_id, record_id=record_id, reason=reason, due_at=now))


def count_deferred(tx: Transaction, stack_id: str) -> int:
    return int(tx.execute(select(func.count()).where(_deferred.c.stack_id == stack_id)).scalar_one())


def postpone(tx: Transaction, id: int, due_at: float) -> None:
    tx.execute(update(_deferred).where(_deferred.c.id == id).values(due_at=due_at))


def remove_deferred(tx: Transaction, id: int) -> bool:
    """Remove a waiting signal; return whether it still existed."""
    return tx.execute(delete(_deferred).where(_deferred.c.id == id)).rowcount > 0


def deferred(tx: Transaction, now: float, limit: int) -> Sequence[DeferredSignalRow]:
    """Return signals whose delay may be over, in the order of their arrival."""
    return typed.rows(DeferredSignalRow, _due(tx, now, limit)).all()


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    return select(_deferred).where(_deferred.c.due_at <= now).order_by(_deferred.c.id).limit(limit)
