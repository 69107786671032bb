"""Shards as units of ownership: leases with epochs, wake-ups, observation times (laws 1 and 4)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from homeostat.model.errors import Superseded
from homeostat.model.plan import Priority
from homeostat.model.status import Action, Status
from homeostat.model.world import look_interval
from homeostat.store import notices, schema
from homeostat.store.database import Database

USER, HEAL, ROLLOUT, DRIFT, GARBAGE = Priority
PATIENCE_S = 10.0
"""Time after which healing goes as first as what users wait for; less urgent work waits for its multiples."""


ENSURED = 500
"""Shards that one statement makes."""
TAKEN_S = 5.0
"""An observer that dies holds up the looks at the shards it had taken for so long."""


CRASHES_MAX, CRASH = 6, 3
"""A claim that finds an owner who never gave the shard back counts a crash: 1 where that one had stored something, and
so came further than the one before, otherwise `CRASH`. A shard is set aside at so many in a row: after two passes
that ended with their worker at the same point; who kills workers at any time does not get there. It is tried again
later and later, and at once for a new revision."""


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


_OWNED = (
    schema.shard.c.stack_id == bindparam("mine"),
    schema.shard.c.number == bindparam("place"),
    schema.shard.c.epoch == bindparam("held"),
)
_RENEW = (
    update(schema.shard)
    .where(*_OWNED)
    .values(lease_until=bindparam("until"), stored=schema.shard.c.epoch)
    .returning(schema.shard.c.wakes)
)
_KEEP_ON = (
    update(schema.shard)
    .where(*_OWNED, schema.shard.c.lease_until > bindparam("now"))
    .values(lease_until=bindparam("until"))
)


def ensure(db: Database, tx: Connection, stack_id: str, project: str, count: int) -> None:
    """Make sure that shards 0 … count-1 exist."""
    new = db.insert(schema.shard).on_conflict_do_nothing()
    one = {"stack_id": stack_id, "project": project, "priority": USER}
    for start in range(0, count, ENSURED):
        tx.execute(new, [{**one, "number": number} for number in range(start, min(start + ENSURED, count))])


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
    table = schema.shard
    where = [table.c.stack_id == stack_id]
    if unsettled_at is not None:
        where.append(table.c.settled_revision < unsettled_at)
    if numbers is not None:
        where.append(table.c.number.in_(numbers))
    values = _woken(at, priority)
    if restart_at is not None:
        values |= {"crashes": 0, "wake_at": _sooner(at)}
        values["done"] = case((table.c.settled_revision < restart_at, 0), else_=table.c.done)
    return tx.execute(update(table).where(*where).values(**values)).rowcount


def wake_all(tx: Connection, stacks: ColumnElement[Any] | Sequence[str], at: float, priority: int) -> None:
    """Ask for a pass over each shard of these stacks."""
    notices.due(tx)
    table = schema.shard
    tx.execute(update(table).where(table.c.stack_id.in_(stacks)).values(**_woken(at, priority)))


def wake_unsettled(tx: Connection, stack_id: str, at: float, priority: int, revision: int) -> None:
    """Wake the shards that are not at rest at a new revision; where there is none, the first, which finds that out."""
    if not wake(tx, stack_id, at, priority, unsettled_at=revision, restart_at=revision):
        wake(tx, stack_id, at, priority, [0])


def _woken(at: float, priority: int) -> dict[str, Any]:
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
            table.c.number.not_in(sorted(touched)),
        )
        .values(settled_revision=revision)
    )


def due(tx: Connection, now: float, limit: int) -> list[Row[Any]]:
    """Shards with work to do and no living owner, in fair order (CV17): the most urgent first; then each project in
    turn, those later that have shards being worked on; of one project each root stack in turn, likewise; of one root
    stack with all that is nested in it what is being deleted, then the oldest wake-up.

    However many of them one project has, every other one has its turn within the first few, and so has every other
    stack of that project; and what is not urgent becomes so when it has waited. A deletion does not wait for what it is
    about to end.
    """
    return list(tx.execute(_DUE, {"now": now, "shards_max": limit}))


def _due() -> Select[Any]:
    """Built once: every worker asks all the time, and building it takes longer than the answer."""
    table, stack = schema.shard, schema.stack
    now: ColumnElement[float] = bindparam("now", type_=Float)
    urgency = case((table.c.wake_at <= now - PATIENCE_S * table.c.priority, int(USER)), else_=table.c.priority)
    ending = and_(stack.c.action == Action.DELETE, stack.c.status == Status.IN_PROGRESS)
    columns = [table.c[name] for name in ("stack_id", "number", "project", "wake_at", "priority")]
    in_tree = func.row_number().over(
        partition_by=(stack.c.root_id, urgency),
        order_by=(case((ending, 0), else_=1), table.c.wake_at, table.c.stack_id, table.c.number),
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
        .limit(bindparam("shards_max"))
    )


_DUE = _due()


def any_due(tx: Connection, now: float) -> bool:
    """Can any shard be claimed now?"""
    table = schema.shard
    chosen = select(table.c.number).where(table.c.wake_at <= now, table.c.lease_until <= now).limit(1)
    return tx.execute(chosen).first() is not None


def due_in(tx: Connection, now: float, within_s: float) -> float:
    """Seconds until a shard can be claimed: 0 where one can be now, at most `within_s`."""
    if any_due(tx, now):
        return 0.0
    table = schema.shard
    at = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
    first = tx.execute(select(func.min(at)).where(table.c.wake_at <= now + within_s)).scalar_one()
    return within_s if first is None else min(max(first - now, 0.0), within_s)


def look_due_in(tx: Connection, now: float, within_s: float) -> float:
    """Seconds until a shard is to be looked at: 0 where one is now, at most `within_s`."""
    first = tx.execute(select(func.min(schema.shard.c.observe_at))).scalar_one()
    return within_s if first is None else min(max(first - now, 0.0), within_s)


def claim(tx: Connection, stack_id: str, number: int, owner: str, now: float, lease_s: float) -> Lease | None:
    """Own the shard for `lease_s` seconds, with a new epoch; None when another one was faster.

    Also None while somebody is writing to its row: one locked shard does not hold up the rest.
    """
    table = schema.shard
    this = and_(table.c.stack_id == stack_id, table.c.number == number)
    free = and_(this, table.c.wake_at <= now, table.c.lease_until <= now)
    known = select(table.c.owner, table.c.epoch, table.c.stored).where(free)
    last = tx.execute(known.with_for_update(skip_locked=True)).first()
    if last is None:
        return None
    ended = last.owner not in (None, owner)  # one that finds its own claim has merely lost its connection
    crash = 0 if not ended else 1 if last.stored == last.epoch else CRASH
    row = tx.execute(
        update(table)
        .where(free)
        .values(epoch=table.c.epoch + 1, owner=owner, lease_until=now + lease_s, crashes=table.c.crashes + crash)
        .returning(table.c.epoch, table.c.wakes, table.c.crashes)
    ).first()
    if row is None:
        return None
    return Lease(stack_id, number, row.epoch, row.wakes, now + lease_s, row.crashes if crash else 0)


def renew(tx: Connection, lease: Lease, now: float, lease_s: float) -> int:
    """Check the epoch, lengthen the lease, and give the count of wake-ups. Fails: Superseded for a stale owner."""
    this = {"mine": lease.stack_id, "place": lease.number, "held": lease.epoch}
    wakes = tx.execute(_RENEW, {**this, "until": now + lease_s}).scalar_one_or_none()
    if wakes is None:
        raise Superseded(f"shard {lease.stack_id}/{lease.number} has a newer owner than epoch {lease.epoch}")
    return int(wakes)


def renew_all(tx: Connection, leases: Collection[Lease], now: float, lease_s: float) -> None:
    """Lengthen these leases, where they are still held (heartbeat)."""
    for lease in leases:
        this = {"mine": lease.stack_id, "place": lease.number, "held": lease.epoch}
        tx.execute(_KEEP_ON, {**this, "until": now + lease_s, "now": now})


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a pass at this revision has come: of so many nodes so many are left; kept — of those that stay;
    priority — of the next pass, when nothing happens before."""

    revision: int
    nodes: int
    left: int
    kept: int
    priority: Priority = Priority.USER


