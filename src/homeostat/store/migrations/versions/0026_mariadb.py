"""What MariaDB and MySQL need rows for, and other databases have built in

New tables, on those servers alone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name != "mysql":
        return
    op.create_table(
        "latch",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("turns", sa.BigInteger(), nullable=False),
    )
    op.create_table("transaction_mark", sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True))


def downgrade() -> None:
    if op.get_bind().dialect.name == "mysql":
        op.drop_table("transaction_mark")
        op.drop_table("latch")
