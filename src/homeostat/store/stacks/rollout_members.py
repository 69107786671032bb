"""Which members of a group get the new metadata, or definition, next, in the order of their rollout (RU3, RU4).

A step costs its members, and those of a shard: shards are read one after the other. For the order by zone the places of
members, which are pairs of a zone and a shard, are collected once, when the rollout begins.
"""

import hashlib
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, func, insert, select

from homeostat.model.rollout import MemberOrder, Rollout
from homeostat.model.status import Action, Status
from homeostat.resources.signals import FAILURE
from homeostat.store import schema

_active = schema.active_metadata_updates
_resource = schema.resource
_observed = schema.resource_observed
_HAVE_THINGS = (_resource.c.handle != "", _resource.c.replaced_by.is_(None), _resource.c.action != Action.DELETE)
"""The conditions that rows of members meet that have a thing."""
ZONE = "availability_zone"
"""Field of an observed server that says in which zone it is."""
ROWS_PER_QUERY = 500
"""Members that one statement names."""
ZONED_SHARDS = 5
"""Shards whose members are looked at for their zones in one transaction."""


class Place(NamedTuple):
    """Members that are reached together: those of a shard, or only those of them in one zone.

    Attributes:
        shard: The shard of the child stack.
        zone: The zone; None for all members.
    """

    shard: int
    zone: str | None = None


def find_zones(tx: Connection, rollout: Rollout, shards: int) -> Rollout:
    """Look for the zones of the members of some more shards.

    Args:
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout, which has not reached a member yet.
        shards: Number of shards of the child stack.

    Returns:
        The rollout with the zones so far, and in `place` how many shards were looked at.
    """
    zones = {(str(zone), int(shard)) for zone, shard in (rollout.zones or ())} if rollout.place else set()
    end = min(rollout.place + ZONED_SHARDS, shards)
    for number in range(rollout.place, end):
        zones |= {(_zone(row), number) for row in _rows(tx, rollout, _resource.c.shard == number, zoned=True)}
    return replace(rollout, zones=sorted(zones), place=end)


def activate(tx: Connection, rollout: Rollout, shards: int, wanted: int) -> tuple[list[str], int]:
    """Give the new metadata to the next members, in the order of the rollout.

    Args:
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout.
        shards: Number of shards of the child stack.
        wanted: How many members.

    Returns:
        The instance ids of the members, and the new `place` of the rollout. Fewer than wanted where there are no more.
    """
    found = dict.fromkeys(_first_of(tx, rollout)[:wanted])
    place, order = rollout.place, _places(rollout, shards)
    again = place > 0
    while len(found) < wanted and (place < len(order) or again):
        if place == len(order):  # Members may have come to shards that were done.
            place, again = 0, False
        here = [each for each in _at(tx, rollout, order[place]) if each not in found]
        taken = here[: wanted - len(found)]
        found |= dict.fromkeys(taken)
        if len(taken) == len(here):
            place += 1
    rows = [{"resource_id": rollout.key, "instance_id": each, "step": rollout.step} for each in found]
    if rows:
        tx.execute(insert(_active), rows)
    return list(found), place


def next_by_zone(
    tx: Connection, rollout: Rollout, shards: int, wanted: int, unreached: Container[str]
) -> tuple[list[str], int]:
    """Return the members that get a new definition next where they are reached zone by zone.

    Args:
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout, whose zones are known.
        shards: Number of shards of the child stack.
        wanted: How many members.
        unreached: Names of the members that do not have it.

    Returns:
        Their names, and the new `place` of the rollout.
    """
    found: dict[str, None] = {}
    place, order = rollout.place, _places(rollout, shards)
    while len(found) < wanted and place < len(order):
        zone, shard = order[place].zone, _resource.c.shard == order[place].shard
        rows = _in_order(rollout, _rows(tx, rollout, shard, zoned=zone is not None))
        here = [row.name for row in rows if row.name in unreached and (zone is None or _zone(row) == zone)]
        new = [name for name in here if name not in found]
        taken = new[: wanted - len(found)]
        found |= dict.fromkeys(taken)
        if len(taken) == len(new):
            place += 1
    return list(found), place


def failed_names(tx: Connection, rollout: Rollout) -> set[str]:
    """Return the names of the FAILED members, also of those that have no thing."""
    failed = (_resource.c.status == Status.FAILED, _resource.c.replaced_by.is_(None))
    return set(tx.execute(select(_resource.c.name).where(_resource.c.stack_id == rollout.members, *failed)).scalars())


def renew(
    tx: Connection,
    rollout: Rollout,
    reached: Callable[[str], bool],
    shards: Collection[int],
    expected: int,
    since: int | None = None,
) -> int:
    """Bring the rows of members with a new definition up to date, since members are replaced for it, and by healing.

    Things that have come are in the step. Those that are gone are forgotten once there is a thing for each member,
    unless they have reported a failure: until then the step waits for them.

    Args:
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout.
        reached: Whether the member of a name is to have the new definition.
        shards: Numbers of the shards with such members.
        expected: How many members are to have it.
        since: Only members that a revision of the child stack from this one on has changed; None for all.

    Returns:
        How many members have it, or are on their way to it.
    """
    there = {row.handle: (row.name, row.revision) for row in _present(tx, rollout, shards)}
    rows = tx.execute(select(_active.c.instance_id, _active.c.status).where(_mine(rollout))).all()
    known = {row.instance_id for row in rows}
    names_left = [
        handle
        for handle, (name, revision) in there.items()
        if reached(name) and (handle in known or since is None or revision >= since)
    ]
    come = [handle for handle in names_left if handle not in known]
    if come:
        tx.execute(
            insert(_active), [{"resource_id": rollout.key, "instance_id": each, "step": rollout.step} for each in come]
        )
    gone = [row.instance_id for row in rows if row.instance_id not in there and row.status != FAILURE]
    for start in range(0, len(gone) if len(names_left) >= expected else 0, ROWS_PER_QUERY):
        some = gone[start : start + ROWS_PER_QUERY]
        tx.execute(delete(_active).where(_mine(rollout), _active.c.instance_id.in_(some)))
    return len(names_left)


