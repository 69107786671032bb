"""A revision remembers the action that it came with

A program of the version before, which may run beside this one, leaves it empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("revision", sa.Column("action", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("revision", "action")
