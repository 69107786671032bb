"""Tables of shards: resources, their observations, and things without a row."""

from sqlalchemy import Column, Double, ForeignKey, ForeignKeyConstraint, Index, Integer, Table, Text, text

from homeostat.model import hooks, intent, marks
from homeostat.store.schema.base import metadata
from homeostat.store.schema.cells import Codec, EncryptedJson, Json, SafeText

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
    Column("health_at", Double),
    Column("health_from", Double),
    Column("health_looked_at", Double),
    Index(
        "ix_shard_wake",
        "wake_at",
        sqlite_where=text("wake_at IS NOT NULL"),
        postgresql_where=text("wake_at IS NOT NULL"),
    ),
    Index("ix_shard_observe", "observe_at"),
    Index("ix_shard_health", "health_at"),
)
"""Shards: the units of ownership.

Columns:
    epoch: The fencing token; each claim increments it, and each write of an owner checks it.
    lease_until: When the lease of the owner ends; 0.0 without an owner.
    wake_at: When the next pass is due; NULL for none.
    wakes: Count of wake-ups, from which an owner notices wake-ups during its work.
    observe_at: When observers are to look at its things next; NULL means never.
    settled_revision: The newest revision at which the shard has been at rest.
    failures: Number of FAILED resources.
    planned, done: Number of nodes that have to come to rest at the newest revision, and of nodes at rest among them.
    look_from: A look made after this time was requested.
    looked_at: When the newest look that saw all of its things was made.
    blind: Why the look after `looked_at` could not see them; "" if it could.
    reason: The internal error for which the shard was set aside.
    crashes: Crashes of its owners in a row, weighted; see `store.shards.shards.CRASHES_MAX`.
    stored: The newest epoch in which anything was stored.
    healing: Number of resources being healed; only counted if the stack has several shards, or belongs to a group with
        a limit.
    health_at: When the health of its members is checked next; NULL without a health policy.
    health_from: When all members are due; earlier checks only request single URLs again.
    health_looked_at: When the newest look at all members began.
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
    Column("converge_requested_at", Double),
    Column("attempts", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("intent", EncryptedJson("resource.intent", Codec(intent.load, intent.dump), always=False)),
    Column("born", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("resolved", Integer, nullable=False),
    Column("judged_observation", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("template_type", Text),
    Column("external_id", Text),
    Column("hooks", Json(Codec(hooks.load, hooks.dump))),
    Column("marks", Json(Codec(marks.load, marks.dump))),
    Column("new_metadata", EncryptedJson("resource.new_metadata", always=False)),
    Column("drains_until", Double),
    ForeignKeyConstraint(
        ["stack_id", "shard"],
        ["shard.stack_id", "shard.number"],
        name="fk_resource_shard",
        ondelete="CASCADE",
    ),
    Index("ix_resource_shard", "stack_id", "shard"),
    Index("ix_resource_handle", "handle"),
)
"""Resources of stacks; for the columns see `model.world.Resource`."""

# The newest observation of each resource. A separate table, since observers and passes write it independently.
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
"""Observed values of the properties set by templates.

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
    Column("looked_at", Double),
    Index("ix_forsaken_look_at", "look_at"),
)
"""Tokens of requests whose thing may turn up late as an orphan, to be deleted.

They come from creations given up without an answer, and from deletions for which the cloud did not find the thing.

Columns:
    look_at: When the cloud is searched for the token next.
    until: The token is deleted if its thing has not turned up by then.
    looked_at: When the newest complete look began, or the time was restarted.
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
not notice the deletion of such a thing.
"""
