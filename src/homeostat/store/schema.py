"""The tables (design section 4). One schema for SQLite and PostgreSQL; times are seconds since the epoch, UTC."""

from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    false,
    text,
)
from sqlalchemy.engine.interfaces import Dialect

from homeostat.store.encryption.sealed_cells import MARK, Lost, Unreadable, keys_of, open_text, seal_text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def to_json(value: Any) -> str:
    """Plain data as JSON. What a cloud tells and JSON cannot hold is text: numbers over 64 bits, broken Unicode."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return orjson.dumps(_told(value), option=orjson.OPT_NON_STR_KEYS).decode()


def as_stored(value: Any) -> Any:
    """Plain data as it is read back."""
    return orjson.loads(to_json(value))


def _told(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {_told(key): _told(each) for key, each in value.items()}
    return [_told(each) for each in value] if isinstance(value, list | tuple) else value


class SafeText(TypeDecorator[str]):
    """Text that a cloud may have had a say in: PostgreSQL cannot hold the NUL character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else without_nul(value)


def without_nul(text: str) -> str:
    return text.replace("\0", "\ufffd")


class Cell(str):
    """Text of a cell, written out, and sealed where it is to be, before the transaction that stores it: to write out
    much takes time for which others would wait."""

    __slots__ = ()


class Json(TypeDecorator[Any]):
    """Plain data as JSON text: the same bytes in every database, and faster than their own JSON types."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return to_json(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Called for each cell: so not through `process_result_value`, which costs as much again."""
        return _from_json


def _from_json(cell: str | None) -> Any:
    return None if cell is None else orjson.loads(cell)


class Sealed(Json):
    """The same, for secrets: sealed where the database has keys (see `encryption.sealed_cells`). What cannot be
    read is `Lost`.

    Takes: place — `table.column`; always — False: `bulk` seals only rows of which it is told that they hold secrets.
    """

    cache_ok = True

    def __init__(self, place: str, *, always: bool = True) -> None:
        super().__init__()
        self.place = place
        self.always = always

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return keys_of(dialect).seal(to_json(value), self.place)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        place = self.place

        def read(cell: str | None) -> Any:
            if cell is None:
                return None
            if not cell.startswith(MARK):
                return orjson.loads(cell)
            try:
                return orjson.loads(keys_of(dialect).open(cell, place))  # keys may come later
            except Unreadable as error:
                return Lost(error)

        return read


class SealedText(TypeDecorator[str]):
    """Text that may hold secrets. Reading fails: Unreadable."""

    impl = Text
    cache_ok = True

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return seal_text(keys_of(dialect), value, self.place)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else open_text(keys_of(dialect), value, self.place)


def cell_of(dialect: Dialect, column: Column[Any], value: Any) -> Cell:
    """What a column holds for a value that is not None. column — of one of the types above."""
    return Cell(column.type.process_bind_param(value, dialect))  # type: ignore[attr-defined]


