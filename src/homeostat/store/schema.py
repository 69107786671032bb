"""The tables: one schema for SQLite and PostgreSQL. All times are seconds since the epoch, UTC."""

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

from homeostat.store.encryption.encrypted_cells import MARK, Lost, Unreadable, decrypt_text, encrypt_text, keys_of

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def to_json(value: Any) -> str:
    """Encode plain data as JSON.

    What a cloud reports and JSON cannot hold becomes text: integers of more than 64 bits; broken Unicode is replaced.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # Second try only: nearly all data encodes at once, and to walk through it first would cost more than to encode.
        return orjson.dumps(_encodable(value), option=orjson.OPT_NON_STR_KEYS).decode()


def as_stored(value: Any) -> Any:
    """Return plain data in the form in which it is read back from the database."""
    return orjson.loads(to_json(value))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return [_encodable(each) for each in value] if isinstance(value, list | tuple) else value


class SafeText(TypeDecorator[str]):
    """Text that may come from a cloud: NUL, which PostgreSQL cannot store, is replaced by U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else without_nul(value)


def without_nul(text: str) -> str:
    return text.replace("\0", "\ufffd")


class Cell(str):
    """The text of a cell, encoded (and encrypted where required) before the transaction that stores it.

    Encoding large data takes time, during which other writers would wait for the transaction.
    """

    __slots__ = ()


class Json(TypeDecorator[Any]):
    """Plain data as JSON text: the same bytes in every database, and faster than the databases' own JSON types."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return to_json(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Return the decoder itself: `process_result_value` would double the cost of each cell."""
        return _from_json


def _from_json(cell: str | None) -> Any:
    return None if cell is None else orjson.loads(cell)


class EncryptedJson(Json):
    """Plain data as JSON text that is encrypted where the database has keys (see `encryption.encrypted_cells`).

    A cell that cannot be decrypted is read as `Lost`.

    Args:
        place: `table.column`, which is authenticated with the cell.
        always: False if `bulk` encrypts the column only in rows that the caller declares to hold secrets.
    """

    cache_ok = True

    def __init__(self, place: str, *, always: bool = True) -> None:
        super().__init__()
        self.place = place
        self.always = always

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return keys_of(dialect).encrypt(to_json(value), self.place)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        place = self.place

        def read(cell: str | None) -> Any:
            if cell is None:
                return None
            if not cell.startswith(MARK):
                return orjson.loads(cell)
            try:
                # The keys are looked up for each cell, since they may be set after this decoder was made.
                return orjson.loads(keys_of(dialect).decrypt(cell, place))
            except Unreadable as error:
                # An exception would fail the whole query, and with it other rows, which can be read.
                return Lost(error)

        return read


class EncryptedText(TypeDecorator[str]):
    """Text that may hold secrets, encrypted where the database has keys.

    Reading a cell that cannot be decrypted raises `Unreadable`.
    """

    impl = Text
    cache_ok = True

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return encrypt_text(keys_of(dialect), value, self.place)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else decrypt_text(keys_of(dialect), value, self.place)


def cell_of(dialect: Dialect, column: Column[Any], value: Any) -> Cell:
    """Encode a value that is not None for a column of one of the types above."""
    return Cell(column.type.process_bind_param(value, dialect))  # type: ignore[attr-defined]


Sequence = BigInteger().with_variant(Integer, "sqlite")
"""The type of auto-incremented keys: SQLite increments only columns declared INTEGER."""

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

"""Stacks, nested and deleted ones included.

Columns:
    parent_*: The row of the parent resource of a nested stack; NULL for a root stack.
    complete_revision: The newest revision that was COMPLETE; NULL if none was.
    rollback_to: The revision that a rollback returns to, 0 if it returns to nothing.
    observe_s: Seconds between looks at things at rest; NULL means the service's default.
    exceptions: Resource name -> `{"converge": bool, "observe_s": seconds, "healing": policy}`, for resources whose
        settings differ from the stack's.
    look_from: No resource counts as at rest before it was looked at after this time.
    step_at: The group does not start its next batch before this time.
    lock: While the stack is locked, `{"level": "all" | "stacks", "owner", "owner_id", "reason", "at", "expires_at",
        "before"}`; times in seconds since the epoch; for before see `store.stacks.stacks.BEFORE`.
    suspended: The stack was suspended and has not been resumed since.
    user_project: The project, in the identity service, of the users that servers of the stack authenticate as.
    spares: Which of its things stay when the stack is deleted; see `model.world.Spares`.
    snapshot: The snapshot that is being taken of this stack or of a stack around it, or that it is being restored
        to: `{"id", "place": [names of the resources on the way down to this stack], "run"}`. run is new for each
        request to restore, and missing while the snapshot is taken.
    size: How many resources the stack itself should have, as last counted.
    secret: False if nothing in the whole tree of stacks is made from secrets, so that its resources are not encrypted;
        NULL if that was never determined.
    healing: Settings that differ from the service's: `{"policy": "replace" | "ask", "share": number}`.
"""

