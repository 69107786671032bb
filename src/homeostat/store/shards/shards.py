"""Shards as units of ownership: leases with epochs, wake-ups (laws 1 and 4)."""

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
"""Time after which healing goes as first as what users wait for; less urgent work waits for its multiples."""

ENSURED = 500
"""Shards that one statement makes."""
CRASHES_MAX, CRASH = 6, 3
"""A claim that finds an owner who never gave the shard back, and is not heard of any more, counts a crash: 1 where that
one had stored something, and so came further than the one before, otherwise `CRASH`. A shard is set aside at so many in
a row: after two passes that ended with their worker at the same point. It is tried again later and later, and at once
for a new revision."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Ownership of one shard: every write in its name checks the epoch. wakes — wake-ups seen when it was claimed;
    crashes — see `CRASHES_MAX`, 0 where the owner before gave it back."""

    stack_id: str
    number: int
    epoch: int
    wakes: int
    lease_until: float
    crashes: int = 0

    @property
    def is_deadly(self) -> bool:
        """Have its passes ended their workers so often that it is to be set aside?"""
        return self.crashes >= CRASHES_MAX


def _owned(stack_id: str, number: int, epoch: int) -> tuple[ColumnElement[bool], ...]:
    table = schema.shard
    return table.c.stack_id == stack_id, table.c.number == number, table.c.epoch == epoch


@prepared
def _renew(stack_id: str, number: int, epoch: int, until: float, *, stores: bool) -> UpdateBase:
    mine = update(schema.shard).where(*_owned(stack_id, number, epoch))
    marked = {"stored": schema.shard.c.epoch} if stores else {}
    return mine.values(lease_until=until, **marked).returning(schema.shard.c.wakes)


@prepared
def _keep_on(stack_id: str, number: int, epoch: int, until: float, now: float) -> UpdateBase:
    mine = update(schema.shard).where(*_owned(stack_id, number, epoch), schema.shard.c.lease_until > now)
    return mine.values(lease_until=until)


@prepared
def _unwritten(stack_id: str, number: int, epoch: int) -> Select[Any]:
    mine = select(schema.shard.c.number).where(*_owned(stack_id, number, epoch))
    return mine.with_for_update(skip_locked=True)


def ensure(db: Database, tx: Connection, stack_id: str, project: str, count: int) -> None:
    """Make sure that shards 0 … count-1 exist."""
    new = _new(db.insert)
    one = {"stack_id": stack_id, "project": project, "priority": USER}
    for start in range(0, count, ENSURED):
        tx.execute(new, [{**one, "number": number} for number in range(start, min(start + ENSURED, count))])


@cache
def _new(insert: Any) -> UpdateBase:
    """insert — of the dialect."""
    statement: UpdateBase = insert(schema.shard).on_conflict_do_nothing()
    return statement


def settle_empty(tx: Connection, stack_id: str, revision: int, now: float) -> None:
    """Bring the shards of a group but the first to rest at a revision that wants nothing, where they have nothing: they
    were never begun. Whoever owned one is superseded, as by a new owner."""
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
    """Ask for a pass at time `at`, or earlier if one was asked for already. Carries no data (law 1).

    numbers — only these shards; unsettled_at — only those that are not at rest at this revision; restart_at — a new
    revision, for which nothing is done yet where it is not at rest. Gives how many were woken.
    """
    notices.due(tx)
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
    values = woken(at, priority)
    if restart:
        values |= {"crashes": 0, "wake_at": _sooner(at)}
        values["done"] = case((table.c.settled_revision < restart_at, 0), else_=table.c.done)
    return update(table).where(*where).values(**values)


@dataclass(frozen=True, slots=True)
class ShardChange:
    """A shard with which a new revision has to do: of `there` members that it has, `changed` change."""

    there: int
    changed: int


def begin_again(tx: Connection, stack_id: str, touched: Mapping[int, ShardChange]) -> None:
    """Shards that were at rest go on with a new revision; what it does not change is done."""
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
    """Ask for a pass over each shard of these stacks."""
    notices.due(tx)
    table = schema.shard
    lock_order.take_shards(tx, table.c.stack_id.in_(stacks))
    tx.execute(update(table).where(table.c.stack_id.in_(stacks)).values(**woken(at, priority)))


def wake_unsettled(tx: Connection, stack_id: str, at: float, priority: int, revision: int) -> None:
    """Wake the shards that are not at rest at a new revision; where there is none, the first, which finds that out."""
    if not wake(tx, stack_id, at, priority, unsettled_at=revision, restart_at=revision):
        wake(tx, stack_id, at, priority, [0])


def woken(at: float, priority: int) -> dict[str, Any]:
    """Columns of a shard that is asked for a pass. One that ends its workers waits for its time."""
    table = schema.shard
    waits = and_(table.c.crashes >= CRASHES_MAX, table.c.wake_at.is_not(None))
    sooner = case((waits, table.c.wake_at), else_=_sooner(at))
    urgent = case(
        (table.c.wake_at.is_(None), priority), (table.c.priority < priority, table.c.priority), else_=priority
    )
    return {"wake_at": sooner, "wakes": table.c.wakes + 1, "priority": urgent}


