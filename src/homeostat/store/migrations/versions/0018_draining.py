"""Until when servers that leave their group are drained

A program of the version before, which may run beside this one, deletes them without that.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("resource", sa.Column("drains_until", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("resource", "drains_until")
