"""Locks on several rows, in the order that all transactions keep (ADR 0057).

Rows of stacks come first, from the root down; then shards, from the deepest nested stack up, in each stack by number.
An UPDATE of several rows locks them in whatever order the database finds them, so two UPDATEs could deadlock: callers
lock the rows with these functions before. SQLite's writers exclude one another, so nothing is locked there.

PostgreSQL locks rows in the order of the query. MariaDB and MySQL lock rows as they read them, before sorting, so there
the order is read first, and the rows are locked in parts that are in order of the primary key.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, select, tuple_

from homeostat.store import schema
from homeostat.store.sql.prepared import prepared


def take_shards(tx: Connection, *where: ColumnElement[bool]) -> None:
    """Lock the shards that meet all conditions."""
    if tx.dialect.name == "mysql":
        _take_each_stack(tx, tx.execute(_in_order(*where)).all())
    elif tx.dialect.name != "sqlite":
        tx.execute(_locked(_in_order(*where)))


def take(tx: Connection, these: Sequence[tuple[str, int]]) -> None:
    """Lock these shards, as id of the stack and number."""
    if tx.dialect.name == "mysql":
        _take_each_stack(tx, _these(tx, these, locked=False).all())
    elif tx.dialect.name != "sqlite":
        _these(tx, these, locked=True)


@prepared
def _these(these: Sequence[tuple[str, int]], *, locked: bool) -> Select[Any]:
    rows = _in_order(tuple_(schema.shard.c.stack_id, schema.shard.c.number).in_(these))
    return _locked(rows) if locked else rows


def _take_each_stack(tx: Connection, these: Sequence[Any]) -> None:
    for stack_id, numbers in groupby(these, key=itemgetter(0)):
        _of_stack(tx, stack_id, [shard[1] for shard in numbers])


@prepared
def _of_stack(stack_id: str, numbers: Sequence[int]) -> Select[Any]:
    shard = schema.shard
    chosen = select(shard.c.number).where(shard.c.stack_id == stack_id, shard.c.number.in_(numbers))
    return _by_key(chosen.order_by(shard.c.number), shard)


def _in_order(*where: ColumnElement[bool]) -> Select[Any]:
    shard, stack = schema.shard, schema.stack
    chosen = select(shard.c.stack_id, shard.c.number).join(stack, stack.c.id == shard.c.stack_id).where(*where)
    # Deepest first: at the end of a pass, the worker holds its own shard when it wakes the parent's shard.
    return chosen.order_by(stack.c.depth.desc(), shard.c.stack_id, shard.c.number)


def _locked(rows: Select[Any]) -> Select[Any]:
    return rows.with_for_update(of=schema.shard, key_share=True)


def take_stacks(tx: Connection, *where: ColumnElement[bool]) -> None:
    """Lock the stacks that meet all conditions."""
    if tx.dialect.name == "sqlite":
        return
    stack = schema.stack
    rows = select(stack.c.depth, stack.c.id).where(*where).order_by(stack.c.depth, stack.c.id)
    if tx.dialect.name != "mysql":
        tx.execute(rows.with_for_update(key_share=True))
        return
    for _, same_depth in groupby(tx.execute(rows).all(), key=itemgetter(0)):
        _stacks(tx, [row[1] for row in same_depth])


@prepared
def _stacks(ids: Sequence[str]) -> Select[Any]:
    stack = schema.stack
    return _by_key(select(stack.c.id).where(stack.c.id.in_(ids)).order_by(stack.c.id), stack)


def _by_key(rows: Select[Any], table: Table) -> Select[Any]:
    """Lock rows by the primary key: a scan of a small table would wait for locks on all other rows, too."""
    return rows.with_hint(table, "FORCE INDEX (PRIMARY)", "mysql").with_for_update()


def take_tree(tx: Connection, tree: Select[Any]) -> None:
    """Lock stacks and then all their shards.

    Args:
        tree: Selects the ids of the stacks.
    """
    take_stacks(tx, schema.stack.c.id.in_(tree))
    take_shards(tx, schema.shard.c.stack_id.in_(tree))
