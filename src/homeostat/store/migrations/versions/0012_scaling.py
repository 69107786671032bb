"""Scaling by signal: the cooldown of a group, and signals that wait

A program of the version before, which may run beside this one, refuses such signals.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("stack", sa.Column("cooldown", sa.Text(), nullable=True))
    op.create_table(
        "deferred_signal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_deferred_signal_stack_id_stack"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["record_id"], ["record.id"], name=op.f("fk_deferred_signal_record_id_record"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deferred_signal")),
    )
    op.create_index("ix_deferred_signal_stack", "deferred_signal", ["stack_id"])
    op.create_index("ix_deferred_signal_due_at", "deferred_signal", ["due_at"])


def downgrade() -> None:
    op.drop_table("deferred_signal")
    op.drop_column("stack", "cooldown")
