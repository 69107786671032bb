"""Rollouts of the definition of members

A program of the version before, which may run beside this one, cannot read the settings of such a rollout: it leaves
that to programs of this version.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rollout", sa.Column("subject", sa.Integer(), nullable=True))
    op.add_column("rollout", sa.Column("giving", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("rollout", "giving")
    op.drop_column("rollout", "subject")
