"""Snapshots of stacks, and their parts, which the clouds store.

Every function works inside the transaction of its caller. In the order of locks a snapshot comes last, after stacks and
shards.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, delete, func, insert, select, update

from homeostat.model.plan import Part, snapshots_of
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Database, Transaction, row_lock
from homeostat.store.schema.rows import SnapshotPartRow, SnapshotRow, StackRow
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan
from homeostat.store.sql import notices, typed
from homeostat.store.sql.prepared import prepared

AGAIN_S = 5.0
"""Time between two steps of the deletion of a snapshot."""

_snapshot = schema.snapshot
_part = schema.snapshot_part


def add(tx: Transaction, id: str, stack_id: str, revision: int, name: str | None, now: float) -> None:
    """Store a snapshot that is about to be taken."""
    values = {"id": id, "stack_id": stack_id, "revision": revision, "name": name, "created_at": now}
    started = f"Stack {Action.SNAPSHOT} started"
    tx.execute(insert(_snapshot), {**values, "action": Action.CREATE, "status": Status.IN_PROGRESS, "reason": started})


def get(tx: Transaction, stack_id: str, id: str) -> SnapshotRow | None:
    chosen = select(_snapshot).where(_snapshot.c.stack_id == stack_id, _snapshot.c.id == id)
    return typed.rows(SnapshotRow, tx.execute(chosen)).first()


def for_update(tx: Transaction, id: str) -> SnapshotRow | None:
    """Return the row of a snapshot, locked until the end of the transaction; None if absent."""
    return typed.rows(SnapshotRow, tx.execute(row_lock(select(_snapshot).where(_snapshot.c.id == id)))).first()


def ids(tx: Transaction, stack_id: str) -> list[str]:
    """Return the ids of the snapshots of a stack, the oldest first."""
    chosen = select(_snapshot.c.id).where(_snapshot.c.stack_id == stack_id)
    return list(tx.execute(chosen.order_by(_snapshot.c.created_at, _snapshot.c.id)).scalars())


def count(tx: Transaction, stack_id: str) -> int:
    return int(tx.execute(select(func.count()).where(_snapshot.c.stack_id == stack_id)).scalar_one())


def cell(db: Database, data: dict[str, Any]) -> schema.Cell:
    """Encode and encrypt the data of a snapshot, before the transaction that stores it."""
    return schema.cell_of(db.engine.dialect, _snapshot.c.data, data)


def complete(tx: Transaction, id: str, data: schema.Cell, reason: str) -> None:
    """Record that a snapshot was taken, with its data as encoded by `cell`."""
    _change(tx, id, status=Status.COMPLETE, reason=reason, data=data)


def fail(tx: Transaction, id: str, reason: str) -> None:
    """Record that taking or deleting a snapshot failed; the snapshot and its parts stay until a user deletes them."""
    _change(tx, id, status=Status.FAILED, reason=reason, due_at=None)


def _change(tx: Transaction, id: str, **values: Any) -> None:
    # Only one in progress: a late end does not overwrite the stored one.
    conditions = (_snapshot.c.id == id, _snapshot.c.status == Status.IN_PROGRESS)
    tx.execute(update(_snapshot).where(*conditions).values(**values))


# -- parts, which the clouds store -------------------------------------------------------------------------------------


def save_parts(tx: Transaction, id: str, project: str, place: Sequence[str], parts: Sequence[Part], now: float) -> None:
    """Store the parts that are requested from a cloud, or that the cloud has completed.

    If the snapshot was deleted meanwhile, the parts become orphans, and are swept.
    """
    if for_update(tx, id) is None:
        orphans.add(tx, [Orphan(part.token, snapshots_of(part.kind), project) for part in parts], now)
        return
    rows = [
        {
            "token": part.token,
            "snapshot_id": id,
            "place": list(place),
            "name": part.name,
            "kind": part.kind,
            "made": part.handle,
        }
        for part in parts
    ]
    stored = tx.insert(_part)
    tx.execute(stored.on_conflict_do_update(index_elements=["token"], set_={"made": stored.excluded.made}), rows)


def parts(tx: Transaction, id: str) -> list[SnapshotPartRow]:
    chosen = select(_part).where(_part.c.snapshot_id == id).order_by(_part.c.token)
    return list(typed.rows(SnapshotPartRow, tx.execute(chosen)))


def complete_parts(tx: Transaction, id: str, place: Sequence[str]) -> dict[str, str]:
    """Return the ids of the complete snapshots in a cloud, by resource name, for the stack at this place."""
    conditions = (_part.c.snapshot_id == id, _part.c.place == list(place), _part.c.made != "")
    return {row.name: row.made for row in tx.execute(select(_part.c.name, _part.c.made).where(*conditions))}


# -- deleting ----------------------------------------------------------------------------------------------------------


def begin_deletion(tx: Transaction, id: str, now: float) -> None:
    started = {"action": Action.DELETE, "status": Status.IN_PROGRESS, "reason": "Snapshot delete started"}
    tx.execute(update(_snapshot).where(_snapshot.c.id == id).values(**started, due_at=now))
    notices.mark_due(tx)


def any_due(tx: Transaction, now: float) -> bool:
    """Return whether the deletion of any snapshot has to continue now."""
    return _any_due(tx, now).first() is not None


@prepared
def _any_due(now: float) -> Select[Any]:
    return select(_snapshot.c.id).where(_snapshot.c.due_at <= now).limit(1)


def take_due(tx: Transaction, now: float, limit: int) -> list[tuple[str, str]]:
    """Return id and project of snapshots whose deletion has to continue now, and schedule the next step."""
    stack = schema.stack
    chosen = (
        select(_snapshot.c.id, stack.c.project)
        .join(stack, stack.c.id == _snapshot.c.stack_id)
        .where(_snapshot.c.due_at <= now)
        .order_by(_snapshot.c.due_at)
        .limit(limit)
    )
    due = [(row.id, row.project) for row in tx.execute(chosen)]
    if due:
        ids = [id for id, _ in due]
        tx.execute(update(_snapshot).where(_snapshot.c.id.in_(ids)).values(due_at=now + AGAIN_S))
    return due


def remove(tx: Transaction, id: str, project: str, now: float) -> None:
    """Delete the row of a snapshot whose parts were deleted.

    Requests for parts that were never seen complete may still be in flight: their tokens become orphans.
    """
    _leave_orphans(tx, [(part, project) for part in parts(tx, id) if not part.made], now)
    tx.execute(delete(_snapshot).where(_snapshot.c.id == id))


def remove_of_stack(tx: Transaction, stack_id: str, project: str, now: float, *, abandoned: bool = False) -> None:
    """Delete the rows of the snapshots of a deleted stack; the sweep deletes their parts.

    Of an abandoned stack (`abandoned`), only parts of snapshots that a user had deleted earlier are swept.
    """
    chosen = (
        select(_part).join(_snapshot, _snapshot.c.id == _part.c.snapshot_id).where(_snapshot.c.stack_id == stack_id)
    )
    if abandoned:
        chosen = chosen.where(_snapshot.c.action == Action.DELETE)
    _leave_orphans(tx, [(part, project) for part in typed.rows(SnapshotPartRow, tx.execute(chosen))], now)
    tx.execute(delete(_snapshot).where(_snapshot.c.stack_id == stack_id))


def _leave_orphans(tx: Transaction, left: Sequence[tuple[SnapshotPartRow, str]], now: float) -> None:
    given_up = [Orphan(part.token, snapshots_of(part.kind), project) for part, project in left]
    orphans.add(tx, given_up, now)


def interrupt(tx: Transaction, stack: StackRow, reason: str) -> None:
    """Fail the snapshot in progress of a stack, since the action ends.

    Do nothing for a nested stack (with a place): the snapshot belongs to the stack that the user named.
    """
    taken = stack.snapshot if stack.action == Action.SNAPSHOT and stack.status == Status.IN_PROGRESS else None
    if taken is not None and not taken.place:
        fail(tx, taken.id, reason)
