"""Observations: the reads and writes of observers, for things of many shards at once (CV7, ADR 0010).

Observers own no shard: they only replace older observations by newer ones, and wake the shard that has to judge them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import CursorResult, Select, Text, and_, func, null, select, tuple_, type_coerce
from sqlalchemy.engine.interfaces import Dialect

from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status
from homeostat.resources.base import Thing
from homeostat.resources.registry import type_of
from homeostat.store import schema
from homeostat.store.database import Database, Transaction, row_lock
from homeostat.store.encryption.encrypted_cells import MARK, Lost
from homeostat.store.shards import shard_state
from homeostat.store.sql import bulk
from homeostat.store.sql.bulk import Values
from homeostat.store.sql.bulk_statements import Change
from homeostat.store.sql.prepared import prepared

_resource = schema.resource
_observed = schema.resource_observed
HANDLES_PER_QUERY = 5000
"""Handles in one query: databases limit the values of a statement."""


@dataclass(frozen=True, slots=True)
class WatchedThing:
    """A thing to observe, with its last observation.

    Attributes:
        acted_at: The time of the last operation on the thing, in seconds since the epoch; None during an operation.
        busy: Its resource is IN_PROGRESS.
        properties: The properties last requested from the cloud; None if they were not read.
        presence: The presence last observed; None if never observed.
        seen: The properties last observed; None if never observed.
        secret: Its row holds secrets, so its observed properties may, too.
        checked: A health policy applies to its shard.
        seen_at: The time of the stored observation: the last one that differed, or bore witness, in seconds since the
            epoch; None if never observed.
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
    properties: Mapping[str, Any] | None
    presence: str | None
    seen: Mapping[str, Any] | None
    secret: bool = False
    checked: bool = False
    seen_at: float | None = None


ObservedThing = tuple[WatchedThing, Observation]
"""A thing and its new observation."""


def _watched(*, whole: bool = True) -> Select[Any]:
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
            _resource.c.properties if whole else null(),
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


def in_shards(
    tx: Transaction, shards: Collection[tuple[str, int]], types: Sequence[str], *, whole: bool = True
) -> list[WatchedThing]:
    """Return the things of these types in these shards; `whole`: with the properties last requested."""
    return _readable(_in_shards(tx, list(shards), types, whole=whole))


@prepared
def _in_shards(shards: Sequence[tuple[str, int]], types: Sequence[str], *, whole: bool) -> Select[Any]:
    watched_rows = tuple_(_resource.c.stack_id, _resource.c.shard).in_(shards)
    return _watched(whole=whole).where(watched_rows, _resource.c.type.in_(types))


def by_handle(tx: Transaction, handles: Sequence[str], types: Sequence[str]) -> list[WatchedThing]:
    """Return the things with these handles and types; different clouds may use the same handle for different things."""
    return [
        thing
        for start in range(0, len(handles), HANDLES_PER_QUERY)
        for thing in _readable(_by_handle(tx, handles[start : start + HANDLES_PER_QUERY], types))
    ]


@prepared
def _by_handle(handles: Sequence[str], types: Sequence[str]) -> Select[Any]:
    return _watched().where(_resource.c.handle.in_(handles), _resource.c.type.in_(types))


def _readable(rows: CursorResult[*tuple[Any, ...]]) -> list[WatchedThing]:
    """Leave out things with cells that cannot be decrypted, since their key is missing; observe the rest as usual."""
    things = (WatchedThing(*values) for values in rows)
    return [thing for thing in things if not isinstance(thing.properties, Lost) and not isinstance(thing.seen, Lost)]


_COLUMNS = ("key", "handle", "presence", "object", "reason", "seen_at")
_NEWER = Change(
    ("key",),
    "t.key = {key} AND t.seen_at < {seen_at} AND (t.handle = {handle} OR t.handle = '')",
    "number = t.number + 1 + t.number % 2",
)
"""Replaces an observation unless it is newer, or belongs to another thing, which the row has got meanwhile.

The number is the next odd one, as in `model.world.next_look`: observers use odd numbers and passes even ones, to keep a
pass from mistaking an observer's look for its own, already judged look.
"""


@dataclass(frozen=True, slots=True)
class EncodedObservations:
    """Observations, encoded before the transaction that stores them, with the keys of their rows."""

    keys: Sequence[str]
    observations: Sequence[bulk.EncodedRows]
    properties: Sequence[bulk.EncodedRows] = ()


def encode(db: Database, observed: Sequence[ObservedThing]) -> EncodedObservations:
    """Encode observations for `record`."""
    return EncodedObservations([thing.key for thing, _ in observed], _encode_observed(db.engine.dialect, observed))


