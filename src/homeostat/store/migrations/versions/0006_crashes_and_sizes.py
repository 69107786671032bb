"""Owners of a shard that ended without giving it back are counted, and the resources of a stack

Every new column may be left out by a program of the version before, which may run beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("stack", sa.Column("size", sa.Integer(), server_default="0", nullable=False))
    op.add_column("shard", sa.Column("crashes", sa.Integer(), server_default="0", nullable=False))
    op.add_column("shard", sa.Column("stored", sa.Integer(), server_default="0", nullable=False))
