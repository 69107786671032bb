"""Who has asked for an event, or a revision

A program of the version before, which may run beside this one, leaves it empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
COLUMNS = [(table, name) for table in ("event", "revision") for name in ("requested_by", "request_id")]


def upgrade() -> None:
    for table, name in COLUMNS:
        op.add_column(table, sa.Column(name, sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    for table, name in COLUMNS:
        op.drop_column(table, name)
