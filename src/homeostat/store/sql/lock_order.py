"""Locks on several rows, in the one order that all transactions keep (ADR 0057).

Rows of stacks come first, from the root down; then shards, from the deepest nested stack up, in one stack by number. An
UPDATE of several rows locks them in whatever order the database finds them, so two of them could deadlock: callers lock
the rows with these functions before such an UPDATE. SQLite's writers exclude one another, so nothing is locked there.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, select, tuple_

from homeostat.store import schema
from homeostat.store.sql.prepared import prepared


def take_shards(tx: Connection, *where: ColumnElement[bool]) -> None:
    """Lock the shards that meet all conditions."""
    if tx.dialect.name != "sqlite":
        tx.execute(_in_order(*where))


def take(tx: Connection, these: Sequence[tuple[str, int]]) -> None:
    """Lock these shards, each as the id of its stack and its number."""
    if tx.dialect.name != "sqlite":
        _these(tx, these)


@prepared
def _these(these: Sequence[tuple[str, int]]) -> Select[Any]:
    return _in_order(tuple_(schema.shard.c.stack_id, schema.shard.c.number).in_(these))


def _in_order(*where: ColumnElement[bool]) -> Select[Any]:
    shard, stack = schema.shard, schema.stack
    chosen = select(shard.c.number).join(stack, stack.c.id == shard.c.stack_id).where(*where)
    # Deepest first, since a pass that ends holds its own shard when it wakes the one of its parent.
    chosen = chosen.order_by(stack.c.depth.desc(), shard.c.stack_id, shard.c.number)
    return chosen.with_for_update(of=shard, key_share=True)


def take_stacks(tx: Connection, *where: ColumnElement[bool]) -> None:
    """Lock the stacks that meet all conditions."""
    if tx.dialect.name != "sqlite":
        stack = schema.stack
        rows = select(stack.c.id).where(*where).order_by(stack.c.depth, stack.c.id)
        tx.execute(rows.with_for_update(key_share=True))


def take_tree(tx: Connection, tree: Select[Any]) -> None:
    """Lock stacks and then all their shards.

    Args:
        tx: The transaction.
        tree: Selects the ids of the stacks.
    """
    take_stacks(tx, schema.stack.c.id.in_(tree))
    take_shards(tx, schema.shard.c.stack_id.in_(tree))
