"""Tables of health policies: the resources they apply to, findings, and recoveries."""

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, Table, Text, true

from homeostat.model import node_health as model
from homeostat.store.schema.base import Sequence, metadata
from homeostat.store.schema.cells import Codec, EncryptedJson, Json, SafeText

health_check = Table(
    "health_check",
    metadata,
    Column("id", Text, primary_key=True),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("members", Boolean, nullable=False),
    Column("source", Text, nullable=False),
    Column("spec", EncryptedJson("health_check.spec"), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("uq_health_check", "stack_id", "name", unique=True),
)
"""Health policies that apply to a resource, or to the members of a group.

Columns:
    stack_id, name: The resource.
    members: Whether the resource is a group, and the policy applies only to its members.
    source: The origin: the id of a policy binding of a cluster, or the key of a resource.
    spec: The policy, as sent by the user.
"""

node_health = Table(
    "node_health",
    metadata,
    Column("key", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("finding", Text, nullable=False),
    Column("again_at", Double),
    Column("health", Json(Codec(model.load, model.dump)), nullable=False),
    Index("ix_node_health", "stack_id", "finding"),
)
"""The health of each resource under a health policy; see `model.node_health.NodeHealth`."""

declared_host = Table(
    "declared_host",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("host", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("name", Text, nullable=False),
    Column("reason", SafeText, nullable=False),
)
"""Hosts that are declared down since their fencing cut off a member; see `store.shards.declared_hosts`.

Columns:
    at: When the cloud confirmed the declaration.
    name: The member.
    reason: The finding about the member.
"""

vantage_look = Table(
    "vantage_look",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("vantage", Text, primary_key=True),
    Column("due_at", Double, nullable=False),
    Column("whole_at", Double, nullable=False),
    Column("looked_at", Double),
    Column("found", Json(), nullable=False),
    Index("ix_vantage_look", "vantage", "due_at"),
)
"""Findings about the URLs of the members of a shard from a place; see `store.shards.vantage_looks`.

Columns:
    due_at, whole_at: When some URLs are requested next, and when all are.
    looked_at: When the newest whole look began.
    found: Row key -> number of a detection -> finding, evidence and attempts, except healthy ones.
"""

recovery = Table(
    "recovery",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("what", SafeText, nullable=False),
    Column("begins", Boolean, nullable=False, default=True, server_default=true()),
    Column("host", SafeText),
    Index("ix_recovery", "stack_id", "at"),
)
"""Actions of recoveries begun in the last day.

Columns:
    name: The resource.
    what: The action, in a few words.
    begins: Whether it is the first action of a recovery, or of another round of the recovery.
    host: The host of the thing, if known.
"""
