"""What signals make of the size of groups, for notifications

A program of the version before, which may run beside this one, leaves none and sends none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "resize",
        sa.Column("event", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("adjustment", sa.Double(), nullable=False),
        sa.Column("adjustment_type", sa.Text(), nullable=False),
        sa.Column("before", sa.Integer(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["event"], ["event.seq"], name=op.f("fk_resize_event_event"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_resize_stack_id_stack"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("event", name=op.f("pk_resize")),
    )
    op.create_index("ix_resize_stack", "resize", ["stack_id", "event"])


def downgrade() -> None:
    op.drop_table("resize")