def _sooner(at: float) -> ColumnElement[float]:
    return case((schema.shard.c.wake_at < at, schema.shard.c.wake_at), else_=at)


def carry_over(tx: Connection, stack_id: str, revision: int, touched: Collection[int]) -> None:
    """Shards at rest at the revision before that `revision` does not touch are at rest at it as well."""
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
    """Shards with work to do and no living owner, in fair order (CV17): the most urgent first; then each project in
    turn, those later that have shards being worked on; of one project each root stack in turn, likewise; of one root
    stack with all that is nested in it what is being deleted, then the first shard of each stack before its others,
    then the oldest wake-up.

    However many of them one project has, every other one has its turn within the first few, and so has every other
    stack of that project; and what is not urgent becomes so when it has waited. A deletion does not wait for what it is
    about to end, and a stack that finds that there is too much of its tree not for groups of any size.
    """
    return list(_due(tx, now, limit))


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    table, stack = schema.shard, schema.stack
    urgency = case((table.c.wake_at <= now - PATIENCE_S * table.c.priority, int(USER)), else_=table.c.priority)
    ending = and_(stack.c.action == Action.DELETE, stack.c.status == Status.IN_PROGRESS)
    columns = [table.c[name] for name in ("stack_id", "number", "project", "wake_at", "priority")]
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
    """Seconds until a shard can be claimed: 0 where one can be now, at most `within_s`."""
    first = _first_due(tx, now, now + within_s).scalar_one()
    return within_s if first is None else min(max(first - now, 0.0), within_s)


@prepared
def _first_due(now: float, until: float) -> Select[Any]:
    """When the first shard can be claimed, 0 where one can be now: all of them are not read then."""
    table = schema.shard
    there = select(table.c.number).where(table.c.wake_at <= now, table.c.lease_until <= now).exists()
    at = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
    later = select(func.min(at)).where(table.c.wake_at <= until).scalar_subquery()
    return select(case((there, literal(0.0)), else_=later))


def claim(tx: Connection, stack_id: str, number: int, owner: str, now: float, lease_s: float) -> Lease | None:
    """Own the shard for `lease_s` seconds, with a new epoch; None when another one was faster.

    Also None while somebody is writing to its row: one locked shard does not hold up the rest.
    """
    last = _free(tx, stack_id, number, now).first()
    if last is None:
        return None
    ended = last.owner not in (None, owner)  # one that finds its own claim has merely lost its connection
    ended = ended and _heard(tx, last.owner, now - lease_s).first() is None
    crash = 0 if not ended else 1 if last.stored == last.epoch else CRASH
    row = _own(tx, stack_id, number, now, owner, now + lease_s, crash).first()
    if row is None:
        return None
    return Lease(stack_id, number, row.epoch, row.wakes, now + lease_s, row.crashes if crash else 0)


@prepared
def _heard(owner: str, since: float) -> Select[Any]:
    """A worker that reports itself lives, though it was too slow to keep its lease."""
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
    """Check the epoch, lengthen the lease, and give the count of wake-ups. Fails: Superseded for a stale owner."""
    wakes = _renew(tx, lease.stack_id, lease.number, lease.epoch, now + lease_s, stores=stores).scalar_one_or_none()
    if wakes is None:
        raise Superseded(f"shard {lease.stack_id}/{lease.number} has a newer owner than epoch {lease.epoch}")
    return int(wakes)


def renew_all(tx: Connection, leases: Collection[Lease], now: float, lease_s: float) -> None:
    """Lengthen these leases, where they are still held (heartbeat). A shard that somebody writes to is left out: nobody
    waits for one while it holds others, and there is another heartbeat soon."""
    for lease in leases:
        mine = (lease.stack_id, lease.number, lease.epoch)
        if _unwritten(tx, *mine).first() is not None:
            _keep_on(tx, *mine, now + lease_s, now)


@dataclass(frozen=True, slots=True)
class PassProgress:
    """How far a pass at this revision has come: of so many nodes so many are left; kept — of those that stay;
    priority — of the next pass, when nothing happens before."""

    revision: int
    nodes: int
    left: int
    kept: int
    priority: Priority = Priority.USER


def among(these: Sequence[tuple[str, int]]) -> ColumnElement[bool]:
    return tuple_(schema.shard.c.stack_id, schema.shard.c.number).in_(these)


def held(tx: Connection, leases: Collection[Lease], now: float) -> set[Lease]:
    """Those of these leases that have not run out."""
    table = schema.shard
    these = among(sorted((lease.stack_id, lease.number) for lease in leases))
    chosen = select(table.c.stack_id, table.c.number, table.c.epoch).where(these, table.c.lease_until > now)
    owned = {tuple(row) for row in tx.execute(chosen)}
    return {lease for lease in leases if (lease.stack_id, lease.number, lease.epoch) in owned}


