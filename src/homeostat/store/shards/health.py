"""Health checks of shards: their schedule, the findings about members, and the recoveries (ADR 0072).

Workers that check need no lease: they take a shard by moving its `health_at`, as observers do with `observe_at`. If a
worker dies, its shards become free after `TAKEN_S`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
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
from homeostat.store.database import Transaction
from homeostat.store.shards.shards import is_any_of, is_checked
from homeostat.store.sql import lock_order, notices, typed
from homeostat.store.sql.prepared import prepared

TAKEN_S = 8.0
"""Time for which shards are taken; a worker that needs longer takes them again in time."""
HOUR_S, KEPT_S = 3600.0, 86_400.0
"""Time for which recoveries count for their rate, and for which they are stored."""
REMOVALS = ("CLUSTER_DEL_NODES", "CLUSTER_SCALE_IN", "NODE_DELETE")
"""Actions of the Clustering API that remove nodes, whatever their inputs."""
BEGUN_MAX = 1000
"""Number of recoveries that are read, to see which of them have helped."""
Shard = tuple[str, int]
_check, _shard, _stack = schema.health_check, schema.shard, schema.stack
_node, _resource, _observed = schema.node_health, schema.resource, schema.resource_observed


@dataclass(frozen=True, slots=True)
class Check:
    """A health policy that applies to resources of a stack.

    Attributes:
        name: Name of the resource; "" for all members of the group.
        spec: As sent by the user.
        cluster: Name of the cluster, or of the group resource; "" for a single resource.
    """

    id: str
    name: str
    spec: Mapping[str, Any]
    cluster: str


# -- which policies apply ---------------------------------------------------------------------------------------------


def attach(tx: Transaction, values: Mapping[str, Any], now: float) -> None:
    """Apply a policy to a resource of a stack, or to the members of that group.

    Args:
        values: The columns `id`, `stack_id`, `name`, `members`, `source`, `spec` and `enabled`.
    """
    tx.execute(insert(_check).values(**values, created_at=now))
    cover(tx, values["stack_id"], now)


def switch(tx: Transaction, source: str, *, enabled: bool, now: float) -> None:
    """Switch the policies of a source on or off."""
    stack_ids = tx.execute(select(_check.c.stack_id).where(_check.c.source == source)).scalars().all()
    tx.execute(update(_check).where(_check.c.source == source).values(enabled=enabled))
    for stack_id in stack_ids:
        cover(tx, stack_id, now)


def detach(tx: Transaction, source: str, now: float) -> None:
    """Delete the policies of a source, and their findings."""
    stack_ids = tx.execute(select(_check.c.stack_id).where(_check.c.source == source)).scalars().all()
    tx.execute(delete(_check).where(_check.c.source == source))
    for stack_id in stack_ids:
        cover(tx, stack_id, now)


def source_of(tx: Transaction, stack_id: str, name: str) -> str | None:
    """Return the source of the policy for a resource of a stack; None if no policy applies."""
    conditions = (_check.c.stack_id == stack_id, _check.c.name == name)
    source = tx.execute(select(_check.c.source).where(*conditions)).scalar()
    return None if source is None else str(source)


def cover(tx: Transaction, stack_id: str, now: float) -> None:
    """Have the shards of a stack, and of its groups, checked exactly if policies apply to them; wake these shards.

    Old findings are deleted: they are results of other policies than the present ones.
    """
    near = or_(_stack.c.id == stack_id, _stack.c.parent_id == stack_id)
    nearby = select(_stack.c.id).where(near)
    lock_order.take_shards(tx, _shard.c.stack_id.in_(nearby))
    holds = is_checked(_shard.c.stack_id)
    here = _shard.c.stack_id.in_(nearby)
    tx.execute(update(_shard).where(here, holds).values(health_at=now, health_from=now))
    unchecked = update(_shard).where(here, ~holds).values(health_at=None, health_from=None, health_looked_at=None)
    tx.execute(unchecked)
    tx.execute(delete(_node).where(_node.c.stack_id.in_(nearby)))
    tx.execute(delete(schema.vantage_look).where(schema.vantage_look.c.stack_id.in_(nearby)))
    # A policy that is only switched off remembers the hosts declared down by its fences.
    none_left = ~exists().where(_check.c.stack_id == stack_id)
    tx.execute(delete(schema.declared_host).where(schema.declared_host.c.stack_id.in_(nearby), none_left))
    values = {"wake_at": now, "wakes": _shard.c.wakes + 1}
    tx.execute(update(_shard).where(here, _shard.c.crashes == 0).values(**values))
    notices.mark_due(tx)


def checks_of(tx: Transaction, stack_ids: Sequence[str]) -> dict[str, list[Check]]:
    """Return the policies that apply to resources of these stacks."""
    checks: dict[str, list[Check]] = {}
    for stack_id, name, check_name, *values in _checks_of(tx, list(stack_ids)):
        check = Check(values[0], name if check_name else "", values[1], "" if check_name else (values[2] or name))
        checks.setdefault(stack_id, []).append(check)
    return checks


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
    """A shard whose members are to be checked.

    Attributes:
        whole: Whether all members are due; otherwise only URLs are requested again.
        next_at: When the next whole look is due, unless this is a whole look.
    """

    stack_id: str
    number: int
    project: str
    whole: bool
    next_at: float


def take(tx: Transaction, now: float, limit: int) -> list[Taken]:
    """Take due shards, for `TAKEN_S` seconds."""
    taken = [
        Taken(row[0], row[1], row[2], row[3] is None or row[3] <= now, row[3] or now) for row in _due(tx, now, limit)
    ]
    if taken:
        these = sorted((shard.stack_id, shard.number) for shard in taken)
        lock_order.take(tx, these)
        _take(tx, these, now + TAKEN_S)
    return taken


@prepared
def _take(these: Sequence[Shard], until: float) -> UpdateBase:
    return update(_shard).where(is_any_of(these), _shard.c.health_at.is_not(None)).values(health_at=until)


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    columns = (_shard.c.stack_id, _shard.c.number, _shard.c.project, _shard.c.health_from)
    chosen = select(*columns).where(_shard.c.health_at <= now).order_by(_shard.c.health_at).limit(limit)
    return chosen.with_for_update(skip_locked=True)


def keep(tx: Transaction, these: Collection[Shard], before: float, until: float) -> None:
    """Extend the time of shards taken until `before`; shards with a new request for a look stay due."""
    lock_order.take(tx, sorted(these))
    _keep(tx, sorted(these), before, until)


@prepared
def _keep(these: Sequence[Shard], before: float, until: float) -> UpdateBase:
    return update(_shard).where(is_any_of(these), _shard.c.health_at == before).values(health_at=until)


def paused(tx: Transaction, stack_ids: Collection[str]) -> set[str]:
    """Return the groups' stacks whose health checks are off since a user removes members."""
    leaving = {row.stack_id for row in _leaving(tx, list(stack_ids)) if not is_companion(row.name)}
    return leaving | set(_removing(tx, list(stack_ids)).scalars())


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


