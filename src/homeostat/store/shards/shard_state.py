"""The rows of a shard: loaded at once when a pass begins, and recorded in a transaction after each batch."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Dialect,
    Select,
    Text,
    func,
    literal,
    select,
    type_coerce,
)

from homeostat.model.errors import Superseded
from homeostat.model.node_health import DeclaredHost, RecoveryAction
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Event, Part
from homeostat.model.rollout import RolloutChange
from homeostat.model.world import Resource, Seen
from homeostat.store import events, schema
from homeostat.store.builtin import stack_users
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import orphans, retained
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.retained import Retained
from homeostat.store.sql import bulk, typed
from homeostat.store.sql.prepared import prepared

COLUMNS = tuple(column.name for column in fields(Resource))
OUTCOME_COLUMNS = (
    "handle",
    "revision",
    "action",
    "status",
    "reason",
    "replaced_by",
    "acted_at",
    "due_at",
    "attempts",
    "retries",
    "changed",
    "resolved",
    "judged_observation",
    "updated_at",
)
"""The columns that the outcome of an operation can change; the rest changes only with an intent, which writes all."""

FETCHED = 500
"""Number of rows fetched from the driver at once."""

SEEN_COLUMNS = ("handle", "presence", "object", "reason", "number", "seen_at")

_resource = schema.resource
_observed = schema.resource_observed
_properties = schema.resource_properties_observed
_values_of = attrgetter(*COLUMNS)
_FULL = (*(name for name in COLUMNS if name not in ("key", "version")), "version", "key")
_full_of = attrgetter(*_FULL)
_OUTCOME = (*OUTCOME_COLUMNS, "version", "key")
_outcome_of = attrgetter(*_OUTCOME)
_SEEN = ("key", "stack_id", "resource_name", *SEEN_COLUMNS)
_PROPERTY = ("id", "prop_name", "stack_id", "resource_name", "prop_value", "since")


@dataclass(slots=True)
class Writes:
    """The writes of one transaction of a pass; a row is written once, however often it changed since the last commit.

    Attributes:
        full: Rows of which any column may have changed.
        outcomes: Rows of which only the columns in `OUTCOME_COLUMNS` changed.
        unborn: Keys of rows that were removed before they were ever stored.
        orphans: Tokens whose things may still turn up, see `store.shards.orphans`.
        kept_tokens: Tokens of things that stay, and need not be looked for any more.
        retained: Things that stay although their row is deleted, see `retained`.
    """

    inserted: dict[str, Resource] = field(default_factory=dict)
    full: dict[str, Resource] = field(default_factory=dict)
    outcomes: dict[str, Resource] = field(default_factory=dict)
    removed: dict[str, Resource] = field(default_factory=dict)
    unborn: set[str] = field(default_factory=set)
    seen: dict[str, tuple[Resource, Seen]] = field(default_factory=dict)
    properties: list[tuple[Resource, dict[str, Any]]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    orphans: list[Orphan] = field(default_factory=list)
    kept_tokens: list[str] = field(default_factory=list)
    retained: list[Retained] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    rollouts: list[RolloutChange] = field(default_factory=list)
    recoveries: list[RecoveryAction] = field(default_factory=list)
    declared: list[DeclaredHost] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.inserted) + len(self.full) + len(self.outcomes) + len(self.removed)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store."""
        return not any(getattr(self, attribute.name) for attribute in fields(self))

    def rows(self) -> Iterator[Resource]:
        """Return the inserted and changed rows."""
        return chain(self.inserted.values(), self.full.values(), self.outcomes.values())

    def insert(self, row: Resource) -> None:
        self.inserted[row.key] = row

    def intend(self, row: Resource) -> None:
        """Store all columns of an existing or inserted row."""
        if row.key not in self.inserted:
            self.outcomes.pop(row.key, None)
            self.full[row.key] = row

    def conclude(self, row: Resource) -> None:
        """Store the outcome of an operation, unless all columns of the row are stored anyway."""
        if row.key not in self.inserted and row.key not in self.full:
            self.outcomes[row.key] = row

    def remove(self, row: Resource) -> None:
        """Delete a row."""
        if row.key in self.inserted:
            # The database has never had the row, so there is nothing to delete. Its observed values in `properties`
            # must not be stored, since their foreign key would fail.
            self.unborn.add(row.key)
        else:
            self.removed[row.key] = row
        for rows in (self.inserted, self.full, self.outcomes, self.seen):
            rows.pop(row.key, None)


Rows = tuple[dict[str, Resource], dict[str, Seen]]
"""Rows and their newest observations, each by the key of the row."""


def stored_bytes(tx: Transaction, stack_id: str, number: int) -> int:
    """Return the stored length of the properties and the metadata of all rows of a shard."""
    stored = (
        func.coalesce(func.length(type_coerce(_resource.c[name], Text)), 0) for name in ("properties", "metadata")
    )
    chosen = select(func.sum(sum(stored, literal(0)))).where(
        _resource.c.stack_id == stack_id, _resource.c.shard == number
    )
    return int(tx.execute(chosen).scalar_one() or 0)


