"""Recoveries know the host that the member was on: of a host that is down, one is recovered first

A program of the version before, which may run beside this one, leaves it empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("recovery", sa.Column("host", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("recovery", "host")
