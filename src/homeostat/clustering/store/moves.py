"""Members that move from one group's stack to another: a row, its thing, and what is nested in it change owner.

The cloud does not hear of it. The caller holds the locks of both stacks and of their shards (ADR 0073).
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, Row, delete, func, select, update

from homeostat.model.intent import left_alone_for
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.shards import leases
from homeostat.store.sql import lock_order
from homeostat.store.stacks import stacks

_resource = schema.resource
_stack = schema.stack


@dataclass(frozen=True, slots=True)
class Place:
    """Where a member is, or is to be.

    Attributes:
        stack_id: Stack of the group.
        shard: Number of the shard there.
        name: Name of the member, a number.
        root_id: Root of the tree of stacks.
        revision: Newest revision of that stack.
    """

    stack_id: str
    shard: int
    name: str
    root_id: str
    revision: int


def at_rest(tx: Connection, group_id: str, name: str) -> Row[tuple[str, int]] | None:
    """Return key and shard of the row of a member that is well, and with which nothing goes on; None for any other."""
    columns = ("key", "shard", "action", "status", "handle", "intent")
    chosen = select(*(_resource.c[column] for column in columns))
    found = tx.execute(chosen.where(_resource.c.stack_id == group_id, _resource.c.name == name)).all()
    if len(found) != 1:  # none, or one that is being replaced
        return None
    (row,) = found
    well = row.status == Status.COMPLETE and row.action not in (Action.INIT, Action.DELETE) and row.handle
    return row if well and not left_alone_for(row.intent) else None


def lock(tx: Connection, root_id: str, groups: Collection[str], others: Collection[str], keys: Collection[str]) -> None:
    """Lock what a move writes, in the order of ADR 0057; the root of the first tree is locked already.

    Args:
        tx: The transaction.
        root_id: Root of the first tree, whose shards are written too.
        groups: Stacks of groups that members leave or join.
        others: Roots of the other trees.
        keys: Keys of the rows that move: what is nested in them moves along.
    """
    inside = _inside(tx, keys)
    locked = [*groups, *others, *inside]
    lock_order.take_stacks(tx, _stack.c.id.in_(locked))
    lock_order.take_shards(tx, schema.shard.c.stack_id.in_([root_id, *groups, *others]))


def _inside(tx: Connection, keys: Collection[str]) -> list[str]:
    """Return the ids of all live stacks that are nested in these rows."""
    found = list(tx.execute(select(_stack.c.id).where(_stack.c.parent_key.in_(keys), _stack.c.deleted_at.is_(None))))
    return [each for (nested,) in found for each in tx.execute(stacks.tree_of(nested)).scalars()]


def move(tx: Connection, key: str, before: Place, after: Place, now: float) -> None:
    """Move a member: from now on it belongs to the other group, as it is.

    The pass that comes next compares it with what the other group defines, and changes what differs in place.

    Args:
        tx: The transaction.
        key: Key of its row.
        before: Where it is.
        after: Where it is to be; the newest revision there defines it.
        now: The agreed time.
    """
    # Stamps of another shard say nothing here: the row counts as the newest of the shard that it comes to.
    there = (_resource.c.stack_id == after.stack_id, _resource.c.shard == after.shard)
    newest = select(func.max(_resource.c.born), func.max(_resource.c.changed), func.max(_resource.c.resolved))
    stamp = max((each or 0 for each in tx.execute(newest.where(*there)).one()), default=0) + 1
    place = {"stack_id": after.stack_id, "shard": after.shard, "name": after.name}
    # Judged anew, and not yet acted on for the newest revision. The new version supersedes what others have read.
    state = {
        "version": _resource.c.version + 1,
        "revision": after.revision - 1,
        "judged_observation": 0,
        "updated_at": now,
    }
    stamps = {"born": stamp, "changed": stamp, "resolved": stamp}
    tx.execute(update(_resource).where(_resource.c.key == key).values(**place, **state, **stamps))
    seen, properties = schema.resource_observed, schema.resource_properties_observed
    shown = {"stack_id": after.stack_id, "resource_name": after.name}
    tx.execute(update(seen).where(seen.c.key == key).values(**shown))
    tx.execute(update(properties).where(properties.c.id == key).values(**shown))
    # What was found of it there, by the health policy of that group, says nothing here.
    tx.execute(delete(schema.node_health).where(schema.node_health.c.key == key))
    _move_nested(tx, key, after)
    leases.supersede(tx, [(before.stack_id, before.shard), (after.stack_id, after.shard)])


def nest(tx: Connection, stack_id: str, key: str, after: Place, levels: int) -> None:
    """Let a root stack, which is locked, be that of a member: from now on it is nested in the stack of the group.

    Args:
        tx: The transaction.
        stack_id: The stack.
        key: Key of the row of the member.
        after: Where the member is.
        levels: How many levels deeper the stack is then.
    """
    tree = list(tx.execute(stacks.tree_of(stack_id)).scalars())
    lock_order.take_stacks(tx, _stack.c.id.in_(tree))
    shards = schema.shard
    lock_order.take_shards(tx, shards.c.stack_id.in_(tree))
    deeper = {"root_id": after.root_id, "depth": _stack.c.depth + levels}
    tx.execute(update(_stack).where(_stack.c.id.in_(tree)).values(**deeper))
    parent = {"parent_id": after.stack_id, "parent_name": after.name, "parent_shard": after.shard, "parent_key": key}
    # A nested stack does as its parent does.
    tx.execute(update(_stack).where(_stack.c.id == stack_id).values(**parent, disable_rollback=True))
    these = tx.execute(select(shards.c.stack_id, shards.c.number).where(shards.c.stack_id.in_(tree)))
    leases.supersede(tx, [(row.stack_id, row.number) for row in these])


def _move_nested(tx: Connection, key: str, after: Place) -> None:
    """Let the stack that a member is, if it is one, belong to the group that the member has come to."""
    inside = _inside(tx, [key])
    if not inside:
        return
    tx.execute(update(_stack).where(_stack.c.id.in_(inside)).values(root_id=after.root_id))
    parent = {"parent_id": after.stack_id, "parent_name": after.name, "parent_shard": after.shard}
    conditions = (_stack.c.parent_key == key, _stack.c.deleted_at.is_(None))
    tx.execute(update(_stack).where(*conditions).values(**parent))