def release(
    tx: Connection, lease: Lease, wakes: int, wake_at: float | None, reached: PassProgress | None = None
) -> bool:
    """Give the shard back, to be woken at `wake_at`; at once if it was woken since `wakes` was read.

    Gives False when a newer owner has it already; that is nobody's mistake.
    """
    mine = (lease.stack_id, lease.number, lease.epoch, wakes, wake_at)
    if reached is None:
        return _give_back(tx, *mine).first() is not None
    how_far = (reached.revision, reached.nodes, reached.left, reached.kept, int(reached.priority))
    return _give_back_at(tx, *mine, *how_far, moves=reached.left > 0).first() is not None


@prepared
def _give_back(stack_id: str, number: int, epoch: int, wakes: int, wake_at: float | None) -> UpdateBase:
    return _given_back(stack_id, number, epoch, wakes, wake_at, {})


@prepared
def _give_back_at(
    stack_id: str,
    number: int,
    epoch: int,
    wakes: int,
    wake_at: float | None,
    revision: int,
    nodes: int,
    left: int,
    kept: int,
    priority: int,
    *,
    moves: bool,
) -> UpdateBase:
    """`planned` and `done` change unless there is a newer revision, for which this counts nothing.

    What is gone is a node no more: while there is something left, what was planned before stays planned. moves — there
    is something left.
    """
    table = schema.shard
    newest = select(schema.stack.c.revision).where(schema.stack.c.id == stack_id).scalar_subquery()
    same: ColumnElement[bool] = newest == revision
    planned: Any = type_coerce(kept, Integer)
    if moves:
        planned = case((table.c.planned > nodes, table.c.planned), else_=nodes)
    else:  # at rest it may have been carried over to the next batch of its group just now
        same = or_(same, table.c.settled_revision == newest)
    values = {
        "planned": case((same, planned), else_=table.c.planned),
        "done": case((same, planned - left), else_=table.c.done),
        "priority": case((table.c.wakes == wakes, priority), else_=table.c.priority),
    }
    return _given_back(stack_id, number, epoch, wakes, wake_at, values)


def _given_back(
    stack_id: str, number: int, epoch: int, wakes: int, wake_at: float | None, values: Mapping[str, Any]
) -> UpdateBase:
    table = schema.shard
    again = case((table.c.wakes == wakes, wake_at), else_=table.c.wake_at)
    mine = update(table).where(*_owned(stack_id, number, epoch)).returning(table.c.number)
    return mine.values(owner=None, lease_until=0.0, reason="", crashes=0, wake_at=again, **values)


def acquit(tx: Connection, stack_id: str, number: int, now: float) -> None:
    """A worker that seemed to have ended in the middle of a pass over this shard has not: forget the crashes, and if
    the shard was set aside for them, ask for a pass now."""
    notices.due(tx)
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


def let_go(tx: Connection, stack_id: str, number: int, owner: str) -> None:
    """End this owner's lease, if it has one: it does not work on the shard. No pass is skipped by that."""
    table = schema.shard
    these = (table.c.stack_id == stack_id, table.c.number == number, table.c.owner == owner)
    tx.execute(update(table).where(*these).values(owner=None, lease_until=0.0))


def set_aside(tx: Connection, lease: Lease, reason: str, until: float) -> None:
    """After a bug of ours, or when its passes end their workers: keep the reason, and leave this shard alone until
    then; the rest runs on."""
    table = schema.shard
    tx.execute(
        update(table)
        .where(table.c.stack_id == lease.stack_id, table.c.number == lease.number, table.c.epoch == lease.epoch)
        .values(owner=None, lease_until=0.0, wake_at=until, reason=reason)
    )


def count_failures(tx: Connection, stack_id: str, number: int, more: int) -> None:
    """So many more resources of the shard are FAILED than were counted; others may count at the same time."""
    _count_failures(tx, stack_id, number, more)


@prepared
def _count_failures(stack_id: str, number: int, more: int) -> UpdateBase:
    table = schema.shard
    mine = (table.c.stack_id == stack_id, table.c.number == number)
    return update(table).where(*mine).values(failures=table.c.failures + more)


def failures_of(tx: Connection, stack_id: str) -> int:
    """How many resources of a stack are FAILED."""
    failures = select(func.sum(schema.shard.c.failures)).where(schema.shard.c.stack_id == stack_id)
    return int(tx.execute(failures).scalar() or 0)


def get(tx: Connection, stack_id: str, number: int) -> Row[Any] | None:
    return _get(tx, stack_id, number).first()


@prepared
def _get(stack_id: str, number: int) -> Select[Any]:
    table = schema.shard
    return select(table).where(table.c.stack_id == stack_id, table.c.number == number)


def settle(tx: Connection, stack_id: str, number: int, revision: int) -> None:
    """The shard is at rest at this revision."""
    _settle(tx, stack_id, number, revision)


@prepared
def _settle(stack_id: str, number: int, revision: int) -> UpdateBase:
    table = schema.shard
    return update(table).where(table.c.stack_id == stack_id, table.c.number == number).values(settled_revision=revision)


def of_stack(tx: Connection, stack_id: str) -> list[Row[Any]]:
    return list(tx.execute(select(schema.shard).where(schema.shard.c.stack_id == stack_id).order_by("number")))
