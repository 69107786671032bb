"""What healing may do, and how much of it goes on

Every new column may be left out by a program of the version before, which may run beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("stack", sa.Column("healing", sa.Text(), nullable=True))
    op.add_column("shard", sa.Column("healing", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("shard", "healing")
    op.drop_column("stack", "healing")
