"""When orphans were last looked for

A program of the version before, which may run beside this one, leaves it empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("forsaken", sa.Column("looked_at", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("forsaken", "looked_at")
