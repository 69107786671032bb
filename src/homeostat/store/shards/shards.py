"""Shards as units of ownership: leases, epochs and wake-ups (invariants 1 and 4, CONTRIBUTING.md; ADR 0005).

A lease gives a shard to one worker for some seconds; its epoch is the fencing token. Each claim increments the epoch,
and each write in the name of a lease requires the shard's epoch to be that of the lease. So a worker that was frozen,
and whose shard belongs to another one by now, stores nothing. Releasing a shard ends the lease and keeps the epoch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    UpdateBase,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    tuple_,
    type_coerce,
    update,
)

from homeostat.model.errors import Superseded
from homeostat.model.plan import Priority
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.sql import lock_order, notices
from homeostat.store.sql.prepared import prepared

USER, HEAL, ROLLOUT, DRIFT, GARBAGE = Priority
PATIENCE_S = 10.0
"""Time after which healing is as urgent as what users wait for; each lower priority waits one such time longer."""

INSERTED_MAX = 500
"""Maximum number of shards that one statement creates."""
CRASHES_MAX, CRASH = 6, 3
"""Limits for passes that crash their workers.

A claim counts a crash if the last owner never gave the shard back and has stopped reporting itself. It counts 1 if that
owner had stored something, and so had made progress, otherwise `CRASH`. A shard with `CRASHES_MAX` in a row, as after
two passes that took their worker down at the same point, is set aside. It is tried again at growing intervals, and at
once for a new revision.
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """Ownership of one shard by one worker; every write in its name checks the epoch.

    Attributes:
        stack_id: The stack.
        number: The number of the shard in its stack.
        epoch: The fencing token.
        wakes: The count of wake-ups when the shard was claimed; if it has grown, there is new work.
        lease_until: The end of the lease as claimed.
        crashes: The weighted crashes of the last owners, see `CRASHES_MAX`; 0 unless the last one crashed.
    """

    stack_id: str
    number: int
    epoch: int
    wakes: int
    lease_until: float
    crashes: int = 0

    @property
    def crashes_workers(self) -> bool:
        """Whether passes over the shard have crashed their workers so often that it must be set aside."""
        return self.crashes >= CRASHES_MAX


def _owned(stack_id: str, number: int, epoch: int) -> tuple[ColumnElement[bool], ...]:
    table = schema.shard
    return table.c.stack_id == stack_id, table.c.number == number, table.c.epoch == epoch


@prepared
def _renew(stack_id: str, number: int, epoch: int, until: float, *, stores: bool) -> UpdateBase:
    # The end of the lease is not checked: an owner that was slow is still the owner as long as no other worker has
    # claimed the shard. An UPDATE, not a SELECT: it locks the row, so no worker can claim the shard before the commit.
    mine = update(schema.shard).where(*_owned(stack_id, number, epoch))
    marked = {"stored": schema.shard.c.epoch} if stores else {}
    return mine.values(lease_until=until, **marked).returning(schema.shard.c.wakes)


@prepared
def _extend(stack_id: str, number: int, epoch: int, until: float, now: float) -> UpdateBase:
    # Here the end is checked: a released shard keeps its epoch, and a heartbeat that comes late would own it again.
    mine = update(schema.shard).where(*_owned(stack_id, number, epoch), schema.shard.c.lease_until > now)
    return mine.values(lease_until=until)


@prepared
def _lock_unless_written(stack_id: str, number: int, epoch: int) -> Select[Any]:
    mine = select(schema.shard.c.number).where(*_owned(stack_id, number, epoch))
    return mine.with_for_update(skip_locked=True)


def ensure(db: Database, tx: Connection, stack_id: str, project: str, count: int) -> None:
    """Create the shards 0 … count-1 of a stack, as far as they do not exist."""
    new = _new(db.insert)
    one = {"stack_id": stack_id, "project": project, "priority": USER}
    for start in range(0, count, INSERTED_MAX):
        tx.execute(new, [{**one, "number": number} for number in range(start, min(start + INSERTED_MAX, count))])


