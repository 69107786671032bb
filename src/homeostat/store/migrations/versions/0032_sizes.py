"""Rows know how many bytes they have, so that their sum is read from an index

A program of the version before, which may run beside this one, leaves it empty; such rows are weighed when it matters.
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, columns in (("record", ["kind", "project"]), ("profile", ["project"]), ("policy", ["project"])):
        op.add_column(table, sa.Column("size", sa.BigInteger(), nullable=True))
        op.create_index(f"ix_{table}_size", table, [*columns, "size"])


def downgrade() -> None:
    for table in ("policy", "profile", "record"):
        op.drop_index(f"ix_{table}_size", table)
        op.drop_column(table, "size")
