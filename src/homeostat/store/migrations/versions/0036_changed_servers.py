"""Servers are known that are about to be changed in ways that the cloud does not list

A program of the version before, which may run beside this one, notes none: what it changes is seen a little later here.
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "changed_server",
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("project", "handle", name=op.f("pk_changed_server")),
    )


def downgrade() -> None:
    op.drop_table("changed_server")
