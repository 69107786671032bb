"""Initial schema: clusters and health"""

import sqlalchemy as sa
from alembic import op

from homeostat.store.migrations.columns import (
    SEQUENCE,
    counts,
    doubles,
    flags,
    foreign,
    integers,
    primary,
    texts,
    where,
)

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _profiles()
    _clusters()
    _actions()
    _health()


def _profiles() -> None:
    """Profiles and policies."""
    op.create_table(
        "profile",
        *texts("id", "project"),
        *texts("user", "domain", nullable=True),
        *texts("name", "type", "spec", "metadata"),
        *doubles("created_at"),
        *doubles("updated_at", nullable=True),
        *counts("size", nullable=True),
        primary("profile", "id"),
    )
    op.create_index("ix_profile_listing", "profile", ["project", "created_at", "id"])
    op.create_index("ix_profile_name", "profile", ["project", "name"])
    op.create_index("ix_profile_size", "profile", ["project", "size"])
    op.create_table(
        "policy",
        *texts("id", "project"),
        *texts("user", "domain", nullable=True),
        *texts("name", "type", "spec"),
        *doubles("created_at"),
        *doubles("updated_at", nullable=True),
        *counts("size", nullable=True),
        primary("policy", "id"),
    )
    op.create_index("ix_policy_listing", "policy", ["project", "created_at", "id"])
    op.create_index("ix_policy_name", "policy", ["project", "name"])
    op.create_index("ix_policy_size", "policy", ["project", "size"])


