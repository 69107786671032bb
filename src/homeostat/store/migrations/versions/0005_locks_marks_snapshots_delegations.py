"""Locks of stacks, marks on resources, snapshots of stacks, delegations of users

Every new column may be left out by a program of the version before, which may run beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("resource", sa.Column("marks", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("lock", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("suspended", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("stack", sa.Column("user_project", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("spares", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("snapshot", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("secret", sa.Boolean(), nullable=True))
    op.create_index(
        "ix_stack_user_project",
        "stack",
        ["user_project"],
        sqlite_where=sa.text("user_project IS NOT NULL"),
        postgresql_where=sa.text("user_project IS NOT NULL"),
    )
    op.create_table(
        "snapshot",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_snapshot_stack_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshot")),
    )
    op.create_index("ix_snapshot_stack", "snapshot", ["stack_id", "created_at"])
    op.create_index("ix_snapshot_due_at", "snapshot", ["due_at"])
    op.create_table(
        "snapshot_part",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("made", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["snapshot.id"], name=op.f("fk_snapshot_part_snapshot_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_snapshot_part")),
    )
    op.create_index("ix_snapshot_part_snapshot", "snapshot_part", ["snapshot_id"])
    op.create_table(
        "delegation",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("trust_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delegation")),
    )
    op.create_index("ix_delegation_stack", "delegation", ["stack_id"])
    op.create_index("ix_delegation_project", "delegation", ["project", "state"])
    op.create_index("ix_delegation_state", "delegation", ["state", "due_at"])
    op.create_index("ix_delegation_trust", "delegation", ["trust_id"])


def downgrade() -> None:
    op.drop_table("delegation")
    op.drop_table("snapshot_part")
    op.drop_table("snapshot")
    op.drop_index("ix_stack_user_project", "stack")
    op.drop_column("stack", "secret")
    op.drop_column("stack", "snapshot")
    op.drop_column("stack", "spares")
    op.drop_column("stack", "user_project")
    op.drop_column("stack", "suspended")
    op.drop_column("stack", "lock")
    op.drop_column("resource", "marks")
