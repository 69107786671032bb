"""What holds healing back beyond the rows of one shard: other shards of the stack, and what is seen of its project."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exists, func, select, update

from homeostat.model.observed import Presence
from homeostat.model.status import Action
from homeostat.store import schema

FEW = 3
"""So many things may be absent at once without a doubt about the look."""

_resource = schema.resource
_observed = schema.resource_observed
_shard = schema.shard
_stack = schema.stack


def elsewhere(tx: Connection, stack_id: str, number: int) -> int:
    """How many resources are being healed in the other shards of a stack."""
    others = (_shard.c.stack_id == stack_id, _shard.c.number != number)
    return int(tx.execute(select(func.coalesce(func.sum(_shard.c.healing), 0)).where(*others)).scalar_one())


def count(tx: Connection, stack_id: str, number: int, healing: int) -> None:
    """So many are being healed in this shard."""
    mine = (_shard.c.stack_id == stack_id, _shard.c.number == number)
    tx.execute(update(_shard).where(*mine).values(healing=healing))


def owner_of(tx: Connection, key: str) -> Any:
    """The resource that a nested stack is the reality of: type, properties."""
    return tx.execute(select(_resource.c.type, _resource.c.properties).where(_resource.c.key == key)).first()


def is_blind(tx: Connection, project: str, types: Sequence[str], since: float) -> bool:
    """Are more than a few things of these types absent in a project, and is none that was there before seen since?"""
    live = (_stack.c.project == project, _stack.c.deleted_at.is_(None))
    mine = (*live, _resource.c.type.in_(types), _resource.c.action != Action.DELETE, _resource.c.handle != "")
    joined = _resource.join(_stack, _stack.c.id == _resource.c.stack_id).join(
        _observed, _observed.c.key == _resource.c.key
    )
    absent = select(_resource.c.key).select_from(joined).where(*mine, _observed.c.presence == Presence.ABSENT)
    if len(tx.execute(absent.limit(FEW + 1)).all()) <= FEW:
        return False
    looked = joined.join(_shard, (_shard.c.stack_id == _resource.c.stack_id) & (_shard.c.number == _resource.c.shard))
    seen = (_observed.c.presence == Presence.PRESENT, _resource.c.created_at < since, _shard.c.looked_at >= since)
    return not tx.execute(select(exists(select(1).select_from(looked).where(*mine, *seen)))).scalar_one()


@dataclass(frozen=True, slots=True)
class Doubted:
    """Everything of a type that a project has is absent. stacks — ids of the root stacks that have it."""

    project: str
    type: str
    absent: int
    stacks: Sequence[str]


def doubted(tx: Connection, types: Collection[str]) -> list[Doubted]:
    """Of all projects. Reads every row: for the doctor."""
    columns = (_stack.c.project, _resource.c.type, _observed.c.presence, _stack.c.root_id, func.count())
    chosen = (
        select(*columns)
        .select_from(
            _resource.join(_stack, _stack.c.id == _resource.c.stack_id).join(
                _observed, _observed.c.key == _resource.c.key
            )
        )
        .where(_stack.c.deleted_at.is_(None), _resource.c.action != Action.DELETE, _resource.c.type.in_(types))
        .where(_resource.c.handle != "")
        .group_by(_stack.c.project, _resource.c.type, _observed.c.presence, _stack.c.root_id)
    )
    seen: set[tuple[str, str]] = set()
    absent: dict[tuple[str, str], dict[str, int]] = {}
    for project, type, presence, root, number in tx.execute(chosen):
        if presence == Presence.PRESENT:
            seen.add((project, type))
        elif presence == Presence.ABSENT:
            absent.setdefault((project, type), {})[root] = number
    return [
        Doubted(*place, sum(roots.values()), sorted(roots))
        for place, roots in sorted(absent.items())
        if place not in seen and sum(roots.values()) > FEW
    ]
