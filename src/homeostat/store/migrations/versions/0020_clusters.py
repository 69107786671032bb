"""Clusters, their nodes and profiles, policies, receivers and actions

A program of the version before, which may run beside this one, converges the stacks of clusters as any others.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _add_specs()
    _add_clusters()
    _add_rules()
    _add_actions()


def _add_specs() -> None:
    op.create_table(
        "profile",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profile")),
    )
    op.create_index("ix_profile_listing", "profile", ["project", "created_at", "id"])
    op.create_index("ix_profile_name", "profile", ["project", "name"])
    op.create_table(
        "policy",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy")),
    )
    op.create_index("ix_policy_listing", "policy", ["project", "created_at", "id"])
    op.create_index("ix_policy_name", "policy", ["project", "name"])


def _add_clusters() -> None:
    op.create_table(
        "cluster",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("profile_id", sa.Text(), nullable=False),
        sa.Column("min_size", sa.Integer(), nullable=False),
        sa.Column("max_size", sa.Integer(), nullable=False),
        sa.Column("desired_capacity", sa.Integer(), nullable=False),
        sa.Column("next_index", sa.Integer(), nullable=False),
        sa.Column("timeout", sa.Integer(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("init_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["id"], ["stack.id"], name=op.f("fk_cluster_id_stack"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["profile_id"], ["profile.id"], name=op.f("fk_cluster_profile_id_profile")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster")),
    )
    op.create_index("ix_cluster_listing", "cluster", ["project", "init_at", "id"])
    op.create_index("ix_cluster_name", "cluster", ["project", "name"])
    op.create_index("ix_cluster_profile", "cluster", ["profile_id"])
    op.create_table(
        "node",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=True),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("profile_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("own", sa.Boolean(), nullable=False),
        sa.Column("tainted", sa.Boolean(), nullable=False),
        sa.Column("leaving", sa.Boolean(), nullable=False),
        sa.Column("init_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["cluster.id"], name=op.f("fk_node_cluster_id_cluster"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_node_stack_id_stack"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["profile_id"], ["profile.id"], name=op.f("fk_node_profile_id_profile")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node")),
    )
    op.create_index("ix_node_cluster", "node", ["cluster_id", "number"])
    op.create_index("ix_node_listing", "node", ["project", "init_at", "id"])
    op.create_index("ix_node_name", "node", ["project", "name"])
    op.create_index("ix_node_profile", "node", ["profile_id"])
    op.create_index("uq_node_number", "node", ["stack_id", "number"], unique=True)


def _add_rules() -> None:
    op.create_table(
        "cluster_policy",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=False),
        sa.Column("policy_id", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("last_op", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["cluster.id"], name=op.f("fk_cluster_policy_cluster_id_cluster"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["policy_id"], ["policy.id"], name=op.f("fk_cluster_policy_policy_id_policy")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster_policy")),
    )
    op.create_index("ix_cluster_policy_policy", "cluster_policy", ["policy_id"])
    op.create_index("uq_cluster_policy", "cluster_policy", ["cluster_id", "policy_id"], unique=True)
    op.create_table(
        "receiver",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["cluster.id"], name=op.f("fk_receiver_cluster_id_cluster"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_receiver")),
    )
    op.create_index("ix_receiver_cluster", "receiver", ["cluster_id"])
    op.create_index("ix_receiver_listing", "receiver", ["project", "name", "id"])


def _add_actions() -> None:
    op.create_table(
        "action",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=True),
        sa.Column("begun_after", sa.Integer(), nullable=False),
        sa.Column("timeout", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("outputs", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("start_time", sa.Double(), nullable=True),
        sa.Column("end_time", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_action")),
    )
    op.create_index("ix_action_cluster", "action", ["cluster_id", "created_at"])
    op.create_index("ix_action_listing", "action", ["project", "created_at", "id"])
    op.create_index("ix_action_target", "action", ["target", "status"])


def downgrade() -> None:
    for name in ("action", "receiver", "cluster_policy", "node", "cluster", "policy", "profile"):
        op.drop_table(name)
