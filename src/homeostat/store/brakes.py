"""What holds healing back beyond the rows of one shard: other shards of the stack, and what is seen of its project."""

from collections.abc import Mapping, Sequence
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
_looks = _resource.join(_stack, _stack.c.id == _resource.c.stack_id).join(_observed, _observed.c.key == _resource.c.key)
_LIVE = (_stack.c.deleted_at.is_(None), _resource.c.action != Action.DELETE, _resource.c.handle != "")


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
    mine = (*_LIVE, _stack.c.project == project, _resource.c.type.in_(types))
    absent = select(_resource.c.key).select_from(_looks).where(*mine, _observed.c.presence == Presence.ABSENT)
    if len(tx.execute(absent.limit(FEW + 1)).all()) <= FEW:
        return False
    looked = _looks.join(_shard, (_shard.c.stack_id == _resource.c.stack_id) & (_shard.c.number == _resource.c.shard))
    seen = (_observed.c.presence == Presence.PRESENT, _resource.c.created_at < since, _shard.c.looked_at >= since)
    return not tx.execute(select(exists(select(1).select_from(looked).where(*mine, *seen)))).scalar_one()


@dataclass(frozen=True, slots=True)
class Doubted:
    """So many things of a kind wait in a project, since the look at them is doubted. stacks — ids of their root
    stacks."""

    project: str
    kind: str
    absent: int
    stacks: Sequence[str]


def doubted(tx: Connection, kinds: Mapping[str, Sequence[str]]) -> list[Doubted]:
    """Of all projects: what `is_blind` holds up, shard by shard, as the passes over them ask it. What was replaced
    waits for nothing. Reads every row: for the doctor.

    kinds — of the cloud port -> names of the types of that kind.
    """
    kind_of = {name: kind for kind, names in kinds.items() for name in names}
    columns = (_stack.c.project, _stack.c.root_id, _resource.c.type, _resource.c.stack_id, _resource.c.shard)
    chosen = (
        select(*columns, func.count(), func.max(_observed.c.seen_at))
        .select_from(_looks)
        .where(*_LIVE, _observed.c.presence == Presence.ABSENT, _resource.c.type.in_(kind_of))
        .where(_resource.c.replaced_by.is_(None))
        .group_by(*columns)
    )
    waiting: dict[tuple[str, str, str, str, int], tuple[int, float]] = {}
    for project, root, name, stack_id, number, absent, seen_at in tx.execute(chosen):
        place = (project, kind_of[name], root, stack_id, number)
        before, since = waiting.get(place, (0, 0.0))
        waiting[place] = (before + absent, max(since, seen_at))
    blind: dict[tuple[str, str, float], bool] = {}
    found: dict[tuple[str, str], dict[str, int]] = {}
    for (project, kind, root, _, _), (absent, since) in waiting.items():
        look = (project, kind, since)
        if look not in blind:
            blind[look] = is_blind(tx, project, kinds[kind], since)
        if blind[look]:
            roots = found.setdefault((project, kind), {})
            roots[root] = roots.get(root, 0) + absent
    return [Doubted(*place, sum(roots.values()), sorted(roots)) for place, roots in sorted(found.items())]
