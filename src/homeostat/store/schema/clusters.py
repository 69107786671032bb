"""Tables of the Clustering API: profiles, policies, clusters, their nodes, receivers and actions.

A cluster is a stack, and has its id; a node is a member of the group in that stack. Their status is read from the
stack: these tables hold only additional facts.
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
"""Definitions of nodes. spec: as sent by the user; type: `name-version`; size: as in `record`."""

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
"""Rules for clusters. spec: as sent by the user; type: `name-version`; size: as in `record`, of the spec."""

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
"""Existing clusters, including those being deleted.

Columns:
    id: The id of the root stack of the cluster.
    max_size: -1 for no limit.
    next_index: The index of the next node; indexes are never reused.
    timeout: Time limit of an action in seconds.
    size: Bytes of its metadata, 0 without metadata; NULL if the previous version has stored them.
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
"""Existing nodes, including those being deleted.

Columns:
    cluster_id: NULL for a node outside clusters, which has its own stack.
    stack_id: The root stack whose group the node is in.
    number: Its number in this group; its index is one more.
    data: Decisions for this node alone: `{"placement": {"zone", "region", "servergroup"}}`; "servergroup" only says
        that the node is in the server group of its cluster.
    own: The node differs from the other nodes of the cluster by more than its number.
    leaving: The node is to be deleted; its row is deleted once its resource has gone.
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
"""Policies attached to clusters.

Columns:
    last_op: When a scaling policy last took effect, for its cooldown.
    state: State of the policy, see `clustering.decisions.attached`; NULL for none.
    attached_at: When it was attached; NULL if unknown.
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
"""Addresses for starting an action of a cluster from outside."""

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
"""Actions of clusters and nodes.

Columns:
    stack_id: The stack whose revision the action began; NULL if the action was done at once.
    begun_after: The number of the event of the stack with which the action began: the next event of the stack itself
        reports the outcome (`clustering.store.actions`).
    status: While it is RUNNING, the events have the present state.
    data: Of an action that waits for other actions, `{"waits_for": [their ids]}`; of a lifecycle hook before a node is
        deleted, `{"parent": id, "hook": {...}}` (`clustering.decisions.hooks`); `{"cancelled": true}` once cancellation
        is requested.
    due_at: When a worker has to continue it; NULL for never.
"""
