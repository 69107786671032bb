"""Which actions begin a recovery

A program of the version before, which may run beside this one, says of each action that one begins with it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("recovery", sa.Column("begins", sa.Boolean(), nullable=False, server_default=sa.true()))


def downgrade() -> None:
    op.drop_column("recovery", "begins")
