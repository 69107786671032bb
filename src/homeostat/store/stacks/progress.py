"""Progress of stacks, read from a few short rows however large the stacks are (CV19)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import case, func, or_, select

from homeostat.model.status import Status
from homeostat.planner.report.estimate import ResourceEvent
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.operation import workers
from homeostat.store.schema.rows import ShardRow, StackRow
from homeostat.store.sql import typed

STACKS_MAX = 1000
"""Progress of a tree with more nested stacks than this is not computed."""
EVENTS_MAX = 1000
"""The number of events of a stack that are read for estimates."""
PROJECT_EVENTS_MAX = 2000
"""The number of newest events, of all projects together, that are searched for the events of a project."""

_stack, _shard, _event, _resource = schema.stack, schema.shard, schema.event, schema.resource


@dataclass(frozen=True, slots=True)
class ProgressCounts:
    """Progress, summed over shards.

    Attributes:
        planned: Number of nodes that have to come to rest.
        unsettled: Whether some shard has not been at rest at the newest revision yet.
    """

    planned: int
    done: int
    unsettled: bool


@dataclass(frozen=True, slots=True)
class StackCounts:
    """Numbers of the nodes of a stack: planned, done (at rest), and failed."""

    planned: int
    done: int
    failed: int

    def __add__(self, other: "StackCounts") -> "StackCounts":
        return StackCounts(self.planned + other.planned, self.done + other.done, self.failed + other.failed)


NO_NODES = StackCounts(0, 0, 0)


def counted_by_stack(tx: Transaction, stack_ids: Collection[str]) -> dict[str, StackCounts]:
    """Return the counts of each of these stacks that has any shard."""
    sums = [func.sum(_shard.c[name]) for name in ("planned", "done", "failures")]
    chosen = select(_shard.c.stack_id, *sums).where(_shard.c.stack_id.in_(stack_ids)).group_by(_shard.c.stack_id)
    return {id: StackCounts(int(planned), int(done), int(failed)) for id, planned, done, failed in tx.execute(chosen)}


class NestedStack(NamedTuple):
    id: str
    revision: int
    parent_id: str
    parent_name: str


def nested_stacks(tx: Transaction, stack_id: str, depth: int) -> list[NestedStack] | None:
    """Return the live stacks nested in a stack, down to `depth` levels, upper ones first.

    Returns:
        None if there are more than `STACKS_MAX`.
    """
    stacks: list[NestedStack] = []
    parents = [stack_id]
    for _ in range(depth):
        columns = (_stack.c.id, _stack.c.revision, _stack.c.parent_id, _stack.c.parent_name)
        chosen = select(*columns).where(_stack.c.parent_id.in_(parents), _stack.c.deleted_at.is_(None))
        nested = typed.rows(NestedStack, tx.execute(chosen.limit(STACKS_MAX + 1 - len(stacks)))).all()
        stacks += nested
        if len(stacks) > STACKS_MAX:
            return None
        if not nested:
            break
        parents = [stack.id for stack in nested]
    return stacks


def counted(tx: Transaction, stack_ids: Collection[str]) -> ProgressCounts:
    """Return the total progress of these stacks."""
    sums = (
        select(
            func.coalesce(func.sum(_shard.c.planned), 0),
            func.coalesce(func.sum(_shard.c.done), 0),
            func.count(case((_shard.c.settled_revision < _stack.c.revision, 1))),
        )
        .join(_stack, _stack.c.id == _shard.c.stack_id)
        .where(_shard.c.stack_id.in_(stack_ids))
    )
    planned, done, unsettled = tx.execute(sums).one()
    return ProgressCounts(int(planned), int(done), unsettled > 0)


class ShardProgress(NamedTuple):
    number: int
    planned: int
    done: int


def unfinished(tx: Transaction, stack_id: str) -> list[ShardProgress]:
    """Return the shards of a stack that have unfinished nodes."""
    chosen = select(_shard.c.number, _shard.c.planned, _shard.c.done)
    behind = chosen.where(_shard.c.stack_id == stack_id, _shard.c.done < _shard.c.planned)
    return list(typed.rows(ShardProgress, tx.execute(behind)))


def unfinished_stacks(tx: Transaction, stack_ids: Collection[str]) -> set[str]:
    """Return the stacks that have unfinished nodes."""
    chosen = select(_shard.c.stack_id).where(_shard.c.stack_id.in_(stack_ids), _shard.c.done < _shard.c.planned)
    return set(tx.execute(chosen.distinct()).scalars())


def stacks_left_alone(tx: Transaction, stack_ids: Collection[str]) -> set[str]:
    """Return the stacks with a resource at rest that differs from the desired state, and has an intent noted for it.

    Such a resource is left alone while its stack is locked or suspended, or its convergence is switched off.
    """
    noted = (_resource.c.status == Status.COMPLETE, _resource.c.intent.is_not(None))
    chosen = select(_resource.c.stack_id).where(_resource.c.stack_id.in_(stack_ids), *noted)
    return set(tx.execute(chosen.distinct()).scalars())


def shards_to_explain(tx: Transaction, stack: StackRow, now: float, first: int, limit: int) -> list[ShardRow]:
    """Return the shards, from number `first` on, that an explanation has to read.

    Their resources may not be at rest, or differ from the desired state and be left alone: the stack is locked or
    suspended, its convergence is switched off, or its environment restricts the operations needed (only possible in
    stacks with a single shard).
    """
    chosen = select(_shard).where(_shard.c.stack_id == stack.id, _shard.c.number >= first)
    # A resource left alone counts as at rest, so no shard can be ruled out by its columns.
    left_alone = stack.lock is not None or stack.suspended or not stack.converge or stack.exceptions
    if stack.shards > 1 and not left_alone:
        chosen = chosen.where(
            or_(
                _shard.c.settled_revision < stack.revision,
                _shard.c.done < _shard.c.planned,
                _shard.c.failures > 0,
                _shard.c.reason != "",
                _shard.c.wake_at <= now,
            )
        )
    return list(typed.rows(ShardRow, tx.execute(chosen.order_by(_shard.c.number).limit(limit))))


@dataclass(frozen=True, slots=True)
class Unseen:
    """Why the things of a shard cannot be observed, and when all of them last were; None for never."""

    reason: str
    looked_at: float | None


def unseen(tx: Transaction, stack_id: str) -> Unseen | None:
    """Return the problem of the shard that was not observed for longest; None if the newest observations succeeded."""
    chosen = select(_shard.c.blind, _shard.c.looked_at).where(_shard.c.stack_id == stack_id, _shard.c.blind != "")
    row = tx.execute(chosen.order_by(func.coalesce(_shard.c.looked_at, 0.0)).limit(1)).first()
    return None if row is None else Unseen(row.blind, row.looked_at)


def resource_events(tx: Transaction, stack_id: str) -> list[ResourceEvent]:
    """Return the newest events of a stack's resources, in order."""
    chosen = select(*_event_columns()).where(_event.c.stack_id == stack_id, _event.c.key != "")
    return _in_order(list(tx.execute(chosen.order_by(_event.c.seq.desc()).limit(EVENTS_MAX))))


