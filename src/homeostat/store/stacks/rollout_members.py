"""Which members of a group get the new metadata, or definition, next, in the order of their rollout (RU3, RU4).

A step costs its members, and those of a shard: shards are read one after the other. For the order by zone the places of
members, which are pairs of a zone and a shard, are collected once, when the rollout begins. The caller has locked the
row of `rollout`; `shards` is the number of shards of the child stack.
"""

import hashlib
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, delete, exists, func, insert, select

from homeostat.model.rollout import MemberOrder, Rollout
from homeostat.model.status import Action, Status
from homeostat.resources.signals import FAILURE
from homeostat.store import schema
from homeostat.store.database import Transaction

_active = schema.active_metadata_updates
_resource = schema.resource
_observed = schema.resource_observed
_HAVE_THINGS = (_resource.c.handle != "", _resource.c.replaced_by.is_(None), _resource.c.action != Action.DELETE)
"""Conditions of rows of members that have a thing."""
ZONE = "availability_zone"
"""Field of an observed server with its zone."""
ROWS_PER_QUERY = 500
"""Members that a statement names."""
ZONED_SHARDS = 5
"""Shards whose members are searched for zones in a transaction."""


class Place(NamedTuple):
    """Members that get the change together: those of a shard, or of a shard and a zone."""

    shard: int
    zone: str | None = None


def find_zones(tx: Transaction, rollout: Rollout, shards: int) -> Rollout:
    """Collect the zones of the members of some more shards.

    Args:
        rollout: The rollout, which has not reached a member yet.

    Returns:
        The rollout with the zones so far, and in `place` the number of shards done.
    """
    zones = {(str(zone), int(shard)) for zone, shard in (rollout.zones or ())} if rollout.place else set()
    end = min(rollout.place + ZONED_SHARDS, shards)
    for number in range(rollout.place, end):
        zones |= {(_zone(row), number) for row in _rows(tx, rollout, _resource.c.shard == number, zoned=True)}
    return replace(rollout, zones=sorted(zones), place=end)


def activate(tx: Transaction, rollout: Rollout, shards: int, wanted: int) -> tuple[list[str], int]:
    """Give the new metadata to the next members, in the order of the rollout.

    Returns:
        The instance ids of the members, fewer than wanted at the end, and the new `place` of the rollout.
    """
    members = dict.fromkeys(_first_of(tx, rollout)[:wanted])
    place, order = rollout.place, _places(rollout, shards)
    again = place > 0
    while len(members) < wanted and (place < len(order) or again):
        if place == len(order):  # New members may have appeared in shards that were done.
            place, again = 0, False
        here = [handle for handle in _at(tx, rollout, order[place]) if handle not in members]
        taken = here[: wanted - len(members)]
        members |= dict.fromkeys(taken)
        if len(taken) == len(here):
            place += 1
    _insert(tx, rollout, list(members))
    return list(members), place


def _insert(tx: Transaction, rollout: Rollout, handles: Sequence[str]) -> None:
    rows = [{"resource_id": rollout.key, "instance_id": handle, "step": rollout.step} for handle in handles]
    if rows:
        tx.execute(insert(_active), rows)


def next_by_zone(
    tx: Transaction, rollout: Rollout, shards: int, wanted: int, unreached: Container[str]
) -> tuple[list[str], int]:
    """Return the members that get a new definition next in a rollout zone by zone.

    Args:
        rollout: The rollout, whose zones are known.
        unreached: Names of the members without the new definition.

    Returns:
        Their names, and the new `place` of the rollout.
    """
    names: dict[str, None] = {}
    place, order = rollout.place, _places(rollout, shards)
    while len(names) < wanted and place < len(order):
        zone, shard = order[place].zone, _resource.c.shard == order[place].shard
        rows = _in_order(rollout, _rows(tx, rollout, shard, zoned=zone is not None))
        here = [row.name for row in rows if row.name in unreached and (zone is None or _zone(row) == zone)]
        new = [name for name in here if name not in names]
        taken = new[: wanted - len(names)]
        names |= dict.fromkeys(taken)
        if len(taken) == len(new):
            place += 1
    return list(names), place


def failed_names(tx: Transaction, rollout: Rollout) -> set[str]:
    """Return the names of the FAILED members, including members without a thing."""
    failed = (_resource.c.status == Status.FAILED, _resource.c.replaced_by.is_(None))
    return set(tx.execute(select(_resource.c.name).where(_resource.c.stack_id == rollout.members, *failed)).scalars())


def renew(
    tx: Transaction,
    rollout: Rollout,
    reached: Callable[[str], bool],
    shards: Collection[int],
    expected: int,
    since: int | None = None,
) -> int:
    """Update the rows of members with a new definition after their replacement, for the definition or by healing.

    New things belong to the step. The rows of deleted things stay until each member has a thing, so that the step
    waits, and for good if the thing has reported a failure.

    Args:
        reached: Whether the member of a name shall have the new definition.
        shards: Numbers of the shards with such members.
        expected: How many members shall have the new definition.
        since: Only members changed by this or a later revision of the child stack; None for all.

    Returns:
        How many members have the new definition, or are on their way to it.
    """
    present = {row.handle: (row.name, row.revision) for row in _present(tx, rollout, shards)}
    rows = tx.execute(select(_active.c.instance_id, _active.c.status).where(_in_rollout(rollout))).all()
    known = {row.instance_id for row in rows}
    handles = [
        handle
        for handle, (name, revision) in present.items()
        if reached(name) and (handle in known or since is None or revision >= since)
    ]
    _insert(tx, rollout, [handle for handle in handles if handle not in known])
    deleted = [row.instance_id for row in rows if row.instance_id not in present and row.status != FAILURE]
    for start in range(0, len(deleted) if len(handles) >= expected else 0, ROWS_PER_QUERY):
        some = deleted[start : start + ROWS_PER_QUERY]
        tx.execute(delete(_active).where(_in_rollout(rollout), _active.c.instance_id.in_(some)))
    return len(handles)


