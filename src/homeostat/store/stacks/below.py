"""The shards of nested stacks, and of all stacks below them."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, false, select

from homeostat.store import schema
from homeostat.store.stacks.stacks import STACKS_PER_QUERY

_shard, _stack = schema.shard, schema.stack


def shards(tx: Connection, tops: Collection[str]) -> dict[tuple[str, int], str]:
    """Return stack and number of each shard -> the top stack that it is in or below; suspended stacks are left out."""
    found: dict[tuple[str, int], str] = {}
    level = _live(tx, {top: top for top in tops}, _stack.c.id)
    while level:
        for some in _parts(level):
            chosen = select(_shard.c.stack_id, _shard.c.number).where(_shard.c.stack_id.in_(some))
            found |= {(row.stack_id, row.number): level[row.stack_id] for row in tx.execute(chosen)}
        level = _live(tx, level, _stack.c.parent_id)
    return found


def _live(tx: Connection, level: dict[str, str], column: Any) -> dict[str, str]:
    """Return the live stacks that have one of these in a column, each with its top stack."""
    found: dict[str, str] = {}
    for some in _parts(level):
        chosen = select(_stack.c.id, column.label("of")).where(column.in_(some), _stack.c.deleted_at.is_(None))
        live = chosen.where(_stack.c.parent_key.is_not(None), _stack.c.suspended == false())
        found |= {row.id: level[row.of] for row in tx.execute(live)}
    return found


def _parts(level: Collection[str]) -> list[list[str]]:
    ids = sorted(level)
    return [ids[start : start + STACKS_PER_QUERY] for start in range(0, len(ids), STACKS_PER_QUERY)]
