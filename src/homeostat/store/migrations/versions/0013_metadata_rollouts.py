"""Rollouts of metadata to the members of groups

A program of the version before, which may run beside this one, gives new metadata to all members at once.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("resource", sa.Column("new_metadata", sa.Text(), nullable=True))
    op.create_table(
        "rollout",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("members", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("active", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("step_at", sa.Double(), nullable=False),
        sa.Column("reported_at", sa.Double(), nullable=True),
        sa.Column("approved", sa.Integer(), nullable=False),
        sa.Column("forgiven", sa.Integer(), nullable=False),
        sa.Column("alarm", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("first", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["key"], ["resource.key"], name=op.f("fk_rollout_key_resource"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_rollout")),
    )
    op.create_index("ix_rollout_stack", "rollout", ["stack_id"])
    due = sa.text("due_at IS NOT NULL")
    op.create_index("ix_rollout_due_at", "rollout", ["due_at"], sqlite_where=due, postgresql_where=due)
    _add_members()


def _add_members() -> None:
    op.create_table(
        "active_metadata_updates",
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("instance_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("reported", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("reported_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["resource_id"],
            ["resource.key"],
            name=op.f("fk_active_metadata_updates_resource_id_resource"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("resource_id", "instance_id", name=op.f("pk_active_metadata_updates")),
    )
    op.create_index("ix_active_metadata_updates_step", "active_metadata_updates", ["resource_id", "step", "status"])
    failed = sa.text("status = 'FAILURE'")
    op.create_index(
        "ix_active_metadata_updates_failed",
        "active_metadata_updates",
        ["resource_id"],
        sqlite_where=failed,
        postgresql_where=failed,
    )
    op.create_table(
        "rollout_gate",
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("bit", sa.Integer(), nullable=False),
        sa.Column("gates", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["handle"], ["record.id"], name=op.f("fk_rollout_gate_handle_record"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["key"], ["rollout.key"], name=op.f("fk_rollout_gate_key_rollout"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("handle", "key", "bit", name=op.f("pk_rollout_gate")),
    )


def downgrade() -> None:
    op.drop_table("rollout_gate")
    op.drop_table("active_metadata_updates")
    op.drop_table("rollout")
    op.drop_column("resource", "new_metadata")
