"""Tables of stacks: revisions, files, snapshots."""

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, Table, Text, false, text

from homeostat.model import snapshot as model
from homeostat.store.schema.base import metadata
from homeostat.store.schema.cells import Codec, EncryptedJson, EncryptedText, Json, SafeText

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
    Column("template_source", Text),
    Column("shards", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("deleted_at", Double),
    Column("lock", Json),
    Column("suspended", Boolean, nullable=False, default=False, server_default=false()),
    Column("user_project", Text),
    Column("spares", Text),
    Column("snapshot", Json(Codec(model.load, model.dump))),
    Column("secret", Boolean),
    Column("size", Integer, nullable=False, default=0, server_default="0"),
    Column("healing", Json),
    Column("cooldown", Json),
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
    Index("ix_stack_parent_key", "parent_key"),
    Index("ix_stack_root", "root_id"),
    Index(
        "ix_stack_user_project",
        "user_project",
        sqlite_where=text("user_project IS NOT NULL"),
        postgresql_where=text("user_project IS NOT NULL"),
    ),
)
"""Stacks, including nested and deleted ones.

Columns:
    parent_*: The row of the parent resource of a nested stack; NULL for a root stack.
    complete_revision: The newest revision that was COMPLETE; NULL if none was.
    rollback_to: The revision that a rollback returns to, 0 if it returns to nothing.
    observe_s: Seconds between looks at things at rest; NULL means the service's default.
    exceptions: Resource name -> `{"converge": bool, "observe_s": seconds, "healing": policy}`, for resources whose
        settings differ from the stack's.
    look_from: No resource counts as at rest before a look after this time.
    step_at: The group does not start its next batch before this time.
    lock: While the stack is locked, `{"level": "all" | "stacks", "owner", "owner_id", "reason", "at", "expires_at",
        "before"}`; times in seconds since the epoch; for before see `store.stacks.stack_state.BEFORE`.
    suspended: The stack was suspended and has not been resumed since.
    user_project: The project, in the identity service, of the users that servers of the stack authenticate as.
    spares: The kind of things that stay when the stack is deleted; see `model.world.KeepPolicy`.
    snapshot: The snapshot of this stack or an ancestor that is being taken or restored, see `model.snapshot`.
    size: The last known number of resources that the stack itself should have.
    secret: False if nothing in the whole tree of stacks is derived from secrets, so that its resources are not
        encrypted; NULL if unknown.
    healing: Settings that differ from the service's: `{"policy": "replace" | "ask", "share": number}`.
    cooldown: Of a group that scales, until when signals do not change its size, and why: `{"until", "reason"}`.
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
    Column("requested_by", Text, nullable=False, default="", server_default=""),
    Column("request_id", Text, nullable=False, default="", server_default=""),
    Column("size", Integer),
)
"""Desired state of stacks; a revision never changes.

Columns:
    kind: `template`, `group` (template holds the group's single definition and its members, see `resources.groups`),
        `chain` (template holds the types of its members) or `empty`.
    files: File name -> key of table `file`.
    intent: The operation of the parent that caused a revision of a nested stack, see
        `store.stacks.revisions.NewRevision`; also `store.stacks.deletion.POLICIES`; otherwise "".
    action: The stack action that created the revision; "" in rows older than this column.
    requested_by, request_id: The requester, and the id of the request; "" for revisions by the service itself.
    size: Number of resources that it defines; NULL in rows older than this column.
"""

# Texts of files by hash: a whole tree of stacks, with all revisions, shares a single copy.
file = Table(
    "file",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("content", EncryptedText("file.content"), nullable=False),
)

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
    revision: The revision of the stack at the time of the snapshot.
    data: The state of the stack's resources then, see `convergence.snapshots.completion`; NULL until then.
    due_at: When its deletion continues; NULL if the snapshot is not being deleted.
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
"""Snapshots stored by the clouds for a snapshot of a stack.

Columns:
    token: The token of the cloud's own snapshot.
    place: The names of the resources on the way down to the nested stack, see `stack.snapshot`.
    name: The name of the resource.
    kind: The kind of its thing, see `clouds.port`.
    made: The id of the cloud's snapshot once complete; "" before.
"""
