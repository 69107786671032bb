"""A stack remembers the file that its template came from

A program of the version before, which may run beside this one, leaves it empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("stack", sa.Column("template_source", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("stack", "template_source")