def pause(tx: Transaction, shard: Shard, now: float, at: float) -> None:
    """Schedule a new look at a shard, as if it was never looked at; a look in progress does not count.

    Args:
        tx: The transaction, which has locked the shard.
    """
    this = (_shard.c.stack_id == shard[0], _shard.c.number == shard[1], _shard.c.health_at.is_not(None))
    tx.execute(update(_shard).where(*this).values(health_at=at, health_from=now, health_looked_at=None))


def release(tx: Transaction, shard: Shard, until: float, at: float, next_at: float, looked_at: float | None) -> None:
    """Give a shard back; a shard with a new request for a look stays due.

    Args:
        tx: The transaction, which has locked the shard.
        looked_at: The start of this look, if it was a whole look.
    """
    stack_id, number = shard
    if looked_at is not None:
        _note_look(tx, stack_id, number, looked_at)
    _release(tx, stack_id, number, until, at, next_at)


@prepared
def _note_look(stack_id: str, number: int, looked_at: float) -> UpdateBase:
    """Update the time of the newest whole look, unless another look was requested after its start."""
    this = (_shard.c.stack_id == stack_id, _shard.c.number == number, _shard.c.health_at.is_not(None))
    counts = or_(
        _shard.c.health_looked_at.is_not(None), _shard.c.health_from.is_(None), _shard.c.health_from <= looked_at
    )
    return update(_shard).where(*this, counts).values(health_looked_at=looked_at)


@prepared
def _release(stack_id: str, number: int, until: float, at: float, next_at: float) -> UpdateBase:
    # The exact time marks the shard as taken by this caller: other values come from a request, or from the next taker.
    still_taken = _shard.c.health_at == until
    this = (_shard.c.stack_id == stack_id, _shard.c.number == number, still_taken)
    return update(_shard).where(*this).values(health_at=at, health_from=next_at)


def stop_checks(tx: Transaction, shard: Shard, until: float) -> None:
    """Stop the checks of a shard that was taken until this time, from all places."""
    this = (_shard.c.stack_id == shard[0], _shard.c.number == shard[1], _shard.c.health_at == until)
    taken = tx.execute(update(_shard).where(*this).values(health_at=None, health_from=None, health_looked_at=None))
    if taken.rowcount:  # a place without a worker would never remove its looks
        look = schema.vantage_look.c
        tx.execute(delete(schema.vantage_look).where(look.stack_id == shard[0], look.number == shard[1]))


def request_look(tx: Transaction, these: Collection[Shard], now: float) -> None:
    """Request an immediate look at all members of these shards, if policies apply to them."""
    notices.mark_due(tx)
    _request_look(tx, sorted(these), now)


@prepared
def _request_look(these: Sequence[Shard], now: float) -> UpdateBase:
    later = case((_shard.c.health_at > now, now), else_=_shard.c.health_at)
    conditions = (is_any_of(these), _shard.c.health_at.is_not(None))
    return update(_shard).where(*conditions).values(health_at=later, health_from=now)


# -- members ---------------------------------------------------------------------------------------------------------


