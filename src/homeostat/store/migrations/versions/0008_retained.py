"""What was kept when its resource or stack went is remembered; numbers of events are never used again

The new table may be left out by a program of the version before, which may run beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retained",
        sa.Column("project", sa.Text(), primary_key=True),
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("handle", sa.Text(), primary_key=True),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("stack", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        _number_for_good()


def _number_for_good() -> None:
    """SQLite numbers rows by the highest one there is, unless the table was made with AUTOINCREMENT: made anew, copied
    and renamed, in the order of the numbers, which is the fastest. What sinks have read counts as used."""
    op.create_table(
        "event_anew",
        sa.Column("seq", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("stack_id", sa.Text(), sa.ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in TEXTS),
        sa.Column("at", sa.Double(), nullable=False),
        sqlite_autoincrement=True,
    )
    columns = ", ".join(("seq", "stack_id", *TEXTS, "at"))
    op.execute(f"INSERT INTO event_anew ({columns}) SELECT {columns} FROM event ORDER BY seq")
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'event_anew'")
    used = "(SELECT coalesce(max(seq), 0) FROM event), (SELECT coalesce(max(cursor), 0) FROM event_sink)"
    op.execute(f"INSERT INTO sqlite_sequence (name, seq) SELECT 'event_anew', max({used})")
    op.drop_table("event")
    op.rename_table("event_anew", "event")
    op.create_index("ix_event_stack", "event", ["stack_id", "seq"])


TEXTS = ("name", "key", "handle", "type", "action", "status", "reason")


def downgrade() -> None:
    op.drop_table("retained")