@cache
def _new(insert: Any) -> UpdateBase:
    """Build the statement with the dialect's insert."""
    statement: UpdateBase = insert(schema.shard).on_conflict_do_nothing()
    return statement


def settle_empty(tx: Connection, stack_id: str, revision: int, now: float) -> None:
    """Bring shards without any rows to rest at an empty revision, without a pass over each of them.

    The first shard is left out, since its pass ends the stack's action. Shards with a valid lease are left out, too.
    The new epoch supersedes a worker whose lease has run out and that is about to create the first rows.
    """
    table, rows = schema.shard, schema.resource
    something = select(rows.c.key).where(rows.c.stack_id == table.c.stack_id, rows.c.shard == table.c.number)
    free = (table.c.stack_id == stack_id, table.c.number > 0, table.c.lease_until <= now)
    tx.execute(
        update(table)
        .where(*free, ~something.exists())
        .values(epoch=table.c.epoch + 1, settled_revision=revision, wake_at=None, owner=None, planned=0, done=0)
    )


def wake(
    tx: Connection,
    stack_id: str,
    at: float,
    priority: int,
    numbers: Sequence[int] | None = None,
    unsettled_at: int | None = None,
    restart_at: int | None = None,
) -> int:
    """Request a pass at time `at`, or earlier if one was requested already.

    A wake-up carries no data: the pass reads from the rows what there is to do.

    Args:
        tx: The transaction.
        stack_id: The stack.
        at: When, in seconds since the epoch.
        priority: The priority; a shard keeps a more urgent one that it has.
        numbers: Only these shards; None for all.
        unsettled_at: Only shards that are not at rest at this revision.
        restart_at: A new revision: progress and crashes of shards that are not at rest at it count from zero.

    Returns:
        How many shards were woken.
    """
    notices.mark_due(tx)
    some = {"some": numbers is not None, "unsettled": unsettled_at is not None, "restart": restart_at is not None}
    return _wake(tx, stack_id, at, priority, numbers or (), unsettled_at, restart_at, **some).rowcount


@prepared
def _wake(
    stack_id: str,
    at: float,
    priority: int,
    numbers: Sequence[int],
    unsettled_at: int | None,
    restart_at: int | None,
    *,
    some: bool,
    unsettled: bool,
    restart: bool,
) -> UpdateBase:
    table = schema.shard
    where = [table.c.stack_id == stack_id]
    if unsettled:
        where.append(table.c.settled_revision < unsettled_at)
    if some:
        where.append(table.c.number.in_(numbers))
    values = wake_values(at, priority)
    if restart:
        # A new revision may not crash workers any more (it may delete the stack), so it is tried at once.
        values |= {"crashes": 0, "wake_at": _sooner(at)}
        values["done"] = case((table.c.settled_revision < restart_at, 0), else_=table.c.done)
    return update(table).where(*where).values(**values)


@dataclass(frozen=True, slots=True)
class ShardChange:
    """A shard that a new revision changes: `changed` of the `there` members that it has."""

    there: int
    changed: int


def restart_progress(tx: Connection, stack_id: str, touched: Mapping[int, ShardChange]) -> None:
    """Set the progress of shards that a new revision changes: members that it does not change count as done."""
    table = schema.shard
    mine = (table.c.stack_id == stack_id, table.c.number == bindparam("shard"))
    values: dict[str, Any] = {"planned": bindparam("there"), "done": bindparam("unchanged")}
    rows = [
        {"shard": number, "there": each.there, "unchanged": each.there - each.changed}
        for number, each in sorted(touched.items())
    ]
    if rows:
        tx.execute(update(table).where(*mine).values(values), rows)


def wake_all(
    tx: Connection, stacks: ColumnElement[Any] | Select[Any] | Sequence[str], at: float, priority: int
) -> None:
    """Request a pass over each shard of these stacks, as ids or as a subquery of ids."""
    notices.mark_due(tx)
    table = schema.shard
    # The UPDATE alone would lock the shards in any order, and could deadlock with a pass that wakes its parent.
    lock_order.take_shards(tx, table.c.stack_id.in_(stacks))
    tx.execute(update(table).where(table.c.stack_id.in_(stacks)).values(**wake_values(at, priority)))