def load_rows(tx: Transaction, stack_id: str, number: int) -> Rows:
    """Load all rows of a shard, in the order of their creation."""
    return _rows(_of_shard(tx, stack_id, number))


def load_where(tx: Transaction, *where: ColumnElement[bool]) -> Rows:
    """Load the rows that meet all conditions, by shard and in the order of their creation."""
    return _rows(tx.execute(_chosen(*where)))


def load_stack(
    tx: Transaction, stack_id: str, names: Collection[str] | None = None, shards: Collection[int] | None = None
) -> Rows:
    """Load rows of a stack, of these names and shards alone, by shard and in the order of their creation."""
    named, placed = names is not None, shards is not None
    return _rows(_of_stack(tx, stack_id, list(names or ()), list(shards or ()), named=named, placed=placed))


@prepared
def _of_stack(stack_id: str, names: list[str], shards: list[int], *, named: bool, placed: bool) -> Select[Any]:
    return _chosen(*of_stack(stack_id, names, shards, named=named, placed=placed))


def of_stack(stack_id: Any, names: Any, shards: Any, *, named: bool, placed: bool) -> list[ColumnElement[bool]]:
    """Return the conditions of rows of a stack; `named` and `placed` say whether names and shards are given."""
    where = [_resource.c.stack_id == stack_id]
    if named:
        where.append(_resource.c.name.in_(names))
    if placed:
        where.append(_resource.c.shard.in_(shards))
    return where


@prepared
def _of_shard(stack_id: str, number: int) -> Select[Any]:
    return _chosen(_resource.c.stack_id == stack_id, _resource.c.shard == number)


def _chosen(*where: ColumnElement[bool]) -> Select[Any]:
    observed = (_observed.c[name] for name in ("presence", "handle", "object", "seen_at", "reason", "number"))
    return (
        select(
            *(_resource.c[name] for name in COLUMNS),
            *(column.label(f"seen_{column.name}") for column in observed),
        )
        .outerjoin(_observed, _observed.c.key == _resource.c.key)
        .where(*where)
        .order_by(_resource.c.shard, _resource.c.born, _resource.c.key)
    )


def _rows(result: CursorResult[*tuple[Any, ...]]) -> Rows:
    rows: dict[str, Resource] = {}
    seen: dict[str, Seen] = {}
    width = len(COLUMNS)
    for values in chain.from_iterable(result.partitions(FETCHED)):
        row = Resource(*values[:width])
        rows[row.key] = row
        presence, handle, thing, seen_at, reason, number = values[width:]
        if presence is not None:
            seen[row.key] = Seen(Observation(Presence(presence), handle, thing, seen_at, reason), number)
    return rows, seen


def encode_new(db: Database, rows: Iterable[Resource], *, secret: bool = False) -> bulk.EncodedRows:
    """Encode the rows of a new stack, to store them later; `secret` if they may hold secrets."""
    return bulk.encode_insert(db.engine.dialect, _resource, COLUMNS, map(_values_of, rows), secret=secret)


class HandleOwner(NamedTuple):
    """The resource that owns a thing, with its stack."""

    handle: str
    type: str
    name: str
    stack_name: str
    project: str


def owners_of(tx: Transaction, handles: Sequence[str]) -> list[HandleOwner]:
    """Return the owners of things with these handles, among the resources of live stacks of all projects.

    Resources that only refer to an external thing (`external_id`) are left out.
    """
    stack = schema.stack
    named = (stack.c.name.label("stack_name"), stack.c.project)
    living = (stack.c.deleted_at.is_(None), _resource.c.external_id.is_(None))
    chosen = select(_resource.c.handle, _resource.c.type, _resource.c.name, *named)
    chosen = chosen.join(stack, stack.c.id == _resource.c.stack_id)
    return list(typed.rows(HandleOwner, tx.execute(chosen.where(_resource.c.handle.in_(handles), *living))))


def revisions_of(tx: Transaction, stack_id: str, number: int) -> set[int]:
    """Return the revisions of the last operations on the rows of a shard: the rows may hold values from these."""
    conditions = (_resource.c.stack_id == stack_id, _resource.c.shard == number)
    return set(tx.execute(select(_resource.c.revision).where(*conditions).distinct()).scalars())


@dataclass(frozen=True, slots=True)
class EncodedWrites:
    """Writes of a stack, encoded before the transaction that stores them.

    Attributes:
        now: The time of the events and observed properties, in seconds since the epoch.
        rows: Statements about rows: the insertion first, then the changes.
        changed: The total number of rows that the changes must affect.
    """

    stack_id: str
    writes: Writes
    now: float
    rows: Sequence[bulk.EncodedRows]
    changed: int
    seen: Sequence[bulk.EncodedRows]


