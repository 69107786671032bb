"""Rollouts that reach members zone by zone

A program of the version before, which may run beside this one, reaches these by their numbers.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rollout", sa.Column("zones", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("rollout", "zones")
