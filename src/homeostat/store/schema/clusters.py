"""Tables of the Clustering API: profiles, policies, clusters, their nodes, receivers and actions.

A cluster is a stack, and has its id; a node is a member of the group in that stack. How they are is read from the
stack: here is only what the stack does not know.
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, Table, Text, text

from homeostat.store.schema.base import metadata
from homeostat.store.schema.cells import EncryptedJson, Json, SafeText

profile = Table(
    "profile",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("user", Text),
    Column("domain", Text),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("spec", EncryptedJson("profile.spec"), nullable=False),
    Column("metadata", EncryptedJson("profile.metadata"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("size", BigInteger),
    Index("ix_profile_listing", "project", "created_at", "id"),
    Index("ix_profile_name", "project", "name"),
    Index("ix_profile_size", "project", "size"),
)
"""What nodes are made from. spec: as the user sent it; type: `name-version`; size: as in `record`."""

policy = Table(
    "policy",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("user", Text),
    Column("domain", Text),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("spec", EncryptedJson("policy.spec"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("size", BigInteger),
    Index("ix_policy_listing", "project", "created_at", "id"),
    Index("ix_policy_name", "project", "name"),
    Index("ix_policy_size", "project", "size"),
)
"""Rules for clusters. spec: as the user sent it; type: `name-version`; size: as in `record`, of the spec."""

cluster = Table(
    "cluster",
    metadata,
    Column("id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("project", Text, nullable=False),
    Column("user", Text),
    Column("domain", Text),
    Column("name", Text, nullable=False),
    Column("profile_id", Text, ForeignKey("profile.id"), nullable=False),
    Column("min_size", Integer, nullable=False),
    Column("max_size", Integer, nullable=False),
    Column("desired_capacity", Integer, nullable=False),
    Column("next_index", Integer, nullable=False),
    Column("timeout", Integer, nullable=False),
    Column("metadata", EncryptedJson("cluster.metadata"), nullable=False),
    Column("config", EncryptedJson("cluster.config"), nullable=False),
    Column("init_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("size", BigInteger),
    Index("ix_cluster_listing", "project", "init_at", "id"),
    Index("ix_cluster_name", "project", "name"),
    Index("ix_cluster_profile", "profile_id"),
    Index("ix_cluster_size", "project", "size"),
)
"""Clusters that exist, or are being deleted.

Columns:
    id: That of the root stack of the cluster.
    max_size: -1 for no limit.
    next_index: The index of the next node; one is never used again.
    timeout: Seconds that an action may take.
    size: Bytes of its metadata, 0 where there are none; NULL where a version before has stored them.
"""

node = Table(
    "node",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("user", Text),
    Column("domain", Text),
    Column("name", Text, nullable=False),
    Column("cluster_id", Text, ForeignKey("cluster.id", ondelete="CASCADE")),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("profile_id", Text, ForeignKey("profile.id"), nullable=False),
    Column("role", Text),
    Column("metadata", EncryptedJson("node.metadata"), nullable=False),
    Column("data", Json, nullable=False),
    Column("own", Boolean, nullable=False),
    Column("tainted", Boolean, nullable=False),
    Column("leaving", Boolean, nullable=False),
    Column("init_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("size", BigInteger),
    Index("uq_node_number", "stack_id", "number", unique=True),
    Index("ix_node_listing", "project", "init_at", "id"),
    Index("ix_node_name", "project", "name"),
    Index("ix_node_cluster", "cluster_id", "number"),
    Index("ix_node_profile", "profile_id"),
    Index("ix_node_size", "project", "size"),
)
"""Nodes that exist, or are being deleted.

Columns:
    cluster_id: NULL for a node that belongs to no cluster: it has a stack of its own.
    stack_id: The root stack whose group the node is in.
    number: Its number in that group; its index is one more.
    data: What was decided for it alone: `{"placement": {"zone", "region", "servergroup"}}`; of the group it says only
        that the node is in that of its cluster.
    own: It differs from the other nodes of the cluster by more than its number.
    leaving: It is to be deleted; its row goes once its resource has gone.
    size: As in `cluster`.
"""

cluster_policy = Table(
    "cluster_policy",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cluster_id", Text, ForeignKey("cluster.id", ondelete="CASCADE"), nullable=False),
    Column("policy_id", Text, ForeignKey("policy.id"), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("data", EncryptedJson("cluster_policy.data")),
    Column("last_op", Double),
    Column("state", Json),
    Column("attached_at", Double),
    Index("uq_cluster_policy", "cluster_id", "policy_id", unique=True),
    Index("ix_cluster_policy_policy", "policy_id"),
)
"""Policies that are attached to clusters.

Columns:
    last_op: When a scaling policy last had its say, for its cooldown.
    state: What has to be remembered of it, see `clustering.attached`; NULL for nothing.
    attached_at: When it was attached; NULL where that is not known.
"""

receiver = Table(
    "receiver",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("user", Text),
    Column("domain", Text),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("cluster_id", Text, ForeignKey("cluster.id", ondelete="CASCADE")),
    Column("action", Text),
    Column("actor", EncryptedJson("receiver.actor"), nullable=False),
    Column("params", EncryptedJson("receiver.params"), nullable=False),
    Column("channel", EncryptedJson("receiver.channel"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Index("ix_receiver_listing", "project", "name", "id"),
    Index("ix_receiver_cluster", "cluster_id"),
)
"""Addresses at which others begin an action of a cluster."""

action = Table(
    "action",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("user", Text),
    Column("domain", Text),
    Column("name", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("cluster_id", Text),
    Column("cause", Text, nullable=False),
    Column("stack_id", Text),
    Column("begun_after", Integer, nullable=False),
    Column("timeout", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("status_reason", SafeText, nullable=False),
    Column("inputs", EncryptedJson("action.inputs"), nullable=False),
    Column("outputs", EncryptedJson("action.outputs"), nullable=False),
    Column("data", EncryptedJson("action.data"), nullable=False),
    Column("start_time", Double),
    Column("end_time", Double),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("due_at", Double),
    Index("ix_action_listing", "project", "created_at", "id"),
    Index("ix_action_target", "target", "status"),
    Index("ix_action_cluster", "cluster_id", "created_at"),
    Index("ix_action_stack", "stack_id"),
    Index(
        "ix_action_due_at",
        "due_at",
        sqlite_where=text("due_at IS NOT NULL"),
        postgresql_where=text("due_at IS NOT NULL"),
    ),
)
"""What was asked of clusters and nodes.

Columns:
    stack_id: The stack of which it began a revision; NULL for what was done at once.
    begun_after: The number of the event of that stack with which it began: the next one of the stack's own says how
        it ended (`clustering.store.actions`).
    status: As long as it is RUNNING, the events say how it is.
    data: Of one that waits for others, `{"waits_for": [their ids]}`; of one that waits before a node goes,
        `{"parent": id, "hook": {...}}` (`clustering.hooks`); `{"cancelled": true}` once it is to be cancelled.
    due_at: When a worker has to do something for it; NULL for never.
"""