def wake_unsettled(tx: Connection, stack_id: str, at: float, priority: int, revision: int) -> None:
    """Wake the shards that are not at rest at a new revision.

    If all are at rest, the first one is woken: its pass finds that out, and ends the stack's action.
    """
    if not wake(tx, stack_id, at, priority, unsettled_at=revision, restart_at=revision):
        wake(tx, stack_id, at, priority, [0])


def wake_values(at: float, priority: int) -> dict[str, Any]:
    """Return the new column values of a shard for which a pass is requested."""
    table = schema.shard
    # A shard that was set aside for crashes keeps its time: otherwise each look at its things would end a worker.
    waits = and_(table.c.crashes >= CRASHES_MAX, table.c.wake_at.is_not(None))
    sooner = case((waits, table.c.wake_at), else_=_sooner(at))
    urgent = case(
        (table.c.wake_at.is_(None), priority), (table.c.priority < priority, table.c.priority), else_=priority
    )
    return {"wake_at": sooner, "wakes": table.c.wakes + 1, "priority": urgent}


def _sooner(at: float) -> ColumnElement[float]:
    return case((schema.shard.c.wake_at < at, schema.shard.c.wake_at), else_=at)


def carry_over(tx: Connection, stack_id: str, revision: int, touched: Collection[int]) -> None:
    """Mark shards as at rest at `revision` if they were at rest at the one before and are not among `touched`.

    A shard with a FAILED resource, or with something left to do, is not carried over: the new revision tries it again.
    """
    table = schema.shard
    tx.execute(
        update(table)
        .where(
            table.c.stack_id == stack_id,
            table.c.settled_revision == revision - 1,
            table.c.failures == 0,
            table.c.done == table.c.planned,
            table.c.number.not_in(sorted(touched)),
        )
        .values(settled_revision=revision)
    )


def due(tx: Connection, now: float, limit: int) -> list[Row[Any]]:
    """Return shards with work to do and no living owner, in fair order (CV17, ADR 0039).

    The order is: the most urgent first; then projects in turn, those with shards in work later; within a project root
    stacks in turn, likewise; within the tree of one root stack what is being deleted, then the first shard of each
    stack, then the oldest wake-up.

    So however many due shards one project has, every other project has its turn within the first few, and so has every
    other stack of that project. Less urgent work becomes urgent when it has waited (`PATIENCE_S`). A deletion does not
    wait for the creation that it ends, and a stack that will find its tree too large does not wait for the large groups
    of that tree.
    """
    return list(_due(tx, now, limit))


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    table, stack = schema.shard, schema.stack
    urgency = case((table.c.wake_at <= now - PATIENCE_S * table.c.priority, int(USER)), else_=table.c.priority)
    ending = and_(stack.c.action == Action.DELETE, stack.c.status == Status.IN_PROGRESS)
    columns = [table.c[name] for name in ("stack_id", "number", "project", "wake_at", "priority")]
    # First turn: the place of a shard within its tree.
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
    # Shards in work count as turns that were taken already, so that a large tree does not occupy all workers.
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
    # Second turn: the place within the project, whose trees alternate. The projects alternate in the final order.
    share = func.coalesce(held_by_tree.c.shards, 0) + waiting.c.place
    turn = func.row_number().over(partition_by=(waiting.c.project, waiting.c.urgency), order_by=(share, *oldest))
    return (
        select(*(waiting.c[column.name] for column in columns))
        .outerjoin(held_by_tree, held_by_tree.c.root_id == waiting.c.root_id)
        .outerjoin(held_by_project, held_by_project.c.project == waiting.c.project)
        .order_by(waiting.c.urgency, func.coalesce(held_by_project.c.shards, 0) + turn, *oldest)
        .limit(limit)
    )


