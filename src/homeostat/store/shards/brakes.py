"""What holds healing back beyond the rows of one shard: other shards of the stack, and what is seen of its project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, or_, select, update

from homeostat.model.observed import Presence
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.sql.prepared import prepared

FEW = 3
"""So many things may be absent at once without a doubt about the look."""
PATIENCE_S = 600.0
"""How long a doubt lasts at least that ends by itself."""

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


@dataclass(frozen=True, slots=True)
class ParentBrake:
    """What is said of a nested stack in the stack around it. name, metadata — of the resource that it is the reality
    of; healing, exceptions, parent_key — of the stack around."""

    name: str
    metadata: Any
    healing: Mapping[str, Any] | None
    exceptions: Mapping[str, Mapping[str, Any]] | None
    parent_key: str | None


def around(tx: Connection, key: str) -> ParentBrake | None:
    """key — of the resource that a nested stack is the reality of."""
    columns = (_resource.c.name, _resource.c.metadata, _stack.c.healing, _stack.c.exceptions, _stack.c.parent_key)
    joined = _resource.join(_stack, _stack.c.id == _resource.c.stack_id)
    row = tx.execute(select(*columns).select_from(joined).where(_resource.c.key == key)).first()
    return None if row is None else ParentBrake(*row)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of things, as types of resources. types — those of the kind; beside — those of other kinds of the same
    service of the cloud."""

    types: Sequence[str]
    beside: Sequence[str] = ()


def is_blind(tx: Connection, project: str, kind: Kind, since: float) -> bool:
    """Are more than a few things of a kind absent in a project, and is there no proof that who looks can see?

    A proof is one that was there before and is seen since; or, `PATIENCE_S` later, a canary: one of the kind that was
    made since, or something else of the same service, seen then. since — of the newest look that found nothing.
    """
    if len(_some_absent(tx, project, kind.types).all()) <= FEW:
        return False
    return not _any_seen(tx, project, kind.types, [*kind.types, *kind.beside], since).scalar_one()


def _of_project(project: str, types: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    return *_LIVE, _stack.c.project == project, _resource.c.type.in_(types)


@prepared
def _some_absent(project: str, types: Sequence[str]) -> Select[Any]:
    absent = select(_resource.c.key).select_from(_looks).where(*_of_project(project, types))
    return absent.where(_observed.c.presence == Presence.ABSENT).limit(FEW + 1)


@prepared
def _any_seen(project: str, types: Sequence[str], canaries: Sequence[str], since: float) -> Select[Any]:
    looked = _looks.join(_shard, (_shard.c.stack_id == _resource.c.stack_id) & (_shard.c.number == _resource.c.shard))
    here = (*_LIVE, _stack.c.project == project, _observed.c.presence == Presence.PRESENT)
    older = (_resource.c.type.in_(types), _resource.c.created_at < since, _shard.c.looked_at >= since)
    later = (_resource.c.type.in_(canaries), _shard.c.looked_at >= since + PATIENCE_S)
    canary = (*later, _resource.c.status == Status.COMPLETE)
    return select(exists(select(1).select_from(looked).where(*here, or_(and_(*older), and_(*canary)))))


@dataclass(frozen=True, slots=True)
class Doubted:
    """So many things of a kind wait in a project, since the look at them is doubted. stacks — ids of their root
    stacks."""

    project: str
    kind: str
    absent: int
    stacks: Sequence[str]


def doubted(tx: Connection, kinds: Mapping[str, Kind]) -> list[Doubted]:
    """Of all projects: what `is_blind` holds up, shard by shard, as the passes over them ask it. What was replaced
    waits for nothing. Reads every row: for the doctor.

    kinds — by the names of the cloud port.
    """
    kind_of = {name: kind for kind, each in kinds.items() for name in each.types}
    waiting: dict[tuple[str, str, str, str, int], tuple[int, float]] = {}
    for project, root, name, stack_id, number, absent, seen_at in _absent(tx, list(kind_of)):
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


@prepared
def _absent(types: Sequence[str]) -> Select[Any]:
    columns = (_stack.c.project, _stack.c.root_id, _resource.c.type, _resource.c.stack_id, _resource.c.shard)
    return (
        select(*columns, func.count(), func.max(_observed.c.seen_at))
        .select_from(_looks)
        .where(*_LIVE, _observed.c.presence == Presence.ABSENT, _resource.c.type.in_(types))
        .where(_resource.c.replaced_by.is_(None))
        .group_by(*columns)
    )
