"""Rollouts: their rows, and the members that have the new metadata, or definition (RU5, RU7).

Each move of a rollout locks first the shard of the group, then the row of the rollout. `rollout_reports` stores the
reports of members.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    Select,
    Text,
    case,
    cast,
    delete,
    exists,
    insert,
    literal,
    literal_column,
    select,
    update,
)

from homeostat.model.rollout import (
    GOING_ON,
    Rollout,
    RolloutBegin,
    RolloutChange,
    RolloutRevised,
    RolloutState,
    WaitGate,
    having,
)
from homeostat.model.status import Status
from homeostat.resources.signals import SUCCESS
from homeostat.store import schema
from homeostat.store.database import Transaction, row_lock
from homeostat.store.schema.rollouts import ALARM
from homeostat.store.schema.rows import StackRow
from homeostat.store.sql import lock_order, typed
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import stacks

_rollout = schema.rollout
_active = schema.active_metadata_updates
_gate = schema.rollout_gate
_record = schema.record
_resource = schema.resource
_COLUMNS = tuple(field.name for field in fields(Rollout))
FIRST_MAX = 1000
"""Members that come first since they had newer metadata, too, from a rollout before."""
NAMESAKES_MAX = 10
"""Things with the same handle, in different clouds, to examine."""
LEASE_S = 5.0
"""Seconds after which a claimed rollout is due again."""


def _of(row: Row[Any]) -> Rollout:
    return Rollout(**{name: getattr(row, name) for name in _COLUMNS})


def of_stack(tx: Transaction, stack_id: str) -> dict[str, Rollout]:
    """Return the rollouts of a stack, by the keys of their groups."""
    return {row.key: _of(row) for row in _of_stack(tx, stack_id)}


@prepared
def _of_stack(stack_id: str) -> Select[Any]:
    return select(_rollout).where(_rollout.c.stack_id == stack_id)


def of_group(tx: Transaction, key: str) -> Rollout | None:
    row = tx.execute(select(_rollout).where(_rollout.c.key == key)).first()
    return None if row is None else _of(row)


def lock(tx: Transaction, key: str) -> Rollout | None:
    """Return a rollout with its row and the shard of its group locked; None if it is gone."""
    # Read without a lock first, for the shard, whose lock comes before that of the rollout.
    unlocked = of_group(tx, key)
    if unlocked is None:
        return None
    lock_order.take(tx, [(unlocked.stack_id, unlocked.shard)])
    row = tx.execute(row_lock(select(_rollout).where(_rollout.c.key == key))).first()
    return None if row is None else _of(row)


# -- beginning and end -------------------------------------------------------------------------------------------------


def lock_stacks(tx: Transaction, stack_id: str) -> list[str]:
    """Lock a stack and its ancestors, whose actions have no deadline during a rollout."""
    table, ids, above = schema.stack, [], stack_id
    # Read upwards without locks, since the order of locks begins at the root (ADR 0057).
    while above:
        ids.append(above)
        above = tx.execute(select(table.c.parent_id).where(table.c.id == above)).scalar() or ""
    lock_order.take_stacks(tx, table.c.id.in_(ids))
    return ids


def apply(
    tx: Transaction, locked: Sequence[str], changes: Sequence[RolloutChange], now: float, timeout_s: float
) -> None:
    """Store the begin, the end and new settings of rollouts; the caller has locked the shard of their groups.

    Args:
        locked: The stacks that `lock_stacks` has locked, before the shard.
        timeout_s: Default seconds that the actions of these stacks have after the end of their last rollout.
    """
    for change in changes:
        if isinstance(change, RolloutBegin):
            _begin(tx, change.rollout)
            continue
        if isinstance(change, RolloutRevised):
            _follow(tx, change, now)
            continue
        tx.execute(delete(_rollout).where(_rollout.c.key == change.key))
        if not change.keeps_members:
            deactivate(tx, change.key)
    table = schema.stack
    if any(isinstance(change, RolloutBegin) for change in changes):
        tx.execute(update(table).where(table.c.id.in_(locked)).values(deadline=None))
        return
    # Another rollout may be in progress in the same stack, or in a nested stack.
    over = [id for id in locked if not goes_on_in(tx, id)]
    waiting = (table.c.status == Status.IN_PROGRESS, table.c.deadline.is_(None))
    for row in typed.rows(StackRow, tx.execute(select(table).where(table.c.id.in_(over), *waiting))).all():
        left_s = stacks.timeout_of(stacks.timeout_mins_of(tx, row), timeout_s)
        tx.execute(update(table).where(table.c.id == row.id).values(deadline=now + left_s))


def goes_on_in(tx: Transaction, stack_id: str) -> bool:
    """Return whether a rollout is in progress in a stack, or in its nested stacks."""
    condition = _rollout.c.stack_id.in_(stacks.tree_of(stack_id))
    return tx.execute(select(_rollout.c.key).where(condition).limit(1)).first() is not None


def _begin(tx: Transaction, rollout: Rollout) -> None:
    first = [row.instance_id for row in tx.execute(_activated(rollout.key).limit(FIRST_MAX))]
    before = of_group(tx, rollout.key)
    if not first and before is not None:  # the previous rollout had not reached any member yet
        first = list(before.first)
    tx.execute(delete(_rollout).where(_rollout.c.key == rollout.key))
    deactivate(tx, rollout.key)
    tx.execute(insert(_rollout).values(**{**_values(rollout), "first": first}))
    _listen(tx, rollout)


def _follow(tx: Transaction, change: RolloutRevised, now: float) -> None:
    """Give a rollout new settings; reports so far stay.

    With other handles, or another time, the time of the step starts again: signals to the old handles were lost.
    """
    row = tx.execute(row_lock(select(_rollout).where(_rollout.c.key == change.key))).first()
    if row is None or RolloutState(row.state).ended:
        return
    before = _of(row)
    rollout = replace(before, settings=change.settings)
    if rollout.state == RolloutState.RUNNING:
        rollout = replace(rollout, step_at=before.step_at if _asks_alike(before, rollout) else now, due_at=now)
    tx.execute(update(_rollout).where(_rollout.c.key == rollout.key).values(**_values(rollout)))
    _keep_reports(tx, rollout.key, before.settings.gates, rollout.settings.gates)
    tx.execute(delete(_gate).where(_gate.c.key == rollout.key))
    _listen(tx, rollout)


def _asks_alike(before: Rollout, after: Rollout) -> bool:
    """Return whether members, and alarms, signal to the same handles, and have the same time."""
    asked = [
        ({gate.handle for gate in rollout.settings.gates}, set(rollout.settings.alarms), rollout.settings.time_s)
        for rollout in (before, after)
    ]
    return asked[0] == asked[1]


def _keep_reports(tx: Transaction, key: str, before: Sequence[WaitGate], after: Sequence[WaitGate]) -> None:
    """Carry the reports of members over to the bits of the new gates.

    Members with reports to all remaining gates are done. Members that were done before stay done, whatever gates have
    come: their reports count for all gates, or their next report would make them incomplete again.
    """
    if [gate.condition for gate in before] == [gate.condition for gate in after] or not after:
        return
    bits = [
        (old, new)
        for new, gate in enumerate(after)
        for old, known in enumerate(before)
        if gate.condition == known.condition or gate.handle == known.handle
    ]
    reported = _active.c.reported
    kept: ColumnElement[int] = literal(0)
    for old, new in bits:
        kept = kept.bitwise_or(reported.bitwise_rshift(old).bitwise_and(1).bitwise_lshift(new))
    full = (1 << len(after)) - 1
    status = case((kept == full, SUCCESS), else_="")
    waiting = (_active.c.resource_id == key, _active.c.status == "")
    done = (_active.c.resource_id == key, _active.c.status == SUCCESS)
    tx.execute(update(_active).where(*done).values(reported=full))
    tx.execute(update(_active).where(*waiting).values(reported=kept, status=status))


def _listen(tx: Transaction, rollout: Rollout) -> None:
    """Store the handles to which the members of a rollout, and alarms, signal."""
    gates = rollout.settings.gates
    waited_for = [(gate.handle, bit) for bit, gate in enumerate(gates)]
    listened_to = [(handle, ALARM) for handle in sorted(set(rollout.settings.alarms))]
    handles = [
        {"handle": handle, "key": rollout.key, "bit": bit, "gates": len(gates)}
        for handle, bit in (*waited_for, *listened_to)
    ]
    # Without its handle a gate never opens: the time of the step ends the wait.
    named = _record.c.id.in_([row["handle"] for row in handles])
    present = set(tx.execute(select(_record.c.id).where(named)).scalars())
    rows = [row for row in handles if row["handle"] in present]
    if rows:
        tx.execute(insert(_gate), rows)


def _activated(key: str) -> Select[Any]:
    return select(_active.c.instance_id).where(_active.c.resource_id == key).order_by(_active.c.step)


def deactivate(tx: Transaction, key: str) -> int:
    """Give the old metadata to all members at once; return the number of members that had the new metadata."""
    return tx.execute(delete(_active).where(_active.c.resource_id == key)).rowcount


def take_back(tx: Transaction, stack_ids: Sequence[str], why: str, now: float) -> None:
    """Roll back the rollouts in progress in these stacks; the caller has locked their shards, and wakes them."""
    going_on = select(_rollout).where(_rollout.c.stack_id.in_(stack_ids), _rollout.c.state.in_(GOING_ON))
    for row in tx.execute(row_lock(going_on.order_by(_rollout.c.key))).all():
        count, rollout = deactivate(tx, row.key), _of(row)
        back = f"{having(count, 'has', 'have')} the old {rollout.what} again"
        # Members with a new definition get the old one by a revision: the next claim of the rollout makes it.
        due_at = None if row.subject is None else now
        ended = replace(rollout, state=RolloutState.ROLLED_BACK, active=0, due_at=due_at)
        save(tx, replace(ended, reason=f"rollout {why}; {back}"))


def _values(rollout: Rollout) -> dict[str, Any]:
    return {name: getattr(rollout, name) for name in _COLUMNS}


def save(tx: Transaction, rollout: Rollout) -> None:
    """Store a rollout, whose row is locked."""
    changed = {name: value for name, value in _values(rollout).items() if name not in ("key", "settings")}
    tx.execute(update(_rollout).where(_rollout.c.key == rollout.key).values(**changed))


# -- turns -------------------------------------------------------------------------------------------------------------


def claim_due(tx: Transaction, now: float, limit: int) -> list[str]:
    """Claim due rollouts for the caller, and return their keys; each is due again after `LEASE_S`."""
    keys = list(_due(tx, now, limit).scalars())
    if keys:
        tx.execute(update(_rollout).where(_rollout.c.key.in_(keys)).values(due_at=now + LEASE_S))
    return keys


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    due = select(_rollout.c.key).where(_rollout.c.due_at <= now).order_by(_rollout.c.due_at).limit(limit)
    # A locked row is being moved anyway. Waiting for it could deadlock: passes lock several rollouts in another order.
    return due.with_for_update(key_share=True, skip_locked=True)


def asking(tx: Transaction, keys: Sequence[str]) -> dict[str, str]:
    """Return key -> project of those rollouts that have URLs to request."""
    chosen = select(_rollout.c.key, _rollout.c.settings, schema.stack.c.project)
    asked = chosen.join(schema.stack, schema.stack.c.id == _rollout.c.stack_id).where(_rollout.c.key.in_(keys))
    return {row.key: row.project for row in tx.execute(asked) if row.settings.checks} if keys else {}


# -- reading -----------------------------------------------------------------------------------------------------------


def in_progress(tx: Transaction, stack: StackRow, depth: int, after: str, limit: int) -> list[Rollout]:
    """Return the rollouts in progress of a stack and of its nested stacks, in the order of their keys."""
    inside = stacks.tree_of(stack.id) if depth else [stack.id]
    nested = schema.stack
    chosen = (
        select(_rollout)
        .join(nested, nested.c.id == _rollout.c.stack_id)
        .where(_rollout.c.stack_id.in_(inside), nested.c.depth <= stack.depth + depth)
        .where(_rollout.c.key > after, _rollout.c.state.in_(GOING_ON))
    )
    return [_of(row) for row in tx.execute(chosen.order_by(_rollout.c.key).limit(limit))]


def names_of(tx: Transaction, stack_id: str, handles: Collection[str]) -> dict[str, str]:
    """Return the names of the resources of a stack that have these handles, by handle."""
    chosen = select(_resource.c.handle, _resource.c.name)
    conditions = (_resource.c.stack_id == stack_id, _resource.c.handle.in_(sorted(handles)))
    return {row.handle: row.name for row in tx.execute(chosen.where(*conditions))} if handles else {}


def metadata_of(tx: Transaction, stack_id: str, name: str, instance_id: str) -> Row[Any] | None:
    """Return the metadata of a group's member: a single query with two index reads more than the group's metadata.

    Returns:
        A row of `metadata`, and whether the member is a resource of the group; None if the stack has no such resource.
    """
    return _metadata_of(tx, stack_id, name, instance_id).first()


def member_with(tx: Transaction, members: str, handle: str) -> str | None:
    """Return the handle of the nested stack, a member, that contains a thing; None if no member does.

    Args:
        handle: Handle of the thing, such as the server of a member behind load balancers.
    """
    inside = set(_stacks_with(tx, handle, NAMESAKES_MAX).scalars())
    while inside and members not in inside:
        above = _above(tx, sorted(inside)).all()
        for row in above:
            if row.stack_id == members:
                return str(row.handle)
        inside = {row.stack_id for row in above}
    return None


@prepared
def _stacks_with(handle: str, most: int) -> Select[Any]:
    return select(_resource.c.stack_id).where(_resource.c.handle == handle).limit(most)


@prepared
def _above(stack_ids: Sequence[str]) -> Select[Any]:
    nested = schema.stack
    chosen = select(_resource.c.stack_id, _resource.c.handle)
    return chosen.join(nested, nested.c.parent_key == _resource.c.key).where(nested.c.id.in_(stack_ids))


@dataclass(frozen=True, slots=True)
class Group:
    """The resource whose child stack another resource is in.

    Attributes:
        member_metadata: Its metadata as one member has them.
    """

    name: str
    type: str
    handle: str
    stack_id: str
    properties: Mapping[str, Any]
    member_metadata: Any


def groups_around(tx: Transaction, stack_id: str, instance_id: str) -> list[tuple[Group, str]]:
    """Return the resources that a resource is inside of, from the inside out, in one query.

    Returns:
        Each resource whose child stack it is in, with the instance id of the member there; none in a root stack.
    """
    return [
        (Group(row.name, row.type, row.handle, row.stack_id, row.properties, seen_by(row)), row.member)
        for row in _groups_around(tx, stack_id, instance_id)
    ]


def seen_by(row: Row[Any]) -> Any:
    """Return the metadata of a group that a member reads; in a rollout of a definition alone there are no new ones."""
    return row.metadata if row.instance_id is None or row.new_metadata is None else row.new_metadata


@prepared
def _groups_around(stack_id: str, instance_id: str) -> Select[Any]:
    stack = schema.stack
    parent = stack.c.parent_key == _resource.c.key
    columns = (_resource.c.key, _resource.c.stack_id, _resource.c.handle)
    # PostgreSQL wants the same type in each round.
    member = cast(instance_id, Text)
    first = select(*columns, member.label("member"), literal_column("0", Integer).label("level"))
    inside = _resource.join(stack, parent)
    around = first.select_from(inside).where(stack.c.id == stack_id).cte("around", recursive=True, nesting=True)
    above = select(*columns, around.c.handle, around.c.level + literal_column("1", Integer))
    around = around.union_all(above.select_from(inside.join(around, around.c.stack_id == stack.c.id)))
    condition = (_active.c.resource_id == around.c.key) & (_active.c.instance_id == around.c.member)
    names = ("name", "type", "metadata", "new_metadata", "handle", "stack_id", "properties")
    chosen = select(*(_resource.c[name] for name in names), around.c.member, _active.c.instance_id)
    joined = _resource.join(around, around.c.key == _resource.c.key).outerjoin(_active, condition)
    return chosen.select_from(joined).order_by(around.c.level)


@prepared
def _metadata_of(stack_id: str, name: str, instance_id: str) -> Select[Any]:
    conditions = (_resource.c.stack_id == stack_id, _resource.c.name == name, _resource.c.replaced_by.is_(None))
    active = (_active.c.resource_id == _resource.c.key) & (_active.c.instance_id == instance_id)
    columns = (_resource.c[name] for name in ("name", "type", "metadata", "new_metadata", "handle"))
    member = _resource.alias("member")
    is_member = exists().where(member.c.handle == instance_id, member.c.stack_id == _resource.c.handle)
    return (
        select(*columns, _active.c.instance_id, is_member.label("is_member"))
        .outerjoin(_active, active)
        .where(*conditions)
    )