def due_in(tx: Connection, now: float, within_s: float) -> float:
    """Return the seconds until a shard can be claimed: 0 if one can be now, at most `within_s`."""
    first = _first_due(tx, now, now + within_s).scalar_one()
    return within_s if first is None else min(max(first - now, 0.0), within_s)


@prepared
def _first_due(now: float, until: float) -> Select[Any]:
    """Select when the first shard can be claimed, NULL for none; 0 if one can be now."""
    table = schema.shard
    # With many shards due, EXISTS stops at the first one, while the minimum would read them all.
    there = select(table.c.number).where(table.c.wake_at <= now, table.c.lease_until <= now).exists()
    at = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
    later = select(func.min(at)).where(table.c.wake_at <= until).scalar_subquery()
    return select(case((there, literal(0.0)), else_=later))


def claim(tx: Connection, stack_id: str, number: int, owner: str, now: float, lease_s: float) -> Lease | None:
    """Claim the shard for this worker.

    `wake_at` stays as it is: should this owner die, the shard is due again as soon as its lease has run out.

    Returns:
        A lease of `lease_s` seconds with a new epoch; None if another worker was faster, or while another transaction
        writes to the shard's row: one locked shard does not hold up the others.
    """
    last = _free(tx, stack_id, number, now).first()
    if last is None:
        return None
    # A release clears the owner, so one that is still there never gave the shard back. If it is this worker itself, it
    # did not crash: the database connection was lost in the middle of the claim or the release.
    ended = last.owner not in (None, owner)
    ended = ended and _living_worker(tx, last.owner, now - lease_s).first() is None
    crash = 0 if not ended else 1 if last.stored == last.epoch else CRASH
    row = _own(tx, stack_id, number, now, owner, now + lease_s, crash).first()
    if row is None:
        return None
    return Lease(stack_id, number, row.epoch, row.wakes, now + lease_s, row.crashes if crash else 0)


@prepared
def _living_worker(owner: str, since: float) -> Select[Any]:
    """Select the worker if it has reported itself: then it is alive, though it was too slow to keep its lease."""
    return select(schema.worker.c.name).where(schema.worker.c.name == owner, schema.worker.c.seen_at > since)


def _claimable(stack_id: str, number: int, now: float) -> tuple[ColumnElement[bool], ...]:
    table = schema.shard
    return table.c.stack_id == stack_id, table.c.number == number, table.c.wake_at <= now, table.c.lease_until <= now


@prepared
def _free(stack_id: str, number: int, now: float) -> Select[Any]:
    table = schema.shard
    known = select(table.c.owner, table.c.epoch, table.c.stored)
    return known.where(*_claimable(stack_id, number, now)).with_for_update(skip_locked=True)


@prepared
def _own(stack_id: str, number: int, now: float, owner: str, until: float, crash: int) -> UpdateBase:
    table = schema.shard
    owned = update(table).where(*_claimable(stack_id, number, now))
    owned = owned.values(epoch=table.c.epoch + 1, owner=owner, lease_until=until, crashes=table.c.crashes + crash)
    return owned.returning(table.c.epoch, table.c.wakes, table.c.crashes)


def renew(tx: Connection, lease: Lease, now: float, lease_s: float, *, stores: bool = True) -> int:
    """Check the epoch and extend the lease; the first statement of each transaction of a pass.

    Args:
        tx: The transaction.
        lease: The lease.
        now: The agreed time.
        lease_s: The length of the lease from now on, in seconds.
        stores: The transaction stores something, so the pass makes progress (see `CRASHES_MAX`).

    Returns:
        The count of wake-ups.

    Raises:
        Superseded: The shard has a newer owner.
    """
    wakes = _renew(tx, lease.stack_id, lease.number, lease.epoch, now + lease_s, stores=stores).scalar_one_or_none()
    if wakes is None:
        raise Superseded(f"shard {lease.stack_id}/{lease.number} has a newer owner than epoch {lease.epoch}")
    return int(wakes)