class WatchedMember(NamedTuple):
    """A present member (not replaced, not being deleted), with its observation, its node in a cluster, and its health.

    Attributes:
        presence, object, seen_at, seen_reason: The newest observation; None if not observed yet.
        node_id, node_name, cluster_id: The node; None outside clusters.
        health: The health; None if not checked yet.
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


def members_of(tx: Transaction, these: Sequence[Shard]) -> list[WatchedMember]:
    """Return the present members in these shards, with their observations and health."""
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
    in_shards = tuple_(row.stack_id, row.shard).in_(these)
    stands = (row.replaced_by.is_(None), row.action != Action.DELETE, row.external_id.is_(None))
    return select(*of_row, *more, *of_look, *of_node, _node.c.health).select_from(joined).where(in_shards, *stands)


def store(tx: Transaction, findings: Sequence[tuple[str, str, int, NodeHealth]]) -> None:
    """Store findings as row key, stack, shard and health; members whose row is gone are left out.

    The caller has locked the shards.
    """
    existing = set(_existing(tx, [key for key, *_ in findings]).scalars())
    rows = [
        {
            "key": key,
            "stack_id": stack_id,
            "shard": shard,
            "finding": health.finding.value,
            "again_at": health.again_at,
            "health": health,
        }
        for key, stack_id, shard, health in findings
        if key in existing
    ]
    if rows:
        new = tx.insert(_node)
        changed = {name: new.excluded[name] for name in ("finding", "again_at", "health")}
        tx.execute(new.on_conflict_do_update(index_elements=["key"], set_=changed), rows)


@prepared
def _existing(keys: Sequence[str]) -> Select[Any]:
    return select(_resource.c.key).where(_resource.c.key.in_(keys))


def of_shard(tx: Transaction, stack_id: str, number: int) -> dict[str, NodeHealth]:
    """Return the health of the members of a shard, by row key."""
    return {row[0]: row[1] for row in _of_shard(tx, stack_id, number)}


@prepared
def _of_shard(stack_id: str, number: int) -> Select[Any]:
    return select(_node.c.key, _node.c.health).where(_node.c.stack_id == stack_id, _node.c.shard == number)


def of_rows(tx: Transaction, keys: Collection[str]) -> dict[str, NodeHealth]:
    """Return the health of these resources, by row key."""
    chosen = select(_node.c.key, _node.c.health).where(_node.c.key.in_(keys))
    return {row[0]: row[1] for row in tx.execute(chosen)} if keys else {}


def counts(tx: Transaction, stack_id: str, now: float) -> tuple[int, int]:
    """Return the number of unhealthy members of a stack, and the number of recoveries begun in the last hour."""
    marked: list[Marks] = list(_marks(tx, stack_id).scalars())
    reported = sum(report_of(marks, now) is not None and not is_answered(marks) for marks in marked)
    unhealthy, recoveries = _counts(tx, stack_id, now - HOUR_S).one()
    return int(unhealthy) + reported, int(recoveries)


@prepared
def _counts(stack_id: str, since: float) -> Select[Any]:
    # A resource that is being deleted, or has a successor, is no longer a member.
    row, log = _resource.c, schema.recovery
    stands = (row.key == _node.c.key, row.replaced_by.is_(None), row.action != Action.DELETE.value)
    findings = (_node.c.stack_id == stack_id, _node.c.finding == Finding.UNHEALTHY.value)
    unhealthy = select(func.count()).select_from(_node).where(*findings, *stands)
    lately = select(func.count()).where(log.c.stack_id == stack_id, log.c.at > since, log.c.begins)
    return select(unhealthy.scalar_subquery(), lately.scalar_subquery())


@prepared
def _marks(stack_id: str) -> Select[Any]:
    """Select the marks of members that no look has found unhealthy."""
    row = _resource.c
    stands = (row.stack_id == stack_id, row.replaced_by.is_(None), row.action != Action.DELETE.value)
    chosen = select(row.marks).select_from(_node.join(_resource, row.key == _node.c.key))
    return chosen.where(*stands, row.marks.is_not(None), _node.c.finding != Finding.UNHEALTHY.value)


def begun(tx: Transaction, stack_id: str, now: float) -> list[StartedRecovery]:
    """Return the recoveries of members that have begun in the last hour; the newest 1,000."""
    log = schema.recovery.c
    chosen = select(log.name, log.at, log.host).where(log.stack_id == stack_id, log.at > now - HOUR_S, log.begins)
    return [
        StartedRecovery(name, float(at), host or "")
        for name, at, host in tx.execute(chosen.order_by(log.at.desc()).limit(BEGUN_MAX))
    ]


def note_recoveries(tx: Transaction, stack_id: str, begun: Sequence[RecoveryAction], now: float) -> None:
    """Store actions of recoveries that begin, see `shard_state.Writes`; delete old ones."""
    log = schema.recovery
    tx.execute(delete(log).where(log.c.stack_id == stack_id, log.c.at < now - KEPT_S))
    tx.execute(insert(log), [{"stack_id": stack_id, "at": now, **action._asdict()} for action in begun])