def encode_with_properties(
    db: Database, stack_id: str, observed: Sequence[ObservedThing], now: float
) -> EncodedObservations:
    """Encode observations of things of a stack, and observed values of the properties set by its template (CV1)."""
    dialect = db.engine.dialect
    properties = [
        shard_state.encode_properties(dialect, stack_id, values, now, secret, only_alive=True)
        for secret, values in _properties(observed).items()
    ]
    return EncodedObservations([thing.key for thing, _ in observed], _encode_observed(dialect, observed), properties)


def record(tx: Transaction, encoded: EncodedObservations) -> None:
    """Store observations, except if the stored one is newer, or the row has another thing by now.

    The caller has locked the shards of the rows, like a pass.
    """
    for rows in encoded.observations:
        rows.store(tx)
    if encoded.properties:
        # Properties are stored for existing rows only. Without the lock, a pass could delete a row between this check
        # and the insertion, and the foreign key would fail all observations of this transaction.
        _lock_existing(tx, encoded.keys)
    for rows in encoded.properties:
        rows.store(tx)


def _encode_observed(dialect: Dialect, observed: Sequence[ObservedThing]) -> list[bulk.EncodedRows]:
    return [
        bulk.encode_update(dialect, _observed, _COLUMNS, rows, _NEWER, secret=secret)
        for secret, rows in _by_secrecy(observed).items()
    ]


def _by_secrecy(observed: Sequence[ObservedThing]) -> dict[bool, list[Values]]:
    """Return the values for `_COLUMNS`, by whether the rows hold secrets."""
    rows: dict[bool, list[Values]] = defaultdict(list)
    for thing, observation in observed:
        row = (
            thing.key,
            thing.handle,
            observation.presence.value,
            # An absent thing keeps its last known properties: if it comes back, fields that a cloud reports only once
            # would be lost.
            with_fields_reported_once(thing, observation) if observation.present else dict(thing.seen or {}),
            observation.reason,
            observation.seen_at,
        )
        rows[thing.secret].append(row)
    return rows


def with_fields_reported_once(thing: WatchedThing, observation: Observation) -> dict[str, Any]:
    """Return the observed properties, and previous values of fields that a cloud reports only once (a private key)."""
    once = {
        name: (thing.seen or {})[name]
        for name in type_of(thing.type).creation_only_fields
        if name in (thing.seen or {})
    }
    return {**once, **observation.properties}


def _properties(things: Sequence[ObservedThing]) -> dict[bool, list[tuple[str, str, dict[str, Any]]]]:
    """Return row key, resource name, and property -> observed value, by whether the rows hold secrets."""
    observed: dict[bool, list[tuple[str, str, dict[str, Any]]]] = defaultdict(list)
    for thing, observation in things:
        kind = type_of(thing.type)
        seen = Thing(
            thing.key, thing.name, thing.name, kind.complete(thing.properties or {}), observation, thing.handle
        )
        observed[thing.secret].append((thing.key, thing.name, kind.observed_properties(seen)))
    return observed


@prepared
def _lock_existing(keys: Sequence[str]) -> Select[Any]:
    """Lock the rows that exist."""
    return row_lock(select(_resource.c.key).where(_resource.c.key.in_(keys)))


def with_witness(observed: Sequence[ObservedThing], changes: Sequence[ObservedThing]) -> list[ObservedThing]:
    """Return the observations to store: the changes, and a witness if things are absent.

    The witness is a present thing, as a proof that the observer can see: the absence of further things of the kind is
    not doubted then (`brakes.is_blind`). No witness is added if a stored witness is recent enough.

    Args:
        observed: Things of one kind and project, as observed by one call.
        changes: The things whose observation differs from the previous one.
    """
    missed = [observation.seen_at for _, observation in changes if observation.presence is Presence.ABSENT]
    missed += [
        thing.seen_at or 0.0
        for thing, observation in observed
        if observation.presence.value == thing.presence == Presence.ABSENT
    ]
    present = [
        (thing, observation) for thing, observation in observed if observation.present and thing.seen_at is not None
    ]
    newest = max(missed, default=0.0)
    if not missed or not present or any((thing.seen_at or 0.0) >= newest for thing, _ in present):
        return list(changes)
    witness, observation = present[0]
    stored = {thing.key: (thing, seen) for thing, seen in changes}
    witnessed = replace(observation, seen_at=max(newest, observation.seen_at))
    return list({**stored, witness.key: (witness, witnessed)}.values())


def differs(thing: WatchedThing, observation: Observation) -> bool:
    """Return whether an observation differs from the stored one, and must be stored.

    UNKNOWN never differs: this presence must not replace knowledge, nor cause a recreation (CV9).
    """
    if observation.presence is Presence.UNKNOWN:
        return False
    if observation.presence.value != thing.presence:
        return True
    if not observation.present:
        return False
    return properties_differ(thing.seen, with_fields_reported_once(thing, observation))


def properties_differ(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Return whether the observed properties of a thing differ from the stored ones."""
    # Nearly all are equal at once. The rest may differ only in form (a tuple for a list), which encoding removes.
    return now != before and schema.as_stored(now) != before
