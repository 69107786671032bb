"""Limits of healing that depend on several shards (ADR 0046).

They follow from the sibling shards of a stack, from its ancestors, and from the observations of its whole project.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, or_, select, update

from homeostat.model.observed import Presence
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql.prepared import prepared

FEW = 3
"""Number of things of a kind that may be absent at once before the observations are doubted."""
PATIENCE_S = 600.0
"""Minimum time of a doubt before a canary can end it."""

_resource = schema.resource
_observed = schema.resource_observed
_shard = schema.shard
_stack = schema.stack
_looks = _resource.join(_stack, _stack.c.id == _resource.c.stack_id).join(_observed, _observed.c.key == _resource.c.key)
_LIVE = (_stack.c.deleted_at.is_(None), _resource.c.action != Action.DELETE, _resource.c.handle != "")


class SiblingCounts(NamedTuple):
    """Counts over the siblings of a shard.

    Attributes:
        changing: The number of resources being changed, or about to be: unfinished nodes at the newest revision.
    """

    healing: int
    changing: int
    revision: int


def sibling_counts(tx: Transaction, stack_id: str, number: int) -> SiblingCounts:
    """Return the counts over the siblings of a shard."""
    return SiblingCounts(*_sibling_counts(tx, stack_id, number).one())


@prepared
def _sibling_counts(stack_id: str, number: int) -> Select[Any]:
    siblings = (_shard.c.stack_id == _stack.c.id, _shard.c.number != number)
    left = _shard.c.planned - _shard.c.done - _shard.c.healing
    begun = and_(_shard.c.settled_revision < _stack.c.revision, left > 0)
    changing = func.sum(case((begun, left), else_=0))
    columns = (func.coalesce(func.sum(_shard.c.healing), 0), func.coalesce(changing, 0), _stack.c.revision)
    joined = _stack.outerjoin(_shard, and_(*siblings))
    return select(*columns).select_from(joined).where(_stack.c.id == stack_id).group_by(_stack.c.revision)


def count(tx: Transaction, stack_id: str, number: int, healing: int) -> None:
    """Record the number of resources being healed in this shard.

    A pass that increases the number has locked the row of the stack: otherwise two shards could both use up the share
    that each has seen free.
    """
    conditions = (_shard.c.stack_id == stack_id, _shard.c.number == number)
    tx.execute(update(_shard).where(*conditions).values(healing=healing))


def owner_of(tx: Transaction, key: str) -> Any:
    """Return a nested stack's parent resource by its row key: type, properties and action; None if absent.

    The row also has the action and the `parent_key` of the resource's stack, as `stack_action` and `parent_key`.
    """
    return _owner_of(tx, key).first()


@prepared
def _owner_of(key: str) -> Select[Any]:
    columns = (_resource.c.type, _resource.c.properties, _resource.c.action)
    of_stack = (_stack.c.action.label("stack_action"), _stack.c.parent_key)
    joined = _resource.join(_stack, _stack.c.id == _resource.c.stack_id)
    return select(*columns, *of_stack).select_from(joined).where(_resource.c.key == key)


@dataclass(frozen=True, slots=True)
class ParentBrake:
    """Healing settings for a nested stack in its parent stack."""

    name: str
    metadata: Any
    healing: Mapping[str, Any] | None
    exceptions: Mapping[str, Mapping[str, Any]] | None
    parent_key: str | None


def parent_brake(tx: Transaction, key: str) -> ParentBrake | None:
    """Return the healing settings in the parent of a nested stack; None if there is no such resource."""
    row = _parent_brake(tx, key).first()
    return None if row is None else ParentBrake(*row)


@prepared
def _parent_brake(key: str) -> Select[Any]:
    columns = (_resource.c.name, _resource.c.metadata, _stack.c.healing, _stack.c.exceptions, _stack.c.parent_key)
    joined = _resource.join(_stack, _stack.c.id == _resource.c.stack_id)
    return select(*columns).select_from(joined).where(_resource.c.key == key)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of things, as resource types.

    Attributes:
        siblings: The types of the other kinds of the same cloud service.
    """

    types: Sequence[str]
    siblings: Sequence[str] = ()


def is_blind(tx: Transaction, project: str, kind: Kind, since: float) -> bool:
    """Return whether the absence of things of a kind in a project is doubted.

    The absence is doubted if more than `FEW` are absent, and nothing proves that the observer can see. Proof is a thing
    of the kind that existed before and was seen since; or, after `PATIENCE_S`, a canary: a newer thing of the kind, or
    any thing of the same cloud service.

    Args:
        since: The time of the newest look that found things absent.
    """
    if len(_some_absent(tx, project, kind.types, FEW + 1).all()) <= FEW:
        return False
    return not _any_seen(tx, project, kind.types, [*kind.types, *kind.siblings], since).scalar_one()


