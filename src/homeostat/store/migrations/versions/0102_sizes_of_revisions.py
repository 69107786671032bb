"""Sizes of revisions"""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("revision", sa.Column("size", sa.Integer(), nullable=True))
