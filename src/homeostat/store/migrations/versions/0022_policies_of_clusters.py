"""What has to be remembered of the policies of clusters

A program of the version before, which may run beside this one, attaches no policies that need it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cluster_policy", sa.Column("state", sa.Text(), nullable=True))
    op.add_column("cluster_policy", sa.Column("attached_at", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("cluster_policy", "attached_at")
    op.drop_column("cluster_policy", "state")