def _in_rollout(rollout: Rollout) -> ColumnElement[bool]:
    return _active.c.resource_id == rollout.key


def _present(tx: Transaction, rollout: Rollout, shards: Collection[int]) -> Sequence[Any]:
    """Return name, handle and revision of the members with a thing in these shards."""
    chosen = select(_resource.c.name, _resource.c.handle, _resource.c.revision)
    return tx.execute(chosen.where(*_are_members(rollout), _resource.c.shard.in_(sorted(shards)))).all()


def _first_of(tx: Transaction, rollout: Rollout) -> list[str]:
    """Return the members that come first: those of a previous rollout, and FAILED members."""
    unreached = _is_unreached(rollout)
    first = _handles(tx, rollout, _resource.c.handle.in_(rollout.first), unreached) if rollout.first else []
    failed = select(func.sum(schema.shard.c.failures)).where(schema.shard.c.stack_id == rollout.members)
    if tx.execute(failed).scalar():
        first += _handles(tx, rollout, _resource.c.status == Status.FAILED, unreached)
    return list(dict.fromkeys(first))


def _places(rollout: Rollout, shards: int) -> list[Place]:
    """Return all places in the order of the rollout.

    The last places, without a zone, are for members that came, or changed their zone, after the zones were collected.
    """
    each_shard = [Place(number) for number in range(shards)]
    if rollout.settings.order == MemberOrder.RANDOM:
        return sorted(each_shard, key=lambda place: _drawn(rollout.settings.seed, f"shard {place.shard}"))
    return [Place(int(shard), str(zone)) for zone, shard in rollout.zones or ()] + each_shard


def _at(tx: Transaction, rollout: Rollout, place: Place) -> list[str]:
    """Return the handles of the members of a place without the new metadata, in the order of the rollout."""
    where = (_resource.c.shard == place.shard, _is_unreached(rollout))
    if place.zone is None:
        return _handles(tx, rollout, *where)
    rows = [row for row in _rows(tx, rollout, *where, zoned=True) if _zone(row) == place.zone]
    return [row.handle for row in _in_order(rollout, rows)]


def _is_unreached(rollout: Rollout) -> ColumnElement[bool]:
    """Return the condition for members without the new metadata."""
    conditions = (_active.c.resource_id == rollout.key, _active.c.instance_id == _resource.c.handle)
    return ~exists(select(_active.c.instance_id).where(*conditions))


def _handles(tx: Transaction, rollout: Rollout, *where: ColumnElement[bool]) -> list[str]:
    """Return the handles of members in the order of the rollout, regardless of zones."""
    return [row.handle for row in _in_order(rollout, _rows(tx, rollout, *where))]


def _rows(tx: Transaction, rollout: Rollout, *where: ColumnElement[bool], zoned: bool = False) -> Sequence[Row[Any]]:
    """Return members, with the observed object of each if `zoned`."""
    chosen = select(_resource.c.name, _resource.c.handle, *([_observed.c.object] if zoned else []))
    if zoned:
        chosen = chosen.outerjoin(_observed, _observed.c.key == _resource.c.key)
    return tx.execute(chosen.where(*_are_members(rollout), *where)).all()


def _are_members(rollout: Rollout) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for members of the group that have a thing."""
    return (_resource.c.stack_id == rollout.members, *_HAVE_THINGS)


def count_reached(tx: Transaction, rollout: Rollout) -> int:
    """Return how many present members have the new metadata."""
    chosen = select(func.count()).where(*_are_members(rollout), ~_is_unreached(rollout))
    return int(tx.execute(chosen).scalar_one())


def _zone(row: Row[Any]) -> str:
    """Return the observed zone of a member; "" for a member without a zone, such as a stack."""
    seen = row.object
    return str(seen.get(ZONE) or "") if isinstance(seen, Mapping) else ""


def _in_order(rollout: Rollout, rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    if rollout.settings.order == MemberOrder.RANDOM:
        return sorted(rows, key=lambda row: _drawn(rollout.settings.seed, row.name))
    return sorted(rows, key=lambda row: (len(row.name), row.name))


def _drawn(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()


def gone(tx: Transaction, rollout: Rollout, limit: int) -> list[str]:
    """Return members of the current step without a report whose things no longer exist."""
    conditions = (_in_rollout(rollout), _active.c.step == rollout.step, _active.c.status == "")
    waiting = list(tx.execute(select(_active.c.instance_id).where(*conditions).limit(limit)).scalars())
    present: set[str] = set()
    for start in range(0, len(waiting), ROWS_PER_QUERY):
        # Without a condition on the stack, for which SQLite would read all of its members.
        chosen = select(_resource.c.stack_id, _resource.c.handle)
        some = _resource.c.handle.in_(waiting[start : start + ROWS_PER_QUERY])
        rows = tx.execute(chosen.where(some, *_HAVE_THINGS))
        present |= {row.handle for row in rows if row.stack_id == rollout.members}
    return [handle for handle in waiting if handle not in present]


def drop(tx: Transaction, rollout: Rollout, members: Sequence[str]) -> None:
    """Forget members of the current step without a report."""
    conditions = (_in_rollout(rollout), _active.c.step == rollout.step, _active.c.status == "")
    if members:
        tx.execute(delete(_active).where(*conditions, _active.c.instance_id.in_(members)))
