"""The shards of nested stacks and of all their descendants."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import false, select

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.stacks.stacks import STACKS_PER_QUERY

_shard, _stack = schema.shard, schema.stack


def shards(tx: Transaction, tops: Collection[str]) -> dict[tuple[str, int], str]:
    """Return stack and number of each shard -> its top stack; suspended stacks and their descendants are left out."""
    top_of: dict[tuple[str, int], str] = {}
    level = _live(tx, {top: top for top in tops}, _stack.c.id)
    while level:
        for ids in _parts(level):
            chosen = select(_shard.c.stack_id, _shard.c.number).where(_shard.c.stack_id.in_(ids))
            top_of |= {(row.stack_id, row.number): level[row.stack_id] for row in tx.execute(chosen)}
        level = _live(tx, level, _stack.c.parent_id)
    return top_of


def _live(tx: Transaction, level: dict[str, str], column: Any) -> dict[str, str]:
    """Return the live stacks with one of these ids in `column`, each with its top stack."""
    top_of: dict[str, str] = {}
    for ids in _parts(level):
        chosen = select(_stack.c.id, column.label("of")).where(column.in_(ids), _stack.c.deleted_at.is_(None))
        live = chosen.where(_stack.c.parent_key.is_not(None), _stack.c.suspended == false())
        top_of |= {row.id: level[row.of] for row in tx.execute(live)}
    return top_of


def _parts(level: Collection[str]) -> list[list[str]]:
    ids = sorted(level)
    return [ids[start : start + STACKS_PER_QUERY] for start in range(0, len(ids), STACKS_PER_QUERY)]
