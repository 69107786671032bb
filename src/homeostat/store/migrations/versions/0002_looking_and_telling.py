"""Looks asked for, intervals and switches, progress, the register of workers

Every new column may be left out by a program of the version before, which may run beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, kind in (
        ("observe_s", sa.Double()),
        ("exceptions", sa.Text()),
        ("look_from", sa.Double()),
        ("step_at", sa.Double()),
    ):
        op.add_column("stack", sa.Column(name, kind, nullable=True))
    for name in ("planned", "done"):
        op.add_column("shard", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    for name in ("look_from", "looked_at"):
        op.add_column("shard", sa.Column(name, sa.Double(), nullable=True))
    op.add_column("shard", sa.Column("blind", sa.Text(), nullable=False, server_default=""))
    op.add_column("resource", sa.Column("asked_at", sa.Double(), nullable=True))
    op.add_column("resource_properties_observed", sa.Column("since", sa.Double(), nullable=False, server_default="0"))
    op.create_table(
        "worker",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("board", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_worker")),
    )


def downgrade() -> None:
    op.drop_table("worker")
    for table, names in (
        ("resource_properties_observed", ("since",)),
        ("resource", ("asked_at",)),
        ("shard", ("blind", "looked_at", "look_from", "done", "planned")),
        ("stack", ("step_at", "look_from", "exceptions", "observe_s")),
    ):
        for name in names:
            op.drop_column(table, name)
