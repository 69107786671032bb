"""Health policies, what was found of members, and recoveries

A program of the version before, which may run beside this one, checks nothing, and leaves what is being recovered to
this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

COLUMNS = ("health_at", "health_from", "health_looked_at")


def upgrade() -> None:
    op.create_table(
        "health_check",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("members", sa.Boolean(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_health_check_stack_id_stack"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_health_check")),
    )
    op.create_index("uq_health_check", "health_check", ["stack_id", "name"], unique=True)
    op.create_table(
        "node_health",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("finding", sa.Text(), nullable=False),
        sa.Column("again_at", sa.Double(), nullable=True),
        sa.Column("health", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key"], ["resource.key"], name=op.f("fk_node_health_key_resource"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_node_health")),
    )
    op.create_index("ix_node_health", "node_health", ["stack_id", "finding"])
    op.create_table(
        "recovery",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_recovery_stack_id_stack"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recovery")),
    )
    op.create_index("ix_recovery", "recovery", ["stack_id", "at"])
    for name in COLUMNS:
        op.add_column("shard", sa.Column(name, sa.Double(), nullable=True))
    op.create_index("ix_shard_health", "shard", ["health_at"])


def downgrade() -> None:
    op.drop_index("ix_shard_health", "shard")
    for name in reversed(COLUMNS):
        op.drop_column("shard", name)
    for table in ("recovery", "node_health", "health_check"):
        op.drop_table(table)
