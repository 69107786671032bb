"""Due shards, in an order that is fair to projects and stacks (CV17, ADR 0039)."""

from typing import Any, NamedTuple

from sqlalchemy import Select, and_, case, func, literal, select

from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.shards import shards
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared

PATIENCE_S = 10.0
"""Time after which healing is as urgent as the requests of users; each lower priority waits one such time longer."""


class DueShard(NamedTuple):
    stack_id: str
    number: int
    project: str
    wake_at: float
    priority: int


def due(tx: Transaction, now: float, limit: int) -> list[DueShard]:
    """Return shards with work to do and no living owner, in fair order (CV17, ADR 0039).

    The order: the most urgent first; then projects in turn, those with many shards in work later; within a project root
    stacks in turn, likewise; within the tree of a root stack deletions, then the first shard of each stack, then the
    oldest wake-up.

    So however many due shards a project has, every other project, and every other stack of the project, has its turn
    among the first few shards. Less urgent work becomes urgent with time (`PATIENCE_S`). A deletion does not wait for
    the creation in progress, and a stack about to find its tree too large does not wait for the large groups below.
    """
    return list(typed.rows(DueShard, _due(tx, now, limit)))


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    table, stack = schema.shard, schema.stack
    urgency = case((table.c.wake_at <= now - PATIENCE_S * table.c.priority, int(shards.USER)), else_=table.c.priority)
    ending = and_(stack.c.action == Action.DELETE, stack.c.status == Status.IN_PROGRESS)
    columns = [table.c[name] for name in DueShard._fields]
    # First rank: the place of a shard within its tree.
    in_tree = func.row_number().over(
        partition_by=(stack.c.root_id, urgency),
        order_by=(case((ending, 0), else_=1), table.c.number, table.c.wake_at, table.c.stack_id),
    )
    waiting = (
        select(*columns, stack.c.root_id, urgency.label("urgency"), in_tree.label("place"))
        .join(stack, stack.c.id == table.c.stack_id)
        .where(table.c.wake_at <= now, table.c.lease_until <= now)
        .subquery()
    )
    # Shards in work count as turns taken already, so that a large tree does not occupy all workers.
    held = select(table.c.project, stack.c.root_id, func.count().label("shards"))
    held_by_tree = (
        held.join(stack, stack.c.id == table.c.stack_id)
        .where(table.c.lease_until > now)
        .group_by(table.c.project, stack.c.root_id)
        .cte("held_by_tree")
    )
    held_by_project = (
        select(held_by_tree.c.project, func.sum(held_by_tree.c.shards).label("shards"))
        .group_by(held_by_tree.c.project)
        .cte("held_by_project")
    )
    oldest = (waiting.c.wake_at, waiting.c.stack_id, waiting.c.number)
    # Second rank: the place within the project, whose trees alternate. The projects alternate in the final order.
    share = func.coalesce(held_by_tree.c.shards, 0) + waiting.c.place
    turn = func.row_number().over(partition_by=(waiting.c.project, waiting.c.urgency), order_by=(share, *oldest))
    return (
        select(*(waiting.c[column.name] for column in columns))
        .outerjoin(held_by_tree, held_by_tree.c.root_id == waiting.c.root_id)
        .outerjoin(held_by_project, held_by_project.c.project == waiting.c.project)
        .order_by(waiting.c.urgency, func.coalesce(held_by_project.c.shards, 0) + turn, *oldest)
        .limit(limit)
    )


def due_in(tx: Transaction, now: float, within_s: float) -> float:
    """Return the seconds until a shard can be claimed: 0 if already, at most `within_s`."""
    first = _first_due(tx, now, now + within_s).scalar_one()
    return within_s if first is None else min(max(first - now, 0.0), within_s)


@prepared
def _first_due(now: float, until: float) -> Select[Any]:
    """Select the time when the first shard can be claimed: 0 if already, NULL if there is no due shard."""
    table = schema.shard
    # With many shards due, EXISTS stops at the first one, while the minimum would read them all.
    claimable = select(table.c.number).where(table.c.wake_at <= now, table.c.lease_until <= now).exists()
    at = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
    later = select(func.min(at)).where(table.c.wake_at <= until).scalar_subquery()
    return select(case((claimable, literal(0.0)), else_=later))