def held(tx: Connection, leases: Collection[Lease], now: float) -> set[Lease]:
    """Those of these leases that have not run out."""
    table = schema.shard
    these = _among([(lease.stack_id, lease.number) for lease in leases])
    chosen = select(table.c.stack_id, table.c.number, table.c.epoch).where(these, table.c.lease_until > now)
    owned = {tuple(row) for row in tx.execute(chosen)}
    return {lease for lease in leases if (lease.stack_id, lease.number, lease.epoch) in owned}


def release(tx: Connection, lease: Lease, wakes: int, wake_at: float | None, reached: Reached | None = None) -> bool:
    """Give the shard back, to be woken at `wake_at`; at once if it was woken since `wakes` was read.

    Gives False when a newer owner has it already; that is nobody's mistake.
    """
    table = schema.shard
    values: dict[str, Any] = {
        "owner": None,
        "lease_until": 0.0,
        "reason": "",
        "crashes": 0,
        "wake_at": case((table.c.wakes == wakes, wake_at), else_=table.c.wake_at),
    }
    if reached is not None:
        values |= _progress(lease, reached)
        values["priority"] = case((table.c.wakes == wakes, reached.priority), else_=table.c.priority)
    found = tx.execute(
        update(table)
        .where(table.c.stack_id == lease.stack_id, table.c.number == lease.number, table.c.epoch == lease.epoch)
        .values(**values)
        .returning(table.c.number)
    ).first()
    return found is not None