def renew_all(tx: Connection, leases: Collection[Lease], now: float, lease_s: float) -> None:
    """Extend these leases as far as they are still held (heartbeat).

    A shard that another transaction is writing to is left out until the next heartbeat. This transaction locks shards
    of any stacks in any order, so it must never wait for one while it holds others: that could deadlock.
    """
    for lease in leases:
        mine = (lease.stack_id, lease.number, lease.epoch)
        if _lock_unless_written(tx, *mine).first() is not None:
            _extend(tx, *mine, now + lease_s, now)


@dataclass(frozen=True, slots=True)
class PassProgress:
    """The progress of a shard, as a pass at a revision has found it.

    Attributes:
        revision: The revision.
        nodes: How many nodes there are, those to be deleted included.
        unfinished: How many of them are not at rest.
        defined: How many nodes the revision defines.
        priority: The priority of the next pass, unless something happens before.
    """

    revision: int
    nodes: int
    unfinished: int
    defined: int
    priority: Priority = Priority.USER


def is_any_of(these: Sequence[tuple[str, int]]) -> ColumnElement[bool]:
    """Return the condition that a shard is one of these, each as the id of its stack and its number."""
    return tuple_(schema.shard.c.stack_id, schema.shard.c.number).in_(these)


def unexpired(tx: Connection, leases: Collection[Lease], now: float) -> set[Lease]:
    """Return those of these leases that have not run out."""
    table = schema.shard
    these = is_any_of(sorted((lease.stack_id, lease.number) for lease in leases))
    chosen = select(table.c.stack_id, table.c.number, table.c.epoch).where(these, table.c.lease_until > now)
    owned = {tuple(row) for row in tx.execute(chosen)}
    return {lease for lease in leases if (lease.stack_id, lease.number, lease.epoch) in owned}


def release(
    tx: Connection, lease: Lease, wakes: int, wake_at: float | None, reached: PassProgress | None = None
) -> bool:
    """Give the shard back, to be woken at `wake_at`, or at once if it was woken since `wakes` was read.

    Returns:
        False if a newer owner has it already, which is no error.
    """
    mine = (lease.stack_id, lease.number, lease.epoch, wakes, wake_at)
    if reached is None:
        return _release(tx, *mine).first() is not None
    how_far = (reached.revision, reached.nodes, reached.unfinished, reached.defined, int(reached.priority))
    return _release_at_revision(tx, *mine, *how_far, is_moving=reached.unfinished > 0).first() is not None


@prepared
def _release(stack_id: str, number: int, epoch: int, wakes: int, wake_at: float | None) -> UpdateBase:
    return _released(stack_id, number, epoch, wakes, wake_at, {})


@prepared
def _release_at_revision(
    stack_id: str,
    number: int,
    epoch: int,
    wakes: int,
    wake_at: float | None,
    revision: int,
    nodes: int,
    unfinished: int,
    defined: int,
    priority: int,
    *,
    is_moving: bool,
) -> UpdateBase:
    """Build the release that also stores the progress of the pass.

    `planned` and `done` stay as they are if there is a newer revision, to which this progress does not apply.

    Args:
        is_moving: Something is left to do. Deleted nodes are not counted in `nodes` any more, so while something is
            left `planned` never shrinks; otherwise progress would seem to go backwards. At rest it is what stays.
    """
    table = schema.shard
    newest = select(schema.stack.c.revision).where(schema.stack.c.id == stack_id).scalar_subquery()
    same: ColumnElement[bool] = newest == revision
    planned: Any = type_coerce(defined, Integer)
    if is_moving:
        planned = case((table.c.planned > nodes, table.c.planned), else_=nodes)
    else:
        # The end of this pass may have made the next batch of its group, a newer revision that does not touch this
        # shard, and carried it over: then its progress holds for that revision as well.
        same = or_(same, table.c.settled_revision == newest)
    values = {
        "planned": case((same, planned), else_=table.c.planned),
        "done": case((same, planned - unfinished), else_=table.c.done),
        "priority": case((table.c.wakes == wakes, priority), else_=table.c.priority),
    }
    return _released(stack_id, number, epoch, wakes, wake_at, values)