def project_events(tx: Transaction, project: str) -> list[tuple[str, ResourceEvent]]:
    """Return the newest events of a project's resources, in order, each with the id of its stack."""
    # A range of numbers bounds the query: no index would lead to the newest events of a single project.
    newest = select(func.max(_event.c.seq)).scalar_subquery()
    chosen = (
        select(_event.c.stack_id, *_event_columns())
        .join(_stack, _stack.c.id == _event.c.stack_id)
        .where(_event.c.seq > newest - PROJECT_EVENTS_MAX, _stack.c.project == project, _event.c.key != "")
        .order_by(_event.c.seq)
    )
    return [(stack_id, ResourceEvent(*values)) for stack_id, *values in tx.execute(chosen)]


def _event_columns() -> Sequence[Any]:
    return [_event.c[name] for name in ("key", "type", "action", "status", "at")]


def _in_order(rows: Sequence[Sequence[Any]]) -> list[ResourceEvent]:
    return [ResourceEvent(*row) for row in reversed(rows)]


def has_workers(tx: Transaction, now: float) -> bool:
    """Return whether any worker is alive."""
    if any(worker.is_alive(now) for worker in workers.listed(tx)):
        return True
    # A worker of an old version may own shards without being in the register.
    working = select(_shard.c.number).where(_shard.c.lease_until > now).limit(1)
    return tx.execute(working).first() is not None
