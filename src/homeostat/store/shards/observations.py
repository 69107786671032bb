"""Observations: what observers read and write, for things of many shards at once (CV7, ADR 0010).

Observers own no shard: they only replace older observations by newer ones, and wake the shard that has to judge them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, CursorResult, Select, Text, and_, func, select, tuple_, type_coerce
from sqlalchemy.engine.interfaces import Dialect

from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status
from homeostat.resources.base import Thing
from homeostat.resources.registry import type_of
from homeostat.store import schema
from homeostat.store.database import Database, row_lock
from homeostat.store.encryption.encrypted_cells import MARK, Lost
from homeostat.store.shards import shard_state
from homeostat.store.sql import bulk
from homeostat.store.sql.bulk import Values
from homeostat.store.sql.bulk_statements import Change
from homeostat.store.sql.prepared import prepared

_resource = schema.resource
_observed = schema.resource_observed


@dataclass(frozen=True, slots=True)
class WatchedThing:
    """One thing to observe, with its last observation.

    Attributes:
        key: The key of its row.
        acted_at: When it was last acted on, in seconds since the epoch; None while an act is under way.
        busy: Its resource is IN_PROGRESS.
        properties: The properties last requested of the cloud.
        presence: The presence last seen; None if it was never observed.
        seen: The properties last seen; None if it was never observed.
        secret: Its row holds secrets, so what is seen of it may, too.
        checked: A health policy holds for things of its shard.
        seen_at: When what was last seen differed from before, or bore witness, in seconds since the epoch; None if it
            was never observed.
    """

    key: str
    stack_id: str
    shard: int
    project: str
    name: str
    type: str
    handle: str
    acted_at: float | None
    busy: bool
    properties: Mapping[str, Any]
    presence: str | None
    seen: Mapping[str, Any] | None
    secret: bool = False
    checked: bool = False
    seen_at: float | None = None


Look = tuple[WatchedThing, Observation]
"""A thing, and what was seen of it."""


def _watched() -> Select[Any]:
    return (
        select(
            _resource.c.key,
            _resource.c.stack_id,
            _resource.c.shard,
            schema.shard.c.project,
            _resource.c.name,
            _resource.c.type,
            _resource.c.handle,
            _resource.c.acted_at,
            (_resource.c.status == Status.IN_PROGRESS).label("busy"),
            _resource.c.properties,
            _observed.c.presence,
            _observed.c.object,
            func.substr(type_coerce(_resource.c.properties, Text), 1, len(MARK)) == MARK,
            schema.shard.c.health_at.is_not(None),
            _observed.c.seen_at,
        )
        .join(
            schema.shard,
            and_(schema.shard.c.stack_id == _resource.c.stack_id, schema.shard.c.number == _resource.c.shard),
        )
        .outerjoin(_observed, _observed.c.key == _resource.c.key)
        .where(_resource.c.handle != "")
    )


def in_shards(tx: Connection, shards: Collection[tuple[str, int]], types: Sequence[str]) -> list[WatchedThing]:
    """Return the things of these types in these shards."""
    return _readable(_in_shards(tx, list(shards), types))


@prepared
def _in_shards(shards: Sequence[tuple[str, int]], types: Sequence[str]) -> Select[Any]:
    here = tuple_(_resource.c.stack_id, _resource.c.shard).in_(shards)
    return _watched().where(here, _resource.c.type.in_(types))


def by_handle(tx: Connection, handles: Sequence[str], types: Sequence[str]) -> list[WatchedThing]:
    """Return the things with these handles and types; different clouds may use one handle for different things."""
    return _readable(_by_handle(tx, list(handles), types))


@prepared
def _by_handle(handles: Sequence[str], types: Sequence[str]) -> Select[Any]:
    return _watched().where(_resource.c.handle.in_(handles), _resource.c.type.in_(types))


def _readable(rows: CursorResult[*tuple[Any, ...]]) -> list[WatchedThing]:
    """Leave out things whose cells cannot be decrypted, since their key is missing; all others are still observed."""
    found = (WatchedThing(*values) for values in rows)
    return [each for each in found if not isinstance(each.properties, Lost) and not isinstance(each.seen, Lost)]


_COLUMNS = ("key", "handle", "presence", "object", "reason", "seen_at")
_NEWER = Change(
    ("key",),
    "t.key = {key} AND t.seen_at < {seen_at} AND (t.handle = {handle} OR t.handle = '')",
    "number = t.number + 1 + t.number % 2",
)
"""Replaces an observation unless it is newer, or of another thing, which the row has got meanwhile.