def _released(
    stack_id: str, number: int, epoch: int, wakes: int, wake_at: float | None, values: Mapping[str, Any]
) -> UpdateBase:
    table = schema.shard
    # If the count has changed, a wake-up came after the claim, and this pass may not have seen what it was for. Its
    # time is in the row already and must not be overwritten, or the wake-up would be lost.
    again = case((table.c.wakes == wakes, wake_at), else_=table.c.wake_at)
    mine = update(table).where(*_owned(stack_id, number, epoch)).returning(table.c.number)
    return mine.values(owner=None, lease_until=0.0, reason="", crashes=0, wake_at=again, **values)


def clear_crashes(tx: Connection, stack_id: str, number: int, now: float) -> None:
    """Forget the crashes of a shard, since the worker that seemed to have crashed has not.

    If the shard was set aside for them, a pass is requested now.
    """
    notices.mark_due(tx)
    table = schema.shard
    aside = and_(table.c.crashes >= CRASHES_MAX, table.c.wake_at.is_not(None))
    tx.execute(
        update(table)
        .where(table.c.stack_id == stack_id, table.c.number == number, table.c.crashes > 0)
        .values(
            crashes=0,
            wake_at=case((aside, _sooner(now)), else_=table.c.wake_at),
            reason=case((aside, ""), else_=table.c.reason),
        )
    )


def end_lease(tx: Connection, stack_id: str, number: int, owner: str) -> None:
    """End this owner's lease on a shard that it does not work on, if it has one.

    `wake_at` stays, so the pass that the lease was meant for is still due.
    """
    table = schema.shard
    these = (table.c.stack_id == stack_id, table.c.number == number, table.c.owner == owner)
    tx.execute(update(table).where(*these).values(owner=None, lease_until=0.0))


def set_aside(tx: Connection, lease: Lease, reason: str, until: float) -> None:
    """Set a shard aside until a time, after an internal error or crashes of its workers; all others run on.

    The reason is stored. Nothing changes if a newer owner has the shard.
    """
    table = schema.shard
    # `crashes` stays, unlike in a release: the next pass is tried, and one more crash sets the shard aside for longer.
    tx.execute(
        update(table)
        .where(table.c.stack_id == lease.stack_id, table.c.number == lease.number, table.c.epoch == lease.epoch)
        .values(owner=None, lease_until=0.0, wake_at=until, reason=reason)
    )


def count_failures(tx: Connection, stack_id: str, number: int, more: int) -> None:
    """Add to the number of FAILED resources of a shard.

    A difference, not a total: API requests that mark resources count as well, between two passes.
    """
    _count_failures(tx, stack_id, number, more)


@prepared
def _count_failures(stack_id: str, number: int, more: int) -> UpdateBase:
    table = schema.shard
    mine = (table.c.stack_id == stack_id, table.c.number == number)
    return update(table).where(*mine).values(failures=table.c.failures + more)


def failures_of(tx: Connection, stack_id: str) -> int:
    """Return how many resources of a stack are FAILED."""
    failures = select(func.sum(schema.shard.c.failures)).where(schema.shard.c.stack_id == stack_id)
    return int(tx.execute(failures).scalar() or 0)


def get(tx: Connection, stack_id: str, number: int) -> Row[Any] | None:
    return _get(tx, stack_id, number).first()


@prepared
def _get(stack_id: str, number: int) -> Select[Any]:
    table = schema.shard
    return select(table).where(table.c.stack_id == stack_id, table.c.number == number)


def settle(tx: Connection, stack_id: str, number: int, revision: int) -> None:
    """Record that the shard is at rest at this revision."""
    _settle(tx, stack_id, number, revision)


@prepared
def _settle(stack_id: str, number: int, revision: int) -> UpdateBase:
    table = schema.shard
    return update(table).where(table.c.stack_id == stack_id, table.c.number == number).values(settled_revision=revision)


def of_stack(tx: Connection, stack_id: str) -> list[Row[Any]]:
    return list(tx.execute(select(schema.shard).where(schema.shard.c.stack_id == stack_id).order_by("number")))
