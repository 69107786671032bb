"""Hosts that fences have declared down are known, with the evidence, until that is lifted

A program of the version before, which may run beside this one, notes none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "declared_host",
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_declared_host_stack_id_stack"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("stack_id", "host", name=op.f("pk_declared_host")),
    )


def downgrade() -> None:
    op.drop_table("declared_host")
