"""The service's time goes on evenly where the database's clock is set

A program of the version before, which may run beside this one, goes by the clock alone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "timeline",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("anchor", sa.Double(), nullable=False),
        sa.Column("offset_s", sa.Double(), nullable=False),
        sa.Column("kept_at", sa.Double(), nullable=False),
        sa.Column("step_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_timeline")),
    )


def downgrade() -> None:
    op.drop_table("timeline")
