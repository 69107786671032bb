"""Who is told of the events of a stack, and how far it has been told

A program of the version before, which may run beside this one, sends no messages.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_sink",
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("cursor", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_event_sink_stack_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("stack_id", "digest", name=op.f("pk_event_sink")),
    )
    op.create_index("ix_event_sink_due_at", "event_sink", ["due_at"])


def downgrade() -> None:
    op.drop_table("event_sink")