def prepare(db: Database, stack_id: str, writes: Writes, now: float, *, secret: bool | None = None) -> EncodedWrites:
    """Encode writes for `store`.

    Args:
        secret: The column of `stack`; unless it is False the rows may hold secrets.
    """
    encrypts, dialect = secret is not False, db.engine.dialect
    inserted = bulk.encode_insert(
        dialect, _resource, COLUMNS, map(_values_of, writes.inserted.values()), secret=encrypts
    )
    changes = [
        bulk.encode_update(dialect, _resource, columns, map(values_of, rows.values()), secret=encrypts)
        for columns, values_of, rows in ((_FULL, _full_of, writes.full), (_OUTCOME, _outcome_of, writes.outcomes))
    ]
    seen = _encode_seen(dialect, stack_id, writes, now, encrypts)
    removed = bulk.encode_delete(dialect, _resource, ((row.key, row.version) for row in writes.removed.values()))
    changed = len(writes.full) + len(writes.outcomes) + len(writes.removed)
    return EncodedWrites(stack_id, writes, now, (inserted, *changes, removed), changed, seen)


def record(tx: Transaction, stack_id: str, writes: Writes, now: float, *, secret: bool | None = None) -> None:
    """Encode and store writes at once; for the arguments see `prepare`.

    Raises:
        Superseded: A row was changed by another writer since it was read.
    """
    store(tx, prepare(tx.database, stack_id, writes, now, secret=secret))


def store(tx: Transaction, prepared: EncodedWrites) -> None:
    """Store encoded writes; the caller has checked the epoch of its lease in this transaction.

    Raises:
        Superseded: A row was changed by another writer since it was read; the caller must load the shard again.
    """
    writes = prepared.writes
    inserted, *changes = prepared.rows
    inserted.store(tx)
    # The epoch excludes only other workers. The API writes rows, too (marks, policies), so each change also requires
    # the version that was read; rows with a newer version are missing in the count.
    changed = sum(change.store(tx) for change in changes)
    if changed != prepared.changed:
        raise Superseded(f"{prepared.changed - changed} of {prepared.changed} rows were changed by another writer")
    for row in chain(writes.full.values(), writes.outcomes.values()):
        row.version += 1
    for rows in prepared.seen:
        rows.store(tx)
    if without_thing := [row.key for row in writes.removed.values() if not row.handle]:
        stack_users.mark_rows_departed(tx, prepared.stack_id, without_thing)
    orphans.add(tx, writes.orphans, prepared.now)
    # After `add`: a token both given up and kept by this transaction belongs to a thing that stays.
    if writes.kept_tokens:
        orphans.drop(tx, writes.kept_tokens)
    retained.add(tx, writes.retained, prepared.now)
    events.append(tx, prepared.stack_id, writes.events, prepared.now)


def _encode_seen(
    dialect: Dialect, stack_id: str, writes: Writes, now: float, secret: bool
) -> tuple[bulk.EncodedRows, bulk.EncodedRows]:
    """Encode observations, and observed properties."""
    observations = (
        (
            row.key,
            stack_id,
            row.name,
            seen.observation.handle,
            seen.observation.presence.value,
            seen.observation.properties,
            seen.observation.reason,
            seen.number,
            seen.observation.seen_at,
        )
        for row, seen in writes.seen.values()
    )
    # An observer may have stored a newer observation since the shard was loaded.
    unless = "excluded.seen_at < t.seen_at"
    observed = bulk.encode_upsert(dialect, _observed, _SEEN, observations, key=("key",), unless=unless, secret=secret)
    absent = writes.removed.keys() | writes.unborn
    properties = [(row.key, row.name, values) for row, values in writes.properties if row.key not in absent]
    return observed, encode_properties(dialect, stack_id, properties, now, secret)


def encode_properties(
    dialect: Dialect,
    stack_id: str,
    observed: Sequence[tuple[str, str, dict[str, Any]]],
    now: float,
    secret: bool,
    *,
    only_alive: bool = False,
) -> bulk.EncodedRows:
    """Encode observed values of properties for the table `resource_properties_observed` (CV1).

    An unchanged value keeps its time `since`.

    Args:
        observed: Row key, resource name, and property -> observed value.
        secret: The values may hold secrets.
        only_alive: Leave out values whose resource row was deleted by the time of the insertion.
    """
    rows = {
        (key, prop): (key, prop, stack_id, name, value, now)
        for key, name, properties in observed
        for prop, value in properties.items()
    }
    # Compared as stored, including encrypted cells: encryption is deterministic.
    same = "coalesce(excluded.prop_value, '') = coalesce(t.prop_value, '')"
    key = ("id", "prop_name")
    where = "EXISTS (SELECT 1 FROM resource WHERE resource.key = {id})" if only_alive else ""
    values = rows.values()
    return bulk.encode_upsert(dialect, _properties, _PROPERTY, values, key=key, unless=same, where=where, secret=secret)