The number is the next odd one, as in `model.world.next_look`: observers use odd numbers and passes even ones, so that a
pass never takes an observer's look for the one that it has just judged itself.
"""


@dataclass(frozen=True, slots=True)
class EncodedLooks:
    """Observations, encoded before the transaction that stores them; `keys` are those of their rows."""

    keys: Sequence[str]
    looks: Sequence[bulk.EncodedRows]
    properties: Sequence[bulk.EncodedRows] = ()


def encode(db: Database, looks: Sequence[tuple[WatchedThing, Observation]]) -> EncodedLooks:
    """Encode observations for `record`."""
    return EncodedLooks([thing.key for thing, _ in looks], _encode_looks(db.engine.dialect, looks))


def encode_with_properties(
    db: Database, stack_id: str, looks: Sequence[tuple[WatchedThing, Observation]], now: float
) -> EncodedLooks:
    """Encode observations of things of one stack, with the observed values of the properties it sets (CV1).

    Args:
        looks: The things and their new observations.
        now: The time at which the values were seen.
    """
    dialect = db.engine.dialect
    properties = [
        shard_state.encode_properties(dialect, stack_id, observed, now, secret, only_alive=True)
        for secret, observed in _properties(looks).items()
    ]
    return EncodedLooks([thing.key for thing, _ in looks], _encode_looks(dialect, looks), properties)


def record(tx: Connection, written: EncodedLooks) -> None:
    """Store observations, except those that are older than the stored one or of another thing than the row's.

    The caller has locked the shards of the rows before, as a pass does.
    """
    for each in written.looks:
        each.store(tx)
    if written.properties:
        # Properties are stored for rows that exist. Without the lock, a pass could delete a row between that check and
        # the insertion, and the foreign key would fail all looks of this transaction.
        _lock_existing(tx, written.keys)
    for each in written.properties:
        each.store(tx)


def _encode_looks(dialect: Dialect, looks: Sequence[tuple[WatchedThing, Observation]]) -> list[bulk.EncodedRows]:
    return [
        bulk.encode_update(dialect, _observed, _COLUMNS, rows, _NEWER, secret=secret)
        for secret, rows in _by_secrecy(looks).items()
    ]


def _by_secrecy(looks: Sequence[tuple[WatchedThing, Observation]]) -> dict[bool, list[Values]]:
    """Return the values for `_COLUMNS`, by whether the rows hold secrets."""
    rows: dict[bool, list[Values]] = defaultdict(list)
    for thing, look in looks:
        row = (
            thing.key,
            thing.handle,
            look.presence.value,
            # What is absent keeps its last known properties: fields that a cloud reports only once would be lost for
            # the case that the thing comes back.
            with_fields_reported_once(thing, look) if look.present else dict(thing.seen or {}),
            look.reason,
            look.seen_at,
        )
        rows[thing.secret].append(row)
    return rows


def with_fields_reported_once(thing: WatchedThing, look: Observation) -> dict[str, Any]:
    """Return the observed properties, with fields that a cloud reports only once (a private key) kept from before."""
    once = {
        name: (thing.seen or {})[name]
        for name in type_of(thing.type).creation_only_fields
        if name in (thing.seen or {})
    }
    return {**once, **look.properties}


def _properties(looks: Sequence[tuple[WatchedThing, Observation]]) -> dict[bool, list[tuple[str, str, dict[str, Any]]]]:
    """Return row key, resource name, and property -> observed value, by whether the rows hold secrets."""
    observed: dict[bool, list[tuple[str, str, dict[str, Any]]]] = defaultdict(list)
    for thing, look in looks:
        kind = type_of(thing.type)
        seen = Thing(thing.key, thing.name, thing.name, kind.complete(thing.properties), look, thing.handle)
        observed[thing.secret].append((thing.key, thing.name, kind.observed_properties(seen)))
    return observed


@prepared
def _lock_existing(keys: Sequence[str]) -> Select[Any]:
    """Lock the rows that exist."""
    return row_lock(select(_resource.c.key).where(_resource.c.key.in_(keys)))


def with_witness(looks: Sequence[Look], changes: Sequence[Look]) -> list[Look]:
    """Return what is to be stored of looks, with a thing that is there where others are absent.

    It proves that who looked can see: what is absent is not everything of its kind (`brakes.is_blind`). None is added
    where that is known already.

    Args:
        looks: Things of one kind and project, and what one call has shown of each.
        changes: Those that differ from before.
    """
    missed = [look.seen_at for _, look in changes if look.presence is Presence.ABSENT]
    missed += [
        thing.seen_at or 0.0 for thing, look in looks if look.presence.value == thing.presence == Presence.ABSENT
    ]
    there = [(thing, look) for thing, look in looks if look.present and thing.seen_at is not None]
    newest = max(missed, default=0.0)
    if not missed or not there or any((thing.seen_at or 0.0) >= newest for thing, _ in there):
        return list(changes)
    thing, look = there[0]
    stored = {each.key: (each, seen) for each, seen in changes}
    return list({**stored, thing.key: (thing, replace(look, seen_at=max(newest, look.seen_at)))}.values())


def differs(thing: WatchedThing, look: Observation) -> bool:
    """Return whether a look differs from the last one, so that it must be stored.

    An UNKNOWN look never does: it must not replace what is known, and nothing is recreated because of it (CV9).
    """
    if look.presence is Presence.UNKNOWN:
        return False
    if look.presence.value != thing.presence:
        return True
    if not look.present:
        return False
    return is_other(thing.seen, with_fields_reported_once(thing, look))


def is_other(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Return whether what is seen now of a thing differs from what is stored of it."""
    # Nearly all looks are equal at once. Others may differ only in form (a tuple for a list), which encoding removes.
    return now != before and schema.as_stored(now) != before
