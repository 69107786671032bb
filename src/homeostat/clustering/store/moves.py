"""Moves of members between the stacks of groups: a row, its resource and nested stacks change owner (ADR 0073).

The cloud is not called. The caller holds the locks of both stacks and of their shards.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Row, delete, func, select, update

from homeostat.model.intent import left_alone_for
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.shards import leases
from homeostat.store.sql import lock_order
from homeostat.store.stacks import stacks

_resource = schema.resource
_stack = schema.stack


@dataclass(frozen=True, slots=True)
class Place:
    """The current or the future place of a member.

    Attributes:
        stack_id: Stack of the group.
        shard: Number of the shard in the stack.
        name: Name of the member, a number.
        root_id: Root of the tree of stacks.
        revision: Newest revision of the stack.
    """

    stack_id: str
    shard: int
    name: str
    root_id: str
    revision: int


def at_rest(tx: Transaction, group_id: str, name: str) -> Row[tuple[str, int]] | None:
    """Return key and shard of the row of a healthy member at rest; None for any other member."""
    columns = ("key", "shard", "action", "status", "handle", "intent")
    chosen = select(*(_resource.c[column] for column in columns))
    rows = tx.execute(chosen.where(_resource.c.stack_id == group_id, _resource.c.name == name)).all()
    if len(rows) != 1:  # absent, or being replaced
        return None
    (row,) = rows
    well = row.status == Status.COMPLETE and row.action not in (Action.INIT, Action.DELETE) and row.handle
    return row if well and not left_alone_for(row.intent) else None


def lock(tx: Transaction, root_id: str, groups: Collection[str], roots: Collection[str], keys: Collection[str]) -> None:
    """Lock the stacks and shards of a move, in the order of ADR 0057; the first root is locked already.

    Args:
        root_id: Root of the first tree, whose shards are written too.
        groups: Stacks of groups that members leave or join.
        roots: Roots of the other trees.
        keys: Keys of the rows that move: stacks nested in them move along.
    """
    inside = _inside(tx, keys)
    locked = [*groups, *roots, *inside]
    lock_order.take_stacks(tx, _stack.c.id.in_(locked))
    lock_order.take_shards(tx, schema.shard.c.stack_id.in_([root_id, *groups, *roots]))


def _inside(tx: Transaction, keys: Collection[str]) -> list[str]:
    """Return the ids of all live stacks nested in these rows."""
    stack_ids = list(
        tx.execute(select(_stack.c.id).where(_stack.c.parent_key.in_(keys), _stack.c.deleted_at.is_(None)))
    )
    return [stack_id for (nested,) in stack_ids for stack_id in tx.execute(stacks.tree_of(nested)).scalars()]


def move(tx: Transaction, key: str, before: Place, after: Place, now: float) -> None:
    """Move the row of a member to another group.

    The next pass compares the member with the definition of the new group, and changes differences in place.

    Args:
        key: Key of the row.
        before: The current place.
        after: The new place, whose newest revision defines the member.
        now: The agreed time.
    """
    # Stamps are per shard: the row becomes the newest of its new shard.
    in_shard = (_resource.c.stack_id == after.stack_id, _resource.c.shard == after.shard)
    newest = select(func.max(_resource.c.born), func.max(_resource.c.changed), func.max(_resource.c.resolved))
    stamp = max((number or 0 for number in tx.execute(newest.where(*in_shard)).one()), default=0) + 1
    place = {"stack_id": after.stack_id, "shard": after.shard, "name": after.name}
    # Reset `judged_observation` and `revision`: the next pass must judge the row against the new definition. The new
    # version invalidates reads of the row by passes in progress.
    state = {
        "version": _resource.c.version + 1,
        "revision": after.revision - 1,
        "judged_observation": 0,
        "updated_at": now,
    }
    stamps = {"born": stamp, "changed": stamp, "resolved": stamp}
    tx.execute(update(_resource).where(_resource.c.key == key).values(**place, **state, **stamps))
    seen, properties = schema.resource_observed, schema.resource_properties_observed
    place_columns = {"stack_id": after.stack_id, "resource_name": after.name}
    tx.execute(update(seen).where(seen.c.key == key).values(**place_columns))
    tx.execute(update(properties).where(properties.c.id == key).values(**place_columns))
    # Findings of the former group's health policy do not apply in the new group.
    tx.execute(delete(schema.node_health).where(schema.node_health.c.key == key))
    _move_nested(tx, key, after)
    leases.supersede(tx, [(before.stack_id, before.shard), (after.stack_id, after.shard)])


def nest(tx: Transaction, stack_id: str, key: str, after: Place, levels: int) -> None:
    """Nest a root stack, which is locked, in the stack of a group, as the resource of a member.

    Args:
        key: Key of the row of the member.
        after: Place of the member.
        levels: Levels of nesting that are added.
    """
    tree = list(tx.execute(stacks.tree_of(stack_id)).scalars())
    lock_order.take_stacks(tx, _stack.c.id.in_(tree))
    shards = schema.shard
    lock_order.take_shards(tx, shards.c.stack_id.in_(tree))
    deeper = {"root_id": after.root_id, "depth": _stack.c.depth + levels}
    tx.execute(update(_stack).where(_stack.c.id.in_(tree)).values(**deeper))
    parent = {"parent_id": after.stack_id, "parent_name": after.name, "parent_shard": after.shard, "parent_key": key}
    # Nested stacks follow their parent's rollback.
    tx.execute(update(_stack).where(_stack.c.id == stack_id).values(**parent, disable_rollback=True))
    shard_rows = tx.execute(select(shards.c.stack_id, shards.c.number).where(shards.c.stack_id.in_(tree)))
    leases.supersede(tx, [(row.stack_id, row.number) for row in shard_rows])


def _move_nested(tx: Transaction, key: str, after: Place) -> None:
    """Move the nested stack of a member, if any, to the member's new group."""
    inside = _inside(tx, [key])
    if not inside:
        return
    tx.execute(update(_stack).where(_stack.c.id.in_(inside)).values(root_id=after.root_id))
    parent = {"parent_id": after.stack_id, "parent_name": after.name, "parent_shard": after.shard}
    conditions = (_stack.c.parent_key == key, _stack.c.deleted_at.is_(None))
    tx.execute(update(_stack).where(*conditions).values(**parent))