def _clusters() -> None:
    """Clusters and nodes."""
    op.create_table(
        "cluster",
        *texts("id", "project"),
        *texts("user", "domain", nullable=True),
        *texts("name", "profile_id"),
        *integers("min_size", "max_size", "desired_capacity", "next_index", "timeout"),
        *texts("metadata", "config"),
        *doubles("init_at"),
        *doubles("updated_at", nullable=True),
        *counts("size", nullable=True),
        primary("cluster", "id"),
        foreign("fk_cluster_id", ["id"], ["stack.id"]),
        foreign("fk_cluster_profile_id", ["profile_id"], ["profile.id"], ondelete=None),
    )
    op.create_index("ix_cluster_listing", "cluster", ["project", "init_at", "id"])
    op.create_index("ix_cluster_name", "cluster", ["project", "name"])
    op.create_index("ix_cluster_profile", "cluster", ["profile_id"])
    op.create_index("ix_cluster_size", "cluster", ["project", "size"])
    op.create_table(
        "node",
        *texts("id", "project"),
        *texts("user", "domain", nullable=True),
        *texts("name"),
        *texts("cluster_id", nullable=True),
        *texts("stack_id"),
        *integers("number"),
        *texts("profile_id"),
        *texts("role", nullable=True),
        *texts("metadata", "data"),
        *flags("own", "tainted", "leaving"),
        *doubles("init_at"),
        *doubles("updated_at", nullable=True),
        *counts("size", nullable=True),
        primary("node", "id"),
        foreign("fk_node_cluster_id", ["cluster_id"], ["cluster.id"]),
        foreign("fk_node_profile_id", ["profile_id"], ["profile.id"], ondelete=None),
        foreign("fk_node_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_node_cluster", "node", ["cluster_id", "number"])
    op.create_index("ix_node_listing", "node", ["project", "init_at", "id"])
    op.create_index("ix_node_name", "node", ["project", "name"])
    op.create_index("ix_node_profile", "node", ["profile_id"])
    op.create_index("ix_node_size", "node", ["project", "size"])
    op.create_index("uq_node_number", "node", ["stack_id", "number"], unique=True)


def _actions() -> None:
    """Policies of clusters, receivers and actions."""
    op.create_table(
        "cluster_policy",
        *texts("id", "cluster_id", "policy_id"),
        *flags("enabled"),
        *integers("priority"),
        *texts("data", nullable=True),
        *doubles("last_op", nullable=True),
        *texts("state", nullable=True),
        *doubles("attached_at", nullable=True),
        primary("cluster_policy", "id"),
        foreign("fk_cluster_policy_cluster_id", ["cluster_id"], ["cluster.id"]),
        foreign("fk_cluster_policy_policy_id", ["policy_id"], ["policy.id"], ondelete=None),
    )
    op.create_index("ix_cluster_policy_policy", "cluster_policy", ["policy_id"])
    op.create_index("uq_cluster_policy", "cluster_policy", ["cluster_id", "policy_id"], unique=True)
    op.create_table(
        "receiver",
        *texts("id", "project"),
        *texts("user", "domain", nullable=True),
        *texts("name", "type"),
        *texts("cluster_id", "action", nullable=True),
        *texts("actor", "params", "channel"),
        *doubles("created_at"),
        *doubles("updated_at", nullable=True),
        primary("receiver", "id"),
        foreign("fk_receiver_cluster_id", ["cluster_id"], ["cluster.id"]),
    )
    op.create_index("ix_receiver_cluster", "receiver", ["cluster_id"])
    op.create_index("ix_receiver_listing", "receiver", ["project", "name", "id"])
    op.create_table(
        "action",
        *texts("id", "project"),
        *texts("user", "domain", nullable=True),
        *texts("name", "action", "target"),
        *texts("cluster_id", nullable=True),
        *texts("cause"),
        *texts("stack_id", nullable=True),
        *integers("begun_after", "timeout"),
        *texts("status", "status_reason", "inputs", "outputs", "data"),
        *doubles("start_time", "end_time", nullable=True),
        *doubles("created_at"),
        *doubles("updated_at", "due_at", nullable=True),
        primary("action", "id"),
    )
    op.create_index("ix_action_cluster", "action", ["cluster_id", "created_at"])
    op.create_index("ix_action_due_at", "action", ["due_at"], **where("due_at IS NOT NULL"))
    op.create_index("ix_action_listing", "action", ["project", "created_at", "id"])
    op.create_index("ix_action_stack", "action", ["stack_id"])
    op.create_index("ix_action_target", "action", ["target", "status"])


def _health() -> None:
    """Health policies, findings about members, and recoveries."""
    op.create_table(
        "health_check",
        *texts("id", "stack_id", "name"),
        *flags("members"),
        *texts("source", "spec"),
        *flags("enabled"),
        *doubles("created_at"),
        primary("health_check", "id"),
        foreign("fk_health_check_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("uq_health_check", "health_check", ["stack_id", "name"], unique=True)
    op.create_table(
        "node_health",
        *texts("key", "stack_id"),
        *integers("shard"),
        *texts("finding"),
        *doubles("again_at", nullable=True),
        *texts("health"),
        primary("node_health", "key"),
        foreign("fk_node_health_key", ["key"], ["resource.key"]),
    )
    op.create_index("ix_node_health", "node_health", ["stack_id", "finding"])
    op.create_table(
        "recovery",
        sa.Column("id", SEQUENCE, autoincrement=True, nullable=False),
        *texts("stack_id", "name"),
        *doubles("at"),
        *texts("what"),
        sa.Column("begins", sa.Boolean(), server_default=sa.true(), nullable=False),
        *texts("host", nullable=True),
        primary("recovery", "id"),
        foreign("fk_recovery_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_recovery", "recovery", ["stack_id", "at"])
    op.create_table(
        "declared_host",
        *texts("stack_id", "host"),
        *doubles("at"),
        *texts("name", "reason"),
        primary("declared_host", "stack_id", "host"),
        foreign("fk_declared_host_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_table(
        "vantage_look",
        *texts("stack_id"),
        *integers("number"),
        *texts("vantage"),
        *doubles("due_at", "whole_at"),
        *doubles("looked_at", nullable=True),
        *texts("found"),
        primary("vantage_look", "stack_id", "number", "vantage"),
        foreign("fk_vantage_look_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_vantage_look", "vantage_look", ["vantage", "due_at"])