def _mine(rollout: Rollout) -> ColumnElement[bool]:
    return _active.c.resource_id == rollout.key


def _present(tx: Connection, rollout: Rollout, shards: Collection[int]) -> Sequence[Any]:
    """Return name, handle and revision of all members in these shards that have a thing."""
    chosen = select(_resource.c.name, _resource.c.handle, _resource.c.revision)
    return tx.execute(chosen.where(*_are_members(rollout), _resource.c.shard.in_(sorted(shards)))).all()


def _first_of(tx: Connection, rollout: Rollout) -> list[str]:
    """Return the members that come first: those with other new metadata before, and FAILED ones."""
    unreached = _is_unreached(rollout)
    there = _handles(tx, rollout, _resource.c.handle.in_(rollout.first), unreached) if rollout.first else []
    failed = select(func.sum(schema.shard.c.failures)).where(schema.shard.c.stack_id == rollout.members)
    if tx.execute(failed).scalar():
        there += _handles(tx, rollout, _resource.c.status == Status.FAILED, unreached)
    return list(dict.fromkeys(there))


def _places(rollout: Rollout, shards: int) -> list[Place]:
    """Return all places in the order of the rollout.

    The last ones have members that came, or moved to another zone, since the zones were collected.
    """
    each_shard = [Place(number) for number in range(shards)]
    if rollout.settings.order == MemberOrder.RANDOM:
        return sorted(each_shard, key=lambda place: _drawn(rollout.settings.seed, f"shard {place.shard}"))
    return [Place(int(shard), str(zone)) for zone, shard in rollout.zones or ()] + each_shard


def _at(tx: Connection, rollout: Rollout, place: Place) -> list[str]:
    """Return the handles of the members of a place that do not have the new metadata, in the order of the rollout."""
    where = (_resource.c.shard == place.shard, _is_unreached(rollout))
    if place.zone is None:
        return _handles(tx, rollout, *where)
    rows = [row for row in _rows(tx, rollout, *where, zoned=True) if _zone(row) == place.zone]
    return [row.handle for row in _in_order(rollout, rows)]


def _is_unreached(rollout: Rollout) -> ColumnElement[bool]:
    """Return the condition that a member does not have the new metadata."""
    conditions = (_active.c.resource_id == rollout.key, _active.c.instance_id == _resource.c.handle)
    return ~exists(select(_active.c.instance_id).where(*conditions))


def _handles(tx: Connection, rollout: Rollout, *where: ColumnElement[bool]) -> list[str]:
    """Return the handles of members, in the order of the rollout but for their zones."""
    return [row.handle for row in _in_order(rollout, _rows(tx, rollout, *where))]


def _rows(tx: Connection, rollout: Rollout, *where: ColumnElement[bool], zoned: bool = False) -> Sequence[Row[Any]]:
    """Return members, with what was observed of each if `zoned`."""
    chosen = select(_resource.c.name, _resource.c.handle, *([_observed.c.object] if zoned else []))
    if zoned:
        chosen = chosen.outerjoin(_observed, _observed.c.key == _resource.c.key)
    return tx.execute(chosen.where(*_are_members(rollout), *where)).all()


def _are_members(rollout: Rollout) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that the members of a group meet that have a thing."""
    return (_resource.c.stack_id == rollout.members, *_HAVE_THINGS)


def count_reached(tx: Connection, rollout: Rollout) -> int:
    """Return how many members have the new metadata; those that have gone since are none."""
    chosen = select(func.count()).where(*_are_members(rollout), ~_is_unreached(rollout))
    return int(tx.execute(chosen).scalar_one())


def _zone(row: Row[Any]) -> str:
    """Return the zone in which a member was seen; "" for one that is in none, such as a stack."""
    seen = row.object
    return str(seen.get(ZONE) or "") if isinstance(seen, Mapping) else ""


def _in_order(rollout: Rollout, rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    if rollout.settings.order == MemberOrder.RANDOM:
        return sorted(rows, key=lambda row: _drawn(rollout.settings.seed, row.name))
    return sorted(rows, key=lambda row: (len(row.name), row.name))


def _drawn(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()


def gone(tx: Connection, rollout: Rollout, limit: int) -> list[str]:
    """Return members of the current step that have not reported and whose things do not exist any more.

    Args:
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout.
        limit: How many members are looked at.
    """
    conditions = (_mine(rollout), _active.c.step == rollout.step, _active.c.status == "")
    waiting = list(tx.execute(select(_active.c.instance_id).where(*conditions).limit(limit)).scalars())
    there: set[str] = set()
    for start in range(0, len(waiting), ROWS_PER_QUERY):
        # Without a condition on the stack, for which SQLite would read all of its members.
        chosen = select(_resource.c.stack_id, _resource.c.handle)
        some = _resource.c.handle.in_(waiting[start : start + ROWS_PER_QUERY])
        rows = tx.execute(chosen.where(some, *_HAVE_THINGS))
        there |= {row.handle for row in rows if row.stack_id == rollout.members}
    return [each for each in waiting if each not in there]


def drop(tx: Connection, rollout: Rollout, members: Sequence[str]) -> None:
    """Forget members of the current step that have not reported."""
    conditions = (_mine(rollout), _active.c.step == rollout.step, _active.c.status == "")
    if members:
        tx.execute(delete(_active).where(*conditions, _active.c.instance_id.in_(members)))
