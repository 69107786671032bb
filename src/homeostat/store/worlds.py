"""Loading the rows of one shard, and recording what became of them, each in one go."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.engine import CursorResult

from homeostat.model.errors import Superseded
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Event
from homeostat.model.world import Resource, Seen
from homeostat.store import events, forsaken, schema
from homeostat.store.database import Database
from homeostat.store.forsaken import Forsaken

COLUMNS = tuple(each.name for each in fields(Resource))
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
    "judged",
    "updated_at",
)
"""What an act can change; the other columns change only with an intent, and need not be written again."""

SEEN_COLUMNS = ("handle", "presence", "object", "reason", "number", "seen_at")

_resource = schema.resource
_observed = schema.resource_observed
_properties = schema.resource_properties_observed
_values_of = attrgetter(*COLUMNS)
_outcome_of = attrgetter(*OUTCOME_COLUMNS, "version", "key")


def _update(columns: Sequence[str]) -> Any:
    """UPDATE … SET version = version + 1 WHERE key and version are still the ones that were read."""
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    values["version"] = _resource.c.version + 1
    where = and_(_resource.c.key == bindparam("of_key"), _resource.c.version == bindparam("of_version"))
    return update(_resource).where(where).values(**values)


_FULL = tuple(name for name in COLUMNS if name not in ("key", "version"))
_UPDATE_FULL = _update(_FULL)
_UPDATE_OUTCOME = _update(OUTCOME_COLUMNS)
_FULL_PARAMETERS = tuple(f"new_{name}" for name in _FULL)
_full_of = attrgetter(*_FULL)
_OUTCOME_PARAMETERS = (*(f"new_{name}" for name in OUTCOME_COLUMNS), "of_version", "of_key")


@dataclass(slots=True)
class Writes:
    """What one transaction of a pass stores. A row is stored once, however often it changed since the last time.

    full — rows whose every column may have changed; outcomes — rows in which only what an act can change did;
    seen, properties — observations and observed properties.
    """

    inserted: dict[str, Resource] = field(default_factory=dict)
    full: dict[str, Resource] = field(default_factory=dict)
    outcomes: dict[str, Resource] = field(default_factory=dict)
    removed: dict[str, Resource] = field(default_factory=dict)
    seen: dict[str, tuple[Resource, Seen]] = field(default_factory=dict)
    properties: list[tuple[Resource, dict[str, Any]]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    forsaken: list[Forsaken] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.inserted) + len(self.full) + len(self.outcomes) + len(self.removed)

    def insert(self, row: Resource) -> None:
        self.inserted[row.key] = row

    def intend(self, row: Resource) -> None:
        if row.key not in self.inserted:
            self.outcomes.pop(row.key, None)
            self.full[row.key] = row

    def conclude(self, row: Resource) -> None:
        if row.key not in self.inserted and row.key not in self.full:
            self.outcomes[row.key] = row

    def remove(self, row: Resource) -> None:
        for rows in (self.inserted, self.full, self.outcomes, self.seen):
            rows.pop(row.key, None)
        self.removed[row.key] = row


Rows = tuple[dict[str, Resource], dict[str, Seen]]
"""Rows and their newest observations, each by the key of the row."""


def load_rows(tx: Connection, stack_id: str, number: int) -> Rows:
    """All rows of a shard."""
    return load_where(tx, _resource.c.stack_id == stack_id, _resource.c.shard == number)


def load_where(tx: Connection, *where: ColumnElement[bool]) -> Rows:
    """Rows that meet all conditions, in the order they were made."""
    observed = (_observed.c[name] for name in ("presence", "handle", "object", "seen_at", "reason", "number"))
    chosen = (
        select(
            *(_resource.c[name] for name in COLUMNS),
            *(column.label(f"seen_{column.name}") for column in observed),
        )
        .outerjoin(_observed, _observed.c.key == _resource.c.key)
        .where(*where)
        .order_by(_resource.c.shard, _resource.c.born, _resource.c.key)
    )
    rows: dict[str, Resource] = {}
    seen: dict[str, Seen] = {}
    width = len(COLUMNS)
    for values in tx.execute(chosen):
        row = Resource(*values[:width])
        rows[row.key] = row
        presence, handle, thing, seen_at, reason, number = values[width:]
        if presence is not None:
            seen[row.key] = Seen(Observation(Presence(presence), handle, thing, seen_at, reason), number)
    return rows, seen


def record(db: Database, tx: Connection, stack_id: str, writes: Writes, now: float) -> None:
    """Store it all. Fails: Superseded when a row was changed by somebody else since it was read (load again)."""
    if writes.inserted:
        tx.execute(
            insert(_resource),
            [dict(zip(COLUMNS, _values_of(row), strict=True)) for row in writes.inserted.values()],
        )
    if writes.full:
        _expect(
            tx.execute(_UPDATE_FULL, [_full_parameters(row) for row in writes.full.values()]),
            len(writes.full),
        )
    if writes.outcomes:
        parameters = [dict(zip(_OUTCOME_PARAMETERS, _outcome_of(row), strict=True)) for row in writes.outcomes.values()]
        _expect(tx.execute(_UPDATE_OUTCOME, parameters), len(parameters))
    for row in (*writes.full.values(), *writes.outcomes.values()):
        row.version += 1
    if writes.removed:
        gone = [{"of_key": key} for key in writes.removed]
        tx.execute(delete(_resource).where(_resource.c.key == bindparam("of_key")), gone)
    _record_seen(db, tx, stack_id, writes)
    forsaken.add(db, tx, writes.forsaken, now)
    events.append(tx, stack_id, writes.events, now)


def _full_parameters(row: Resource) -> dict[str, Any]:
    return {
        **dict(zip(_FULL_PARAMETERS, _full_of(row), strict=True)),
        "of_key": row.key,
        "of_version": row.version,
    }


def _expect(result: CursorResult[Any], count: int) -> None:
    if result.rowcount != count:
        raise Superseded(f"{count - result.rowcount} of {count} rows were changed by another writer")


def _record_seen(db: Database, tx: Connection, stack_id: str, writes: Writes) -> None:
    if writes.seen:
        upsert = db.insert(_observed)
        updated = {name: upsert.excluded[name] for name in SEEN_COLUMNS}
        newer = upsert.excluded.seen_at >= _observed.c.seen_at
        tx.execute(
            upsert.on_conflict_do_update(index_elements=["key"], set_=updated, where=newer),
            [
                {
                    "key": row.key,
                    "stack_id": stack_id,
                    "resource_name": row.name,
                    "handle": each.observation.handle,
                    "presence": each.observation.presence.value,
                    "object": each.observation.properties,
                    "reason": each.observation.reason,
                    "number": each.number,
                    "seen_at": each.observation.seen_at,
                }
                for row, each in writes.seen.values()
            ],
        )
    looked = [(row.key, row.name, seen) for row, seen in writes.properties if row.key not in writes.removed]
    record_properties(db, tx, stack_id, looked)


def record_properties(
    db: Database, tx: Connection, stack_id: str, observed: Sequence[tuple[str, str, dict[str, Any]]]
) -> None:
    """Store (row key, resource name, property -> observed value) in `resource_properties_observed` (CV1)."""
    rows = [
        {"id": key, "prop_name": prop, "stack_id": stack_id, "resource_name": name, "prop_value": value}
        for key, name, properties in observed
        for prop, value in properties.items()
    ]
    if rows:
        upsert = db.insert(_properties)
        tx.execute(
            upsert.on_conflict_do_update(
                index_elements=["id", "prop_name"], set_={"prop_value": upsert.excluded.prop_value}
            ),
            rows,
        )
