"""Places from which the URLs of members are asked"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vantage_look",
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("vantage", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("whole_at", sa.Double(), nullable=False),
        sa.Column("looked_at", sa.Double(), nullable=True),
        sa.Column("found", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_vantage_look_stack_id_stack"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("stack_id", "number", "vantage", name=op.f("pk_vantage_look")),
    )
    op.create_index("ix_vantage_look", "vantage_look", ["vantage", "due_at"])


def downgrade() -> None:
    op.drop_table("vantage_look")
