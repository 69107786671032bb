"""What members report to groups that wait for it before their next batch

A program of the version before, which may run beside this one, takes no reports and waits for none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "member_report",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("succeeded_at", sa.Double(), nullable=True),
        sa.Column("failed_at", sa.Double(), nullable=True),
        sa.Column("said", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key"], ["resource.key"], name=op.f("fk_member_report_key_resource"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", "member", name=op.f("pk_member_report")),
    )


def downgrade() -> None:
    op.drop_table("member_report")