def _of_project(project: str, types: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    return *_LIVE, _stack.c.project == project, _resource.c.type.in_(types)


@prepared
def _some_absent(project: str, types: Sequence[str], most: int) -> Select[Any]:
    absent = select(_resource.c.key).select_from(_looks).where(*_of_project(project, types))
    return absent.where(_observed.c.presence == Presence.ABSENT).limit(most)


@prepared
def _any_seen(project: str, types: Sequence[str], canaries: Sequence[str], since: float) -> Select[Any]:
    looked = _looks.join(_shard, (_shard.c.stack_id == _resource.c.stack_id) & (_shard.c.number == _resource.c.shard))
    here = (*_LIVE, _stack.c.project == project, _observed.c.presence == Presence.PRESENT)
    # `seen_at` changes only if something differs, or if a thing bears witness for a look that has missed others. An
    # unchanged thing shows a look only in the `looked_at` of its shard.
    seen = or_(_shard.c.looked_at >= since, _observed.c.seen_at >= since)
    older = (_resource.c.type.in_(types), _resource.c.created_at < since, seen)
    later = (_resource.c.type.in_(canaries), _shard.c.looked_at >= since + PATIENCE_S)
    canary = (*later, _resource.c.status == Status.COMPLETE)
    return select(exists(select(1).select_from(looked).where(*here, or_(and_(*older), and_(*canary)))))


@dataclass(frozen=True, slots=True)
class Doubted:
    """Things of a kind in a project whose healing waits, since their absence is doubted.

    Attributes:
        stacks: The ids of the stacks to converge once the absence is certain: root stacks, and nested stacks that a
            deletion policy has retained.
    """

    project: str
    kind: str
    absent: int
    stacks: Sequence[str]


def doubted(tx: Transaction, kinds: Mapping[str, Kind]) -> list[Doubted]:
    """Return the things in all projects whose healing `is_blind` delays, judged by shard as in passes.

    Replaced things do not wait, and are left out. For `homeostat doctor`, since all rows are read.

    Args:
        kinds: The kinds, by their names in the cloud port.
    """
    kind_of = {type: name for name, kind in kinds.items() for type in kind.types}
    waiting: dict[tuple[str, str, str, int], tuple[int, float]] = {}
    for project, type, stack_id, number, absent, seen_at in _absent(tx, list(kind_of)):
        place = (project, kind_of[type], stack_id, number)
        before, since = waiting.get(place, (0, 0.0))
        waiting[place] = (before + absent, max(since, seen_at))
    blind: dict[tuple[str, str, float], bool] = {}
    tops: dict[str, str] = {}
    waiting_in: dict[tuple[str, str], dict[str, int]] = {}
    for (project, kind, stack_id, _), (absent, since) in waiting.items():
        look = (project, kind, since)
        if look not in blind:
            blind[look] = is_blind(tx, project, kinds[kind], since)
        if blind[look]:
            stacks = waiting_in.setdefault((project, kind), {})
            outermost = _outermost(tx, stack_id, tops)
            stacks[outermost] = stacks.get(outermost, 0) + absent
    return [Doubted(*place, sum(stacks.values()), sorted(stacks)) for place, stacks in sorted(waiting_in.items())]


def _outermost(tx: Transaction, stack_id: str, tops: dict[str, str]) -> str:
    """Return the stack whose actions reach a stack: the root, or the first retained stack on the way up."""
    if stack_id not in tops:
        parent = tx.execute(_parent_stack(stack_id)).scalar_one_or_none()
        tops[stack_id] = stack_id if parent is None else _outermost(tx, parent, tops)
    return tops[stack_id]


def _parent_stack(stack_id: str) -> Select[Any]:
    """Select the stack of the parent resource of this stack; none for a root stack or a retained stack."""
    joined = _stack.join(_resource, _resource.c.key == _stack.c.parent_key)
    return select(_resource.c.stack_id).select_from(joined).where(_stack.c.id == stack_id)


@prepared
def _absent(types: Sequence[str]) -> Select[Any]:
    columns = (_stack.c.project, _resource.c.type, _resource.c.stack_id, _resource.c.shard)
    return (
        select(*columns, func.count(), func.max(_observed.c.seen_at))
        .select_from(_looks)
        .where(*_LIVE, _observed.c.presence == Presence.ABSENT, _resource.c.type.in_(types))
        .where(_resource.c.replaced_by.is_(None))
        .group_by(*columns)
    )
