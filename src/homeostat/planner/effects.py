"""Side effects of an act: the things to observe again because the act has changed them (ADR 0099). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.kinds.effects import EFFECTS, Named, changed_by, held_things
from homeostat.model.intent import changed_of
from homeostat.model.plan import Event
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner.names import physical_name
from homeostat.resources.registry import is_outside, kind_of, type_of

ENDS = {Action.CREATE: None, Action.UPDATE: changed_of, Action.DELETE: None}
"""Action whose end has side effects -> function that returns the changed fields; None if all count as changed."""

ALSO_NAMED_BY = ("name", "floating_ip_address")
"""Fields by which templates may name a thing in place of its id."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a thing as a side effect.

    Attributes:
        named: The changed thing.
        requested: Whether the request named it, and not only the cloud.
    """

    named: Named
    requested: bool


@dataclass(frozen=True, slots=True)
class ToLookAt:
    """Things to observe again.

    Attributes:
        rows: Rows of the shard.
        elsewhere: Things named by the template that belong to other shards.
    """

    rows: Sequence[Resource] = ()
    elsewhere: Sequence[Named] = field(default=())


def has_ended(row: Resource, events: Iterable[Event], *, removed: bool) -> bool:
    """Return whether an act has ended that may have changed other things."""
    if kind_of(row.type) not in EFFECTS or not row.handle:
        return False
    ended = any(event.status == Status.COMPLETE and event.action in ENDS for event in events)
    return ended and (removed or row.action in ENDS)


def changed_elsewhere(world: World, row: Resource, before: Mapping[str, Any]) -> list[Change]:
    """Return the side effects of creating, updating or deleting the thing of a row.

    Args:
        before: The observed properties before the act.
    """
    seen = world.seen.get(row.key)
    after = seen.observation.properties if seen is not None else {}
    # The fields of the request limit the effects: new metadata of a server change none of its ports.
    fields = changed_of(row.intent) if row.action == Action.UPDATE else None
    # Before and after: a port that the server has given up has changed as much as the new one.
    kind, requested = kind_of(row.type), _requested(world, row)
    by_template = set(changed_by(kind, [requested], fields))
    return [Change(named, named in by_template) for named in changed_by(kind, [requested, before, after], fields)]


def to_look_at(world: World, current: Mapping[str, Resource], changes: Iterable[Change]) -> ToLookAt:
    """Return which of the changed things to observe again: resources at rest.

    A resource in progress is observed anyway before it is complete; a leftover is not read any more.

    Args:
        current: Name -> current row.
    """
    by_name: dict[Named, Change] = {change.named: change for change in changes}
    if not by_name:
        return ToLookAt()
    through = {(named.kind, named.through) for named in by_name}
    rows, matched = list[Resource](), set[Named]()
    for row in current.values():
        kinds = [pair for pair in through if pair[0] == kind_of(row.type)]
        if not kinds or not row.handle:
            continue
        concerned = {named for _, held in kinds for named in _names_of(world, row, held)} & by_name.keys()
        matched |= concerned
        if concerned and is_readable(row):
            rows.append(row)
    # A thing named in a template may belong to another stack; a thing named by the cloud alone belongs to none.
    return ToLookAt(
        rows, [change.named for change in by_name.values() if change.requested and change.named not in matched]
    )


def is_readable(row: Resource) -> bool:
    """Return whether a row is at rest and the attributes of its thing may be read."""
    return not row.busy and not row.deleting and row.action != Action.INIT and is_outside(row.type)


def _names_of(world: World, row: Resource, through: str) -> set[Named]:
    """Return the names of a row's thing, or of the things of kind `through` held by the thing."""
    seen, kind = world.seen.get(row.key), kind_of(row.type)
    properties = seen.observation.properties if seen is not None else {}
    if through:
        names = held_things(kind, through, [_requested(world, row), properties])
    else:
        names = {str(name) for name in (row.handle, *map(properties.get, ALSO_NAMED_BY)) if name}
    return {Named(kind, name, through) for name in names}


def _requested(world: World, row: Resource) -> Mapping[str, Any]:
    """Return the cloud object that was last requested."""
    kind = type_of(row.type)
    name = physical_name(world.stack.name, row.name, row.key, kind.name_limit)
    return kind.spec(kind.complete(row.properties), name)
