"""What is counted of the signals of a handle, and who sent them

New tables.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "signal_tally",
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("signals", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("senders", sa.Integer(), nullable=False),
        sa.Column("failed_at", sa.Double(), nullable=True),
        sa.Column("failed_after", sa.Integer(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["record_id"], ["record.id"], name=op.f("fk_signal_tally_record_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_signal_tally")),
    )
    op.create_table(
        "signal_sender",
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["record_id"], ["record.id"], name=op.f("fk_signal_sender_record_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_id", "digest", name=op.f("pk_signal_sender")),
    )
    op.create_index("ix_signal_sender_number", "signal_sender", ["record_id", "number"])


def downgrade() -> None:
    op.drop_table("signal_sender")
    op.drop_table("signal_tally")