def _progress(lease: Lease, reached: Reached) -> dict[str, Any]:
    """Columns `planned` and `done`, unless there is a newer revision, for which this counts nothing.

    What is gone is a node no more: while there is something left, what was planned before stays planned.
    """
    table = schema.shard
    newest = select(schema.stack.c.revision).where(schema.stack.c.id == lease.stack_id).scalar_subquery()
    planned: Any = literal(reached.kept)
    if reached.left:
        planned = case((table.c.planned > reached.nodes, table.c.planned), else_=reached.nodes)
    same: ColumnElement[bool] = newest == reached.revision
    if not reached.left:  # at rest it may have been carried over to the next batch of its group just now
        same = or_(same, table.c.settled_revision == newest)
    return {
        "planned": case((same, planned), else_=table.c.planned),
        "done": case((same, planned - reached.left), else_=table.c.done),
    }


def set_aside(tx: Connection, lease: Lease, reason: str, until: float) -> None:
    """After a bug of ours, or when its passes end their workers: keep the reason, and leave this shard alone until
    then; the rest runs on."""
    table = schema.shard
    tx.execute(
        update(table)
        .where(table.c.stack_id == lease.stack_id, table.c.number == lease.number, table.c.epoch == lease.epoch)
        .values(owner=None, lease_until=0.0, wake_at=until, reason=reason)
    )


def take_for_observation(tx: Connection, now: float, limit: int, again_s: float) -> dict[tuple[str, int], float | None]:
    """Shards whose things are to be looked at now -> seconds until the next look, None for never. Each is held by one
    observer for TAKEN_S seconds; then it has said when to look again, or another one looks.

    again_s — time until then, where the stack has no wish of its own.
    """
    table, stack = schema.shard, schema.stack
    chosen = (
        select(table.c.stack_id, table.c.number, stack.c.observe_s, stack.c.exceptions)
        .join(stack, stack.c.id == table.c.stack_id)
        .where(table.c.observe_at <= now)
        .order_by(table.c.observe_at)
        .limit(limit)
        .with_for_update(skip_locked=True, of=table)
    )
    found = {(row.stack_id, row.number): row for row in tx.execute(chosen)}
    if found:
        tx.execute(update(table).where(_among(found)).values(observe_at=now + TAKEN_S))
    return {shard: look_interval(row.observe_s, row.exceptions, again_s) for shard, row in found.items()}


def look_again(tx: Connection, taken: Collection[tuple[str, int]], taken_at: float, at: float | None) -> None:
    """Let go of shards taken at that time: their next look is at time `at`. Who has asked for another one meanwhile
    gets it."""
    table = schema.shard
    held = (_among(taken), table.c.observe_at == taken_at + TAKEN_S)
    tx.execute(update(table).where(*held).values(observe_at=at))


