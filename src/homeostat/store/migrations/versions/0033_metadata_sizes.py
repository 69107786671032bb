"""Clusters and nodes know how many bytes their metadata have, as rows with sizes before them do

A program of the version before, which may run beside this one, leaves it empty; such rows are weighed when it matters.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("cluster", "node"):
        op.add_column(table, sa.Column("size", sa.BigInteger(), nullable=True))
        op.create_index(f"ix_{table}_size", table, ["project", "size"])


def downgrade() -> None:
    for table in ("node", "cluster"):
        op.drop_index(f"ix_{table}_size", table)
        op.drop_column(table, "size")