revision = Table(
    "revision",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("template", EncryptedJson("revision.template"), nullable=False),
    Column("parameters", EncryptedJson("revision.parameters"), nullable=False),
    Column("environment", EncryptedJson("revision.environment"), nullable=False),
    Column("files", Json, nullable=False),
    Column("intent", Text, nullable=False, default=""),
    Column("created_at", Double, nullable=False),
    Column("action", Text, nullable=False, default="", server_default=""),
)
"""Desired state of stacks; a revision never changes.

Columns:
    kind: `template`, `group` (template holds the group's one definition and its members, see `resources.groups`),
        `chain` (template holds the types of its members) or `empty`.
    files: File name -> key of table `file`.
    intent: The act of the parent that a revision of a nested stack comes from, see `store.stacks.stacks.Desired`; also
        `store.stacks.deletion.POLICIES`; otherwise "".
    action: The stack action that created the revision; "" in rows that are older than this column.
"""

# Texts of files by hash: a stack and all that is nested in it, and all their revisions, share one copy.
file = Table(
    "file",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("content", EncryptedText("file.content"), nullable=False),
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
"""Shards: the units of ownership.

Columns:
    epoch: The fencing token; each claim increments it, and each write of an owner checks it.
    lease_until: When the lease of the owner ends; 0.0 if the shard is not owned.
    wake_at: When the shard wants its next pass; NULL if it wants none.
    wakes: Count of wake-ups, by which an owner notices those that come while it works.
    observe_at: When observers are to look at its things next; NULL means never.
    settled_revision: The newest revision at which the shard has been at rest.
    failures: How many of its resources are FAILED.
    planned, done: How many nodes have to come to rest at the newest revision, and how many of them are at rest.
    look_from: A look that was made after this time was requested.
    looked_at: When the newest look that saw all of its things was made.
    blind: Why the look after that one could not see them; "" if it could.
    reason: The internal error for which the shard was set aside.
    crashes: Crashes of its owners in a row, weighted; see `shards.CRASHES_MAX`.
    stored: The newest epoch in which anything was stored.
    healing: How many of its resources are being healed; only counted if the stack has several shards.
"""

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
    Column("properties", EncryptedJson("resource.properties", always=False), nullable=False),
    Column("metadata", EncryptedJson("resource.metadata", always=False)),
    Column("deletion_policy", Text, nullable=False),
    Column("replaces", Text),
    Column("replaced_by", Text),
    Column("token", Text, nullable=False),
    Column("acted_at", Double),
    Column("due_at", Double),
    Column("asked_at", Double),
    Column("attempts", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("intent", EncryptedJson("resource.intent", always=False)),
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

"""Resources of stacks; for the columns see `model.world.Resource`.

Columns:
    marks: Marks that users and locks have put on the resource: `{"unhealthy": {…}, "locked": {…}}`.
"""

# The newest observation of each resource. A table of its own, since observers and passes write it independently.
resource_observed = Table(
    "resource_observed",
    metadata,
    Column("key", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("resource_name", Text, nullable=False),
    Column("handle", Text, nullable=False),
    Column("presence", Text, nullable=False),
    Column("object", EncryptedJson("resource_observed.object", always=False), nullable=False),
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
    Column("prop_value", EncryptedJson("resource_properties_observed.prop_value", always=False)),
    Column("since", Double, nullable=False, default=0.0, server_default="0"),
    Index("ix_resource_properties_observed_stack", "stack_id"),
)
"""Observed values of the properties that templates set.

Columns:
    since: When this value was first seen.
"""

orphan = Table(
    "forsaken",
    metadata,
    Column("token", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("look_at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Index("ix_forsaken_look_at", "look_at"),
)
"""Tokens under which a thing may turn up late; it is an orphan then, and is deleted.

They are those of creations that were given up without an answer, and of things that a cloud did not find when it should
have deleted them.

Columns:
    look_at: When the cloud is searched for the token next.
    until: The token is forgotten if it has not turned up by then.
"""

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
"""Things that were retained when their resource was deleted, by its deletion policy or since its stack was abandoned.

No stack owns them any more, and they must not be taken for orphans. The rows are never deleted, since the service does
not learn when such a thing is deleted.
"""

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
    # Readers continue after the last number they have seen: the number of a purged event must not be used again.
    sqlite_autoincrement=True,
)
"""Changes of state of stacks and resources, each stored in the transaction that makes the change.

Columns:
    key: Key of the resource row; "" for an event of the stack itself.
"""

event_sink = Table(
    "event_sink",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("settings", EncryptedJson("event_sink.settings"), nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False, default=0),
    Column("due_at", Double, nullable=False, default=0.0),
    Column("failures", Integer, nullable=False, default=0),
    Column("failing_since", Double),
    Column("reason", SafeText, nullable=False, default=""),
    Index("ix_event_sink_due_at", "due_at"),
)
"""Event sinks of root stacks: each receives the events of its stack and of all stacks nested in it.

Columns:
    digest: Hash of the settings.
    cursor: `seq` of the last event that was delivered.
    epoch: The fencing token of the worker that delivers now.
    due_at: Nothing more is delivered before this time.
    failures: Failed deliveries in a row, since failing_since; the last of them failed for `reason`.
"""

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
"""The register of workers; see `operation.workers`. One that has not been seen for some seconds counts as dead."""

record = Table(
    "record",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("link", Text, nullable=False, default=""),
    Column("object", EncryptedJson("record.object"), nullable=False),
    Column("secret", EncryptedJson("record.secret")),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Index("uq_record_token", "kind", "token", unique=True),
    Index("ix_record_listing", "kind", "project", "created_at", "id"),
    Index("ix_record_link", "link", "kind"),
)
"""Things that the service itself keeps: software configs and deployments, wait conditions, things of plug-ins.

Columns:
    id: The handle.
    kind: The kind of the cloud port.
    token: The token of the creation; unique within the kind, so that a repeated creation finds the first one.
    link: What the record belongs to (a deployment's server, a condition's handle); "" for nothing.
    object: The thing's properties, as `observe` returns them.
    secret: Data that no response shows.
"""

signal = Table(
    "signal",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("record_id", Text, ForeignKey("record.id", ondelete="CASCADE"), nullable=False),
    Column("object", EncryptedJson("signal.object"), nullable=False),
    Column("at", Double, nullable=False),
    Index("ix_signal_record", "record_id", "seq"),
)
"""Signals that records have received, in order of arrival."""

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
    Column("data", EncryptedJson("snapshot.data")),
    Column("created_at", Double, nullable=False),
    Column("due_at", Double),
    Index("ix_snapshot_stack", "stack_id", "created_at"),
    Index("ix_snapshot_due_at", "due_at"),
)
"""Snapshots of stacks.

Columns:
    action: `CREATE` or `DELETE`.
    revision: The revision of the stack that the snapshot was taken at.
    data: The state of the stack's resources then, see `convergence.snapshot_end`; NULL until the snapshot is complete.
    due_at: When its deletion continues; NULL if it is not being deleted.
"""

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
"""Snapshots that the clouds keep for a snapshot of a stack.

Columns:
    token: The token that the cloud's own snapshot carries.
    place: The names of the resources on the way down to the nested stack, see `stack.snapshot`.
    name: The name of the resource.
    kind: The kind of its thing, see `clouds.port`.
    made: The id of the cloud's snapshot once it is complete; "" before.
"""

trust = Table(
    "delegation",
    metadata,
    Column("id", Text, primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("trust_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("object", EncryptedJson("delegation.object"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("due_at", Double),
    Index("ix_delegation_stack", "stack_id"),
    Index("ix_delegation_project", "project", "state"),
    Index("ix_delegation_state", "state", "due_at"),
    Index("ix_delegation_trust", "trust_id"),
)
"""Trusts of users, on whose behalf the service works on a root stack after the token of their request has expired.

Columns:
    trust_id: The id in Keystone; "" until it is known.
    state: `asked` (the intent is stored, the answer is not), `good`, `gone` (Keystone does not honour it any more) or
        `leaving` (it has to be deleted).
    object: `end` (the expiry by which the trust is found again), `user`, and `reason` why it is gone.
    due_at: The clean-up of an `asked` or `leaving` trust is not tried before this time.
"""