def _among(these: Collection[tuple[str, int]]) -> ColumnElement[bool]:
    return tuple_(schema.shard.c.stack_id, schema.shard.c.number).in_(sorted(these))


def _within(
    stacks: ColumnElement[Any] | Sequence[str], numbers: Sequence[int] | None = None
) -> list[ColumnElement[bool]]:
    table = schema.shard
    some = [] if numbers is None else [table.c.number.in_(numbers)]
    return [table.c.stack_id.in_(stacks), *some]


def looked(tx: Connection, seen: Collection[tuple[str, int]], at: float) -> None:
    """All things of these shards were looked at, at this time or later; where somebody waits for that, the shard is
    woken."""
    if not seen:
        return
    table = schema.shard
    these = _among(seen)
    waits = and_(table.c.look_from <= at, table.c.look_from >= func.coalesce(table.c.looked_at, 0.0))
    if tx.execute(update(table).where(these, waits).values(**_woken(at, USER))).rowcount:
        notices.due(tx)
    tx.execute(update(table).where(these).values(looked_at=at, blind=""))


def not_seen(tx: Connection, blind: Collection[tuple[str, int]], reason: str) -> None:
    """Their things could not be looked at."""
    table = schema.shard
    if blind:
        these = _among(blind)
        tx.execute(update(table).where(these).values(blind=reason))


def ask_to_look(
    tx: Connection, stacks: ColumnElement[Any] | Sequence[str], at: float, numbers: Sequence[int] | None = None
) -> None:
    """Have these stacks looked at as soon as possible; they are woken when that was done, after this time.

    numbers — only these shards.
    """
    notices.due(tx)
    table = schema.shard
    sooner = case((table.c.observe_at < at, table.c.observe_at), else_=at)
    tx.execute(update(table).where(*_within(stacks, numbers)).values(look_from=at, observe_at=sooner))


def looked_at(
    tx: Connection, stacks: ColumnElement[Any] | Sequence[str], numbers: Sequence[int] | None = None
) -> tuple[float | None, str]:
    """Since when all of these stacks was looked at, None: some of it never was; and why some of it cannot be.

    numbers — only these shards.
    """
    table = schema.shard
    oldest = func.min(func.coalesce(table.c.looked_at, 0.0))
    row = tx.execute(select(oldest, func.max(table.c.blind)).where(*_within(stacks, numbers))).one()
    return row[0] or None, row[1] or ""


def observe_at(tx: Connection, stack_id: str, number: int, at: float | None) -> None:
    """Ask for a look at time `at`, or earlier if one was asked for already; None: there is nothing to look at, but
    whoever waits for a look gets it."""
    table = schema.shard
    waits = table.c.look_from > func.coalesce(table.c.looked_at, 0.0)
    known = table.c.observe_at < at if at is not None else waits
    sooner = case((known, table.c.observe_at), else_=at)
    tx.execute(update(table).where(table.c.stack_id == stack_id, table.c.number == number).values(observe_at=sooner))


def count_failures(tx: Connection, stack_id: str, number: int, more: int) -> None:
    """So many more resources of the shard are FAILED than were counted; others may count at the same time."""
    table = schema.shard
    mine = (table.c.stack_id == stack_id, table.c.number == number)
    tx.execute(update(table).where(*mine).values(failures=table.c.failures + more))


def failures_of(tx: Connection, stack_id: str) -> int:
    """How many resources of a stack are FAILED."""
    failures = select(func.sum(schema.shard.c.failures)).where(schema.shard.c.stack_id == stack_id)
    return int(tx.execute(failures).scalar() or 0)


def get(tx: Connection, stack_id: str, number: int) -> Row[Any] | None:
    table = schema.shard
    return tx.execute(select(table).where(table.c.stack_id == stack_id, table.c.number == number)).first()


def of_stack(tx: Connection, stack_id: str) -> list[Row[Any]]:
    return list(tx.execute(select(schema.shard).where(schema.shard.c.stack_id == stack_id).order_by("number")))
