"""When the next request to a service of an OpenStack may be sent

A program of the version before, which may run beside this one, keeps no limit.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "request_turn",
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("free_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("service", name=op.f("pk_request_turn")),
    )


def downgrade() -> None:
    op.drop_table("request_turn")