Sequence = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up only a column declared INTEGER."""

stack = Table(
    "stack",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("owner", Text),
    Column("parent_id", Text),
    Column("parent_name", Text),
    Column("parent_key", Text),
    Column("parent_shard", Integer),
    Column("root_id", Text, nullable=False),
    Column("depth", Integer, nullable=False, default=0),
    Column("revision", Integer, nullable=False),
    Column("complete_revision", Integer),
    Column("rollback_to", Integer),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", SafeText, nullable=False, default=""),
    Column("disable_rollback", Boolean, nullable=False),
    Column("timeout_mins", Integer),
    Column("deadline", Double),
    Column("converge", Boolean, nullable=False, default=True),
    Column("observe_s", Double),
    Column("exceptions", Json),
    Column("look_from", Double),
    Column("step_at", Double),
    Column("tags", Json),
    Column("shards", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("deleted_at", Double),
    Column("lock", Json),
    Column("suspended", Boolean, nullable=False, default=False, server_default=false()),
    Column("user_project", Text),
    Column("spares", Text),
    Column("snapshot", Json),
    Column("secret", Boolean),
    Column("size", Integer, nullable=False, default=0, server_default="0"),
    Column("healing", Json),
    Index(
        "uq_stack_live_name",
        "project",
        "name",
        unique=True,
        sqlite_where=text("deleted_at IS NULL"),
        postgresql_where=text("deleted_at IS NULL"),
    ),
    Index("ix_stack_listing", "project", "created_at", "id"),
    Index("ix_stack_parent", "parent_id"),
    Index("ix_stack_root", "root_id"),
    Index(
        "ix_stack_user_project",
        "user_project",
        sqlite_where=text("user_project IS NOT NULL"),
        postgresql_where=text("user_project IS NOT NULL"),
    ),
)

"""observe_s — seconds between looks at things at rest, None for the service's own; exceptions — resource name ->
`{"converge": bool, "observe_s": seconds, "healing": policy}`, where it differs from the stack's; look_from — nothing is
at rest until it was looked at after this time; step_at — not before this the group goes on to its next batch;
lock — while it is locked, `{"level": "all" | "stacks", "owner", "owner_id", "reason", "at", "expires_at", "before"}`,
times in seconds since the epoch, before — see `store.stacks.stacks.BEFORE`;
suspended — it was suspended and not resumed since; user_project — where the users that its
servers are live, in the identity service; spares — what of its things stays when it goes, see `model.world.Spares`;
snapshot — the one that is taken of it or of a stack around it, or that it goes back to: `{"id", "place": [names of the
resources on the way down to it], "run"}`, where run is new each time that somebody asks to go back, and is missing
where it is taken; size — how many resources it should have itself, as it was last told;
secret — False: nothing in the whole tree of stacks is made from secrets, and its resources are not
sealed; None: nobody has looked;
healing — what is to be another way than the service does it: `{"policy": "replace" | "ask", "share": number}`."""

revision = Table(
    "revision",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("template", Sealed("revision.template"), nullable=False),
    Column("parameters", Sealed("revision.parameters"), nullable=False),
    Column("environment", Sealed("revision.environment"), nullable=False),
    Column("files", Json, nullable=False),
    Column("intent", Text, nullable=False, default=""),
    Column("created_at", Double, nullable=False),
    Column("action", Text, nullable=False, default="", server_default=""),
)
"""Desired state, immutable. action — of the stack, that it came with, "" where nobody knows any more; kind —
`template`, `group` (template holds the group's one definition and its members, see `resources.groups`), `chain`
(template holds the types of its members) or `empty`; files — name -> key of table `file`."""

file = Table(
    "file",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("content", SealedText("file.content"), nullable=False),
)

shard = Table(
    "shard",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("project", Text, nullable=False),
    Column("epoch", Integer, nullable=False, default=0),
    Column("owner", Text),
    Column("lease_until", Double, nullable=False, default=0.0),
    Column("wake_at", Double),
    Column("wakes", Integer, nullable=False, default=0),
    Column("priority", Integer, nullable=False),
    Column("observe_at", Double),
    Column("settled_revision", Integer, nullable=False, default=0),
    Column("failures", Integer, nullable=False, default=0),
    Column("planned", Integer, nullable=False, default=0, server_default="0"),
    Column("done", Integer, nullable=False, default=0, server_default="0"),
    Column("look_from", Double),
    Column("looked_at", Double),
    Column("blind", Text, nullable=False, default="", server_default=""),
    Column("reason", SafeText, nullable=False, default=""),
    Column("crashes", Integer, nullable=False, default=0, server_default="0"),
    Column("stored", Integer, nullable=False, default=0, server_default="0"),
    Column("healing", Integer, nullable=False, default=0, server_default="0"),
    Index(
        "ix_shard_wake",
        "wake_at",
        sqlite_where=text("wake_at IS NOT NULL"),
        postgresql_where=text("wake_at IS NOT NULL"),
    ),
    Index("ix_shard_observe", "observe_at"),
)
"""planned, done — how much there is to bring to rest at the newest revision, and how much of that is at rest;
look_from — somebody waits for a look made after this time; looked_at — the newest round that saw all its things;
blind — why the one after that did not; reason — the bug of ours that it was set aside for;
crashes — of its owners in a row, see `shards.CRASHES_MAX`; stored — the newest epoch in which anything was stored;
healing — how many of its resources are being healed, counted where a stack has several shards."""

resource = Table(
    "resource",
    metadata,
    Column("key", Text, primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("handle", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("requires", Json, nullable=False),
    Column("properties", Sealed("resource.properties", always=False), nullable=False),
    Column("metadata", Sealed("resource.metadata", always=False)),
    Column("deletion_policy", Text, nullable=False),
    Column("replaces", Text),
    Column("replaced_by", Text),
    Column("token", Text, nullable=False),
    Column("acted_at", Double),
    Column("due_at", Double),
    Column("asked_at", Double),
    Column("attempts", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("intent", Sealed("resource.intent", always=False)),
    Column("born", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("resolved", Integer, nullable=False),
    Column("judged", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("called", Text),
    Column("external_id", Text),
    Column("hooks", Json),
    Column("marks", Json),
    ForeignKeyConstraint(
        ["stack_id", "shard"],
        ["shard.stack_id", "shard.number"],
        name="fk_resource_shard",
        ondelete="CASCADE",
    ),
    Index("ix_resource_shard", "stack_id", "shard"),
    Index("ix_resource_handle", "handle"),
)

"""marks — what people and locks have put on it: `{"unhealthy": {…}, "locked": {…}}`."""

resource_observed = Table(
    "resource_observed",
    metadata,
    Column("key", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("resource_name", Text, nullable=False),
    Column("handle", Text, nullable=False),
    Column("presence", Text, nullable=False),
    Column("object", Sealed("resource_observed.object", always=False), nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("number", Integer, nullable=False),
    Column("seen_at", Double, nullable=False),
)

resource_properties_observed = Table(
    "resource_properties_observed",
    metadata,
    Column("id", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("prop_name", Text, primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("resource_name", Text, nullable=False),
    Column("prop_value", Sealed("resource_properties_observed.prop_value", always=False)),
    Column("since", Double, nullable=False, default=0.0, server_default="0"),
    Index("ix_resource_properties_observed_stack", "stack_id"),
)
"""since — when this value was first seen."""

forsaken = Table(
    "forsaken",
    metadata,
    Column("token", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("look_at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Index("ix_forsaken_look_at", "look_at"),
)
"""Tokens of creations that were given up without an answer: what turns up under them late belongs to nobody."""

retained = Table(
    "retained",
    metadata,
    Column("project", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("handle", Text, primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("stack", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Double, nullable=False),
)
"""Things that were kept when their resource went, by its deletion policy or since its stack was abandoned. They belong
to nobody here, and are not to be taken for leftovers. Kept for good: nobody tells when such a thing goes."""

event = Table(
    "event",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("handle", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("at", Double, nullable=False),
    Index("ix_event_stack", "stack_id", "seq"),
    sqlite_autoincrement=True,
)

event_sink = Table(
    "event_sink",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("settings", Sealed("event_sink.settings"), nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False, default=0),
    Column("due_at", Double, nullable=False, default=0.0),
    Column("failures", Integer, nullable=False, default=0),
    Column("failing_since", Double),
    Column("reason", SafeText, nullable=False, default=""),
    Index("ix_event_sink_due_at", "due_at"),
)
"""Who is told of the events of a root stack and of all nested in it. digest — of the settings; cursor — `seq` of the
last event told; epoch — of who tells it now; due_at — not before this it is told more; failures — tries in vain, one
after the other, since failing_since, the last of them for this reason."""

worker = Table(
    "worker",
    metadata,
    Column("name", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("board", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
)
"""Workers that run; one that has not been seen for some leases is dead."""

record = Table(
    "record",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("link", Text, nullable=False, default=""),
    Column("object", Sealed("record.object"), nullable=False),
    Column("secret", Sealed("record.secret")),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Index("uq_record_token", "kind", "token", unique=True),
    Index("ix_record_listing", "kind", "project", "created_at", "id"),
    Index("ix_record_link", "link", "kind"),
)
"""Things that the service keeps itself: software configs and deployments, what waits for signals, what plug-ins make.
id — the handle; kind — of the cloud port; link — what it belongs to (a deployment's server, a condition's handle), ""
for nothing; object — as `observe` gives it; secret — what no answer shows."""

signal = Table(
    "signal",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("record_id", Text, ForeignKey("record.id", ondelete="CASCADE"), nullable=False),
    Column("object", Sealed("signal.object"), nullable=False),
    Column("at", Double, nullable=False),
    Index("ix_signal_record", "record_id", "seq"),
)
"""What was told to a record, in the order it came."""

snapshot = Table(
    "snapshot",
    metadata,
    Column("id", Text, primary_key=True),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", SafeText, nullable=False, default="", server_default=""),
    Column("revision", Integer, nullable=False),
    Column("data", Sealed("snapshot.data")),
    Column("created_at", Double, nullable=False),
    Column("due_at", Double),
    Index("ix_snapshot_stack", "stack_id", "created_at"),
    Index("ix_snapshot_due_at", "due_at"),
)
"""Snapshots of stacks. action — `CREATE` or `DELETE`; revision — of the stack, that it was taken at; data — how the
resources of the stack were, see `convergence.snapshot_end`; due_at — when its deletion goes on."""

snapshot_part = Table(
    "snapshot_part",
    metadata,
    Column("token", Text, primary_key=True),
    Column("snapshot_id", Text, ForeignKey("snapshot.id", ondelete="CASCADE"), nullable=False),
    Column("place", Json, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("made", Text, nullable=False),
    Index("ix_snapshot_part_snapshot", "snapshot_id"),
)
"""What the clouds keep for a snapshot of a stack. token — that the cloud's own snapshot carries; place — see
`stack.snapshot`; name — of the resource; kind — of its thing, see `clouds.port`; made — id of the cloud's snapshot once
it is complete."""

delegation = Table(
    "delegation",
    metadata,
    Column("id", Text, primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("trust_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("object", Sealed("delegation.object"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("due_at", Double),
    Index("ix_delegation_stack", "stack_id"),
    Index("ix_delegation_project", "project", "state"),
    Index("ix_delegation_state", "state", "due_at"),
    Index("ix_delegation_trust", "trust_id"),
)
"""Trusts of users: on whose behalf the service goes on with a root stack, when that user has gone home. state — `asked`
(the intent is stored, the answer is not), `good`, `gone` (Keystone does not honour it any more), or `leaving` (it is to
be deleted); trust_id — "" until it is known; object — `end`, by which it is found, `user`, and `reason` why it is gone;
due_at — not before this it is looked after again."""
