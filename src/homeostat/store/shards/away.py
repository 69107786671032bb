"""Members of a group that may be away: signs in the rows of shards, and the rows of such members (ADR 0067).

Shards of a group at rest show no sign, and then nothing more is read.
"""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, case, func, not_, or_, select

from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql.prepared import prepared

NO_SHARD = -1
"""Number that no shard has."""
_resource = schema.resource
_observed = schema.resource_observed
_shard = schema.shard
_stack = schema.stack
_READ = ("key", "stack_id", "shard", "name", "type", "handle", "action", "status", "replaces", "replaced_by", "marks")


class Unrest(NamedTuple):
    """Counts of the part of a group that is not at rest.

    Attributes:
        own: Resources that have failed or are not at rest, and due shards.
        inside: Such resources in the stacks of its members.
    """

    own: int
    inside: int


def unrest_columns(stack_id: Any, but: Any) -> tuple[ColumnElement[int], ColumnElement[int]]:
    """Return `Unrest` as columns of a statement; the shard with the number `but` does not count."""
    unfinished = _shard.c.failures + _shard.c.planned - _shard.c.done
    awake = case((_shard.c.wake_at.is_not(None), 1), else_=0)
    own = select(func.coalesce(func.sum(unfinished + awake), 0)).where(
        _shard.c.stack_id == stack_id, _shard.c.number != but
    )
    joined = _shard.join(_stack, _stack.c.id == _shard.c.stack_id)
    inside = select(func.coalesce(func.sum(unfinished), 0)).select_from(joined)
    inside = inside.where(_stack.c.parent_id == stack_id, _stack.c.deleted_at.is_(None))
    return own.scalar_subquery(), inside.scalar_subquery()


def unrest_of(tx: Transaction, stack_id: str) -> Unrest:
    """Return the part of a group that is not at rest."""
    return Unrest(*_unrest(tx, stack_id).one())


@prepared
def _unrest(stack_id: str) -> Select[Any]:
    columns: tuple[Any, ...] = unrest_columns(stack_id, NO_SHARD)
    return select(*columns)


class PossiblyAway(NamedTuple):
    """A resource that may be away: the relevant columns of its row, and its newest observation."""

    row: Resource
    seen: Seen | None


def possibly_away(tx: Transaction, stack_id: str, but: int = NO_SHARD) -> list[PossiblyAway]:
    """Return the resources of a stack that may be away, except in the shard with the number `but`."""
    resources = []
    for *values, presence in _possibly_away(tx, stack_id, but):
        row = Resource(**dict(zip(_READ, values, strict=True)))
        seen = None if presence is None else Seen(Observation(Presence(presence), row.handle))
        resources.append(PossiblyAway(row, seen))
    return resources


@prepared
def _possibly_away(stack_id: str, but: int) -> Select[Any]:
    columns = (*(_resource.c[name] for name in _READ), _observed.c.presence)
    restless = or_(
        _resource.c.status != Status.COMPLETE,
        (_resource.c.action == Action.INIT) & _resource.c.replaces.is_not(None),
        _observed.c.presence == Presence.ABSENT,
    )
    return (
        select(*columns)
        .outerjoin(_observed, _observed.c.key == _resource.c.key)
        .where(_resource.c.stack_id == stack_id, _resource.c.shard != but, restless)
        .where(_resource.c.action != Action.DELETE, _resource.c.replaced_by.is_(None))
    )


def replaced_for_marks(tx: Transaction, stack_id: str) -> set[str]:
    """Return the names of the resources that are being replaced since they are marked unhealthy.

    A replacement ends when the marked resource is gone, or cannot be deleted.
    """
    return {name for name, marks in _replaced(tx, stack_id) if marks is not None and marks.unhealthy is not None}


@prepared
def _replaced(stack_id: str) -> Select[Any]:
    stays = (_resource.c.action == Action.DELETE) & (_resource.c.status == Status.FAILED)
    return select(_resource.c.name, _resource.c.marks).where(
        _resource.c.stack_id == stack_id,
        _resource.c.replaced_by.is_not(None),
        _resource.c.marks.is_not(None),
        not_(stays),
    )


def restless_inside(tx: Transaction, stack_id: str) -> list[str]:
    """Return the names of the members that are nested stacks and not at rest."""
    return list(_restless_inside(tx, stack_id).scalars())


@prepared
def _restless_inside(stack_id: str) -> Select[Any]:
    joined = _shard.join(_stack, _stack.c.id == _shard.c.stack_id)
    inside = (_stack.c.parent_id == stack_id, _stack.c.deleted_at.is_(None))
    moving = or_(_shard.c.failures > 0, _shard.c.planned > _shard.c.done)
    return select(_stack.c.parent_name).select_from(joined).where(*inside, moving).distinct()
