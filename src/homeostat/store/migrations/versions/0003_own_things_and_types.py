"""Things that the service keeps itself, signals; what a resource's type is called, its external id and its hooks

Every new column may be left out by a program of the version before, which may run beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("called", "external_id", "hooks"):
        op.add_column("resource", sa.Column(name, sa.Text(), nullable=True))
    op.create_table(
        "record",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("link", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_record")),
    )
    op.create_index("uq_record_token", "record", ["kind", "token"], unique=True)
    op.create_index("ix_record_listing", "record", ["kind", "project", "created_at", "id"])
    op.create_index("ix_record_link", "record", ["link", "kind"])
    op.create_table(
        "signal",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["record_id"], ["record.id"], name=op.f("fk_signal_record_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_signal")),
    )
    op.create_index("ix_signal_record", "signal", ["record_id", "seq"])


def downgrade() -> None:
    op.drop_table("signal")
    op.drop_table("record")
    for name in ("hooks", "external_id", "called"):
        op.drop_column("resource", name)
