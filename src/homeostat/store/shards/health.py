"""Health checks of shards: when they are due, what was found of members, and what was recovered (ADR 0072).

Those who check need no lease: they take a shard by moving its `health_at`, as observers do with `observe_at`. One that
dies leaves its shards to others after `TAKEN_S`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Select,
    Text,
    UpdateBase,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from homeostat.clustering.decisions.states import OPEN
from homeostat.model.marks import Marks
from homeostat.model.member_names import is_companion
from homeostat.model.node_health import Finding, NodeHealth, RecoveryAction, StartedRecovery
from homeostat.model.status import Action, Status
from homeostat.planner.policies.reported import is_answered, report_of
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards.shards import is_any_of, is_checked
from homeostat.store.sql import lock_order, notices, typed
from homeostat.store.sql.prepared import prepared

TAKEN_S = 8.0
"""Time for which shards are taken; who needs longer takes them again before."""
HOUR_S, KEPT_S = 3600.0, 86_400.0
"""Time for which recoveries count for their rate, and for which they are kept."""
REMOVALS = ("CLUSTER_DEL_NODES", "CLUSTER_SCALE_IN", "NODE_DELETE")
"""Actions of the Clustering API that remove nodes, whatever they are asked for."""
BEGUN_MAX = 1000
"""Recoveries that are read, to see which of them have helped."""
Shard = tuple[str, int]
_check, _shard, _stack = schema.health_check, schema.shard, schema.stack
_node, _resource, _observed = schema.node_health, schema.resource, schema.resource_observed


@dataclass(frozen=True, slots=True)
class Check:
    """A health policy that holds for things of a stack.

    Attributes:
        name: Name of the resource; "" for all members of the group.
        spec: As the user sent it.
        cluster: Name of the cluster, or of the resource that is the group; "" for a single resource.
    """

    id: str
    name: str
    spec: Mapping[str, Any]
    cluster: str


# -- which policies hold --------------------------------------------------------------------------------------------


def attach(tx: Connection, values: Mapping[str, Any], now: float) -> None:
    """Have a policy hold for a resource of a stack, or for the members of that group.

    Args:
        tx: The transaction.
        values: The columns `id`, `stack_id`, `name`, `members`, `source`, `spec` and `enabled`.
        now: The time.
    """
    tx.execute(insert(_check).values(**values, created_at=now))
    cover(tx, values["stack_id"], now)


def switch(tx: Connection, source: str, *, enabled: bool, now: float) -> None:
    """Have the policies of a source hold, or not."""
    found = tx.execute(select(_check.c.stack_id).where(_check.c.source == source)).scalars().all()
    tx.execute(update(_check).where(_check.c.source == source).values(enabled=enabled))
    for stack_id in found:
        cover(tx, stack_id, now)


def detach(tx: Connection, source: str, now: float) -> None:
    """Have the policies of a source hold no more, and forget what they have found."""
    found = tx.execute(select(_check.c.stack_id).where(_check.c.source == source)).scalars().all()
    tx.execute(delete(_check).where(_check.c.source == source))
    for stack_id in found:
        cover(tx, stack_id, now)


def source_of(tx: Connection, stack_id: str, name: str) -> str | None:
    """Return what has made the policy that holds for a resource of a stack; None where none does."""
    conditions = (_check.c.stack_id == stack_id, _check.c.name == name)
    found = tx.execute(select(_check.c.source).where(*conditions)).scalar()
    return None if found is None else str(found)


def cover(tx: Connection, stack_id: str, now: float) -> None:
    """Have the shards of a stack, and of its groups, checked exactly if policies hold there; wake them.

    What was found there is forgotten: it was found by other policies than those that hold now.
    """
    near = or_(_stack.c.id == stack_id, _stack.c.parent_id == stack_id)
    nearby = select(_stack.c.id).where(near)
    lock_order.take_shards(tx, _shard.c.stack_id.in_(nearby))
    holds = is_checked(_shard.c.stack_id)
    here = _shard.c.stack_id.in_(nearby)
    tx.execute(update(_shard).where(here, holds).values(health_at=now, health_from=now))
    gone = update(_shard).where(here, ~holds).values(health_at=None, health_from=None, health_looked_at=None)
    tx.execute(gone)
    tx.execute(delete(_node).where(_node.c.stack_id.in_(nearby)))
    tx.execute(delete(schema.vantage_look).where(schema.vantage_look.c.stack_id.in_(nearby)))
    # Of a policy that is only switched off it is still known which hosts it has declared down.
    none_left = ~exists().where(_check.c.stack_id == stack_id)
    tx.execute(delete(schema.declared_host).where(schema.declared_host.c.stack_id.in_(nearby), none_left))
    values = {"wake_at": now, "wakes": _shard.c.wakes + 1}
    tx.execute(update(_shard).where(here, _shard.c.crashes == 0).values(**values))
    notices.mark_due(tx)


def checks_of(tx: Connection, stack_ids: Sequence[str]) -> dict[str, list[Check]]:
    """Return the policies that hold for things of these stacks."""
    found: dict[str, list[Check]] = {}
    for stack_id, name, check_name, *values in _checks_of(tx, list(stack_ids)):
        one = Check(values[0], name if check_name else "", values[1], "" if check_name else (values[2] or name))
        found.setdefault(stack_id, []).append(one)
    return found


@prepared
def _checks_of(stack_ids: Sequence[str]) -> Select[Any]:
    group = and_(_check.c.stack_id == _stack.c.parent_id, _check.c.name == _stack.c.parent_name)
    inside = and_(_check.c.members, group)
    of_one = and_(~_check.c.members, _check.c.stack_id == _stack.c.id)
    columns = (_stack.c.id, _check.c.name, of_one.label("is_of_one"), _check.c.id, _check.c.spec, schema.cluster.c.name)
    joined = _stack.join(_check, or_(inside, of_one)).outerjoin(
        schema.cluster, schema.cluster.c.id == _check.c.stack_id
    )
    alive = (_stack.c.deleted_at.is_(None), _check.c.enabled)
    return select(*columns).select_from(joined).where(_stack.c.id.in_(stack_ids), *alive)


# -- rounds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Taken:
    """A shard whose members are to be looked at.

    Attributes:
        whole: Whether all are due; else only URLs are asked again.
        next_at: When the next whole look is due, where this is none.
    """

    stack_id: str
    number: int
    project: str
    whole: bool
    next_at: float


def take(tx: Connection, now: float, limit: int) -> list[Taken]:
    """Take shards that are due, for `TAKEN_S` seconds."""
    found = [
        Taken(row[0], row[1], row[2], row[3] is None or row[3] <= now, row[3] or now) for row in _due(tx, now, limit)
    ]
    if found:
        these = sorted((each.stack_id, each.number) for each in found)
        lock_order.take(tx, these)
        _take(tx, these, now + TAKEN_S)
    return found


@prepared
def _take(these: Sequence[Shard], until: float) -> UpdateBase:
    return update(_shard).where(is_any_of(these), _shard.c.health_at.is_not(None)).values(health_at=until)


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    columns = (_shard.c.stack_id, _shard.c.number, _shard.c.project, _shard.c.health_from)
    chosen = select(*columns).where(_shard.c.health_at <= now).order_by(_shard.c.health_at).limit(limit)
    return chosen.with_for_update(skip_locked=True)


def keep(tx: Connection, these: Collection[Shard], before: float, until: float) -> None:
    """Take shards for longer that were taken until `before`; those of which another look was requested stay due."""
    lock_order.take(tx, sorted(these))
    _keep(tx, sorted(these), before, until)


@prepared
def _keep(these: Sequence[Shard], before: float, until: float) -> UpdateBase:
    return update(_shard).where(is_any_of(these), _shard.c.health_at == before).values(health_at=until)


def paused(tx: Connection, stack_ids: Collection[str]) -> set[str]:
    """Return the stacks of groups whose health checks are off, since a user removes members."""
    found = {each.stack_id for each in _leaving(tx, list(stack_ids)) if not is_companion(each.name)}
    return found | set(_removing(tx, list(stack_ids)).scalars())


@prepared
def _leaving(stack_ids: Sequence[str]) -> Select[Any]:
    """Select the rows that are being deleted in stacks that are being changed."""
    row = _resource.c
    leaving = (row.action == Action.DELETE, row.status == Status.IN_PROGRESS, row.replaced_by.is_(None))
    acting = (_stack.c.status == Status.IN_PROGRESS, _stack.c.action != Action.DELETE)
    in_stack = select(row.stack_id, row.name).join(_stack, _stack.c.id == row.stack_id)
    return in_stack.where(row.stack_id.in_(stack_ids), *leaving, *acting)


@prepared
def _removing(stack_ids: Sequence[str]) -> Select[Any]:
    """Select the stacks of clusters with open actions that remove nodes."""
    action = schema.action
    removing = (action.c.action.in_(REMOVALS), action.c.status.in_(OPEN), action.c.cluster_id == _stack.c.parent_id)
    return select(_stack.c.id).where(_stack.c.id.in_(stack_ids), exists().where(*removing))


def pause(tx: Connection, shard: Shard, now: float, at: float) -> None:
    """Have a shard looked at anew, as if it never was, from a time on; a look that has begun does not count.

    Args:
        tx: The transaction, which has locked the shard.
        shard: The shard.
        now: The time.
        at: When it is due.
    """
    this = (_shard.c.stack_id == shard[0], _shard.c.number == shard[1], _shard.c.health_at.is_not(None))
    tx.execute(update(_shard).where(*this).values(health_at=at, health_from=now, health_looked_at=None))


def release(tx: Connection, shard: Shard, until: float, at: float, next_at: float, looked_at: float | None) -> None:
    """Give a shard back; one of which another look was requested meanwhile stays due.

    Args:
        tx: The transaction, which has locked the shard.
        shard: The shard.
        until: Until when it was taken.
        at: When it is due next.
        next_at: When its next whole look is due.
        looked_at: When this look began, if it was one at everything.
    """
    stack_id, number = shard
    if looked_at is not None:
        _note_look(tx, stack_id, number, looked_at)
    _release(tx, stack_id, number, until, at, next_at)


@prepared
def _note_look(stack_id: str, number: int, looked_at: float) -> UpdateBase:
    """Update when a look at everything began, unless another look was requested after that."""
    this = (_shard.c.stack_id == stack_id, _shard.c.number == number, _shard.c.health_at.is_not(None))
    counts = or_(
        _shard.c.health_looked_at.is_not(None), _shard.c.health_from.is_(None), _shard.c.health_from <= looked_at
    )
    return update(_shard).where(*this, counts).values(health_looked_at=looked_at)


@prepared
def _release(stack_id: str, number: int, until: float, at: float, next_at: float) -> UpdateBase:
    # The exact time marks the shard as taken here: any other one was set by a request, or by who took it next.
    still_taken = _shard.c.health_at == until
    this = (_shard.c.stack_id == stack_id, _shard.c.number == number, still_taken)
    return update(_shard).where(*this).values(health_at=at, health_from=next_at)


def uncover(tx: Connection, shard: Shard, until: float) -> None:
    """Have a shard checked no more that was taken until this time, from no place."""
    this = (_shard.c.stack_id == shard[0], _shard.c.number == shard[1], _shard.c.health_at == until)
    taken = tx.execute(update(_shard).where(*this).values(health_at=None, health_from=None, health_looked_at=None))
    if taken.rowcount:  # a place where no worker is any more would never take its looks away
        look = schema.vantage_look.c
        tx.execute(delete(schema.vantage_look).where(look.stack_id == shard[0], look.number == shard[1]))


def hurry(tx: Connection, these: Collection[Shard], now: float) -> None:
    """Have everything in these shards looked at now, as far as policies hold there."""
    notices.mark_due(tx)
    _hurry(tx, sorted(these), now)


@prepared
def _hurry(these: Sequence[Shard], now: float) -> UpdateBase:
    later = case((_shard.c.health_at > now, now), else_=_shard.c.health_at)
    conditions = (is_any_of(these), _shard.c.health_at.is_not(None))
    return update(_shard).where(*conditions).values(health_at=later, health_from=now)


# -- members ---------------------------------------------------------------------------------------------------------


class WatchedMember(NamedTuple):
    """A resource that stands for its name, with what was seen of it, its node in a cluster, and its health.

    Attributes:
        presence, object, seen_at, seen_reason: The newest observation; None for none yet.
        node_id, node_name, cluster_id: The node; None outside clusters.
        health: What was found; None for nothing yet.
    """

    key: str
    stack_id: str
    shard: int
    name: str
    type: str
    handle: str
    action: str
    status: str
    reason: str
    created_at: float
    updated_at: float
    marks: Marks | None
    version: int
    presence: str | None
    object: Any | None
    seen_at: float | None
    seen_reason: str | None
    node_id: str | None
    node_name: str | None
    cluster_id: str | None
    health: NodeHealth | None


def members_of(tx: Connection, these: Sequence[Shard]) -> list[WatchedMember]:
    """Return the resources of shards that stand for their names, with what was seen and found of each."""
    return list(typed.rows(WatchedMember, _members(tx, list(these))))


@prepared
def _members(these: Sequence[Shard]) -> Select[Any]:
    row, seen = _resource.c, _observed.c
    of_row = (row.key, row.stack_id, row.shard, row.name, row.type, row.handle, row.action, row.status, row.reason)
    more = (row.created_at, row.updated_at, row.marks, row.version)
    of_look = (seen.presence, seen.object, seen.seen_at, seen.reason.label("seen_reason"))
    node = schema.node
    condition = and_(node.c.stack_id == _stack.c.parent_id, cast(node.c.number, Text) == row.name)
    of_node = (node.c.id.label("node_id"), node.c.name.label("node_name"), node.c.cluster_id)
    joined = _resource.join(_stack, _stack.c.id == row.stack_id)
    joined = joined.outerjoin(_observed, seen.key == row.key).outerjoin(_node, _node.c.key == row.key)
    joined = joined.outerjoin(node, condition)
    here = tuple_(row.stack_id, row.shard).in_(these)
    stands = (row.replaced_by.is_(None), row.action != Action.DELETE, row.external_id.is_(None))
    return select(*of_row, *more, *of_look, *of_node, _node.c.health).select_from(joined).where(here, *stands)


def store(db: Database, tx: Connection, found: Sequence[tuple[str, str, int, NodeHealth]]) -> None:
    """Store what was found of members, each as row key, stack, shard and health; those whose row is gone are left out.

    The caller has locked the shards.
    """
    keys = [each[0] for each in found]
    there = set(_there(tx, keys).scalars())
    rows = [
        {
            "key": key,
            "stack_id": stack_id,
            "shard": shard,
            "finding": health.finding.value,
            "again_at": health.again_at,
            "health": health,
        }
        for key, stack_id, shard, health in found
        if key in there
    ]
    if rows:
        new = db.insert(_node)
        changed = {name: new.excluded[name] for name in ("finding", "again_at", "health")}
        tx.execute(new.on_conflict_do_update(index_elements=["key"], set_=changed), rows)


@prepared
def _there(keys: Sequence[str]) -> Select[Any]:
    return select(_resource.c.key).where(_resource.c.key.in_(keys))


def of_shard(tx: Connection, stack_id: str, number: int) -> dict[str, NodeHealth]:
    """Return what was found of the members of a shard, by row key."""
    return {row[0]: row[1] for row in _of_shard(tx, stack_id, number)}


@prepared
def _of_shard(stack_id: str, number: int) -> Select[Any]:
    return select(_node.c.key, _node.c.health).where(_node.c.stack_id == stack_id, _node.c.shard == number)


def of_rows(tx: Connection, keys: Collection[str]) -> dict[str, NodeHealth]:
    """Return what was found of these resources, by row key."""
    chosen = select(_node.c.key, _node.c.health).where(_node.c.key.in_(keys))
    return {row[0]: row[1] for row in tx.execute(chosen)} if keys else {}


def counts(tx: Connection, stack_id: str, now: float) -> tuple[int, int]:
    """Return how many members of a stack are unhealthy, and how many recoveries have begun in the last hour."""
    marked: list[Marks] = list(_marks(tx, stack_id).scalars())
    reported = sum(report_of(marks, now) is not None and not is_answered(marks) for marks in marked)
    one, other = _counts(tx, stack_id, now - HOUR_S).one()
    return int(one) + reported, int(other)


@prepared
def _counts(stack_id: str, since: float) -> Select[Any]:
    # What goes, or has a successor, is no member any more.
    row, log = _resource.c, schema.recovery
    stands = (row.key == _node.c.key, row.replaced_by.is_(None), row.action != Action.DELETE.value)
    found = (_node.c.stack_id == stack_id, _node.c.finding == Finding.UNHEALTHY.value)
    unhealthy = select(func.count()).select_from(_node).where(*found, *stands)
    lately = select(func.count()).where(log.c.stack_id == stack_id, log.c.at > since, log.c.begins)
    return select(unhealthy.scalar_subquery(), lately.scalar_subquery())


@prepared
def _marks(stack_id: str) -> Select[Any]:
    """Select the marks of members that no look finds unhealthy."""
    row = _resource.c
    stands = (row.stack_id == stack_id, row.replaced_by.is_(None), row.action != Action.DELETE.value)
    chosen = select(row.marks).select_from(_node.join(_resource, row.key == _node.c.key))
    return chosen.where(*stands, row.marks.is_not(None), _node.c.finding != Finding.UNHEALTHY.value)


def begun(tx: Connection, stack_id: str, now: float) -> list[StartedRecovery]:
    """Return the recoveries of members that have begun in the last hour; the newest 1,000."""
    log = schema.recovery.c
    chosen = select(log.name, log.at, log.host).where(log.stack_id == stack_id, log.at > now - HOUR_S, log.begins)
    return [
        StartedRecovery(name, float(at), host or "")
        for name, at, host in tx.execute(chosen.order_by(log.at.desc()).limit(BEGUN_MAX))
    ]


def note_recoveries(tx: Connection, stack_id: str, begun: Sequence[RecoveryAction], now: float) -> None:
    """Note actions of recoveries that begin, see `shard_state.Writes`; forget old ones."""
    log = schema.recovery
    tx.execute(delete(log).where(log.c.stack_id == stack_id, log.c.at < now - KEPT_S))
    tx.execute(
        insert(log),
        [{"stack_id": stack_id, "at": now, **each._asdict()} for each in begun],
    )
