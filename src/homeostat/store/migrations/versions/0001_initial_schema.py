"""Initial schema"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "file",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_file")),
    )
    op.create_table(
        "forsaken",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("look_at", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_forsaken")),
    )
    with op.batch_alter_table("forsaken", schema=None) as batch_op:
        batch_op.create_index("ix_forsaken_look_at", ["look_at"], unique=False)

    op.create_table(
        "stack",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("parent_name", sa.Text(), nullable=True),
        sa.Column("parent_key", sa.Text(), nullable=True),
        sa.Column("parent_shard", sa.Integer(), nullable=True),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("complete_revision", sa.Integer(), nullable=True),
        sa.Column("rollback_to", sa.Integer(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("disable_rollback", sa.Boolean(), nullable=False),
        sa.Column("timeout_mins", sa.Integer(), nullable=True),
        sa.Column("deadline", sa.Double(), nullable=True),
        sa.Column("converge", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=True),
        sa.Column("shards", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stack")),
    )
    with op.batch_alter_table("stack", schema=None) as batch_op:
        batch_op.create_index("ix_stack_listing", ["project", "created_at", "id"], unique=False)
        batch_op.create_index("ix_stack_parent", ["parent_id"], unique=False)
        batch_op.create_index("ix_stack_root", ["root_id"], unique=False)
        batch_op.create_index(
            "uq_stack_live_name",
            ["project", "name"],
            unique=True,
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )

    op.create_table(
        "event",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_event_stack_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_event")),
    )
    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.create_index("ix_event_stack", ["stack_id", "seq"], unique=False)

    op.create_table(
        "revision",
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_revision_stack_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("stack_id", "number", name=op.f("pk_revision")),
    )
    op.create_table(
        "shard",
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("wake_at", sa.Double(), nullable=True),
        sa.Column("wakes", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("observe_at", sa.Double(), nullable=True),
        sa.Column("settled_revision", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_shard_stack_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("stack_id", "number", name=op.f("pk_shard")),
    )
    with op.batch_alter_table("shard", schema=None) as batch_op:
        batch_op.create_index("ix_shard_observe", ["observe_at"], unique=False)
        batch_op.create_index(
            "ix_shard_wake",
            ["wake_at"],
            unique=False,
            sqlite_where=sa.text("wake_at IS NOT NULL"),
            postgresql_where=sa.text("wake_at IS NOT NULL"),
        )

    op.create_table(
        "resource",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("requires", sa.Text(), nullable=False),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=True),
        sa.Column("deletion_policy", sa.Text(), nullable=False),
        sa.Column("replaces", sa.Text(), nullable=True),
        sa.Column("replaced_by", sa.Text(), nullable=True),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("acted_at", sa.Double(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=True),
        sa.Column("born", sa.Integer(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("resolved", sa.Integer(), nullable=False),
        sa.Column("judged", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_id", "shard"], ["shard.stack_id", "shard.number"], name="fk_resource_shard", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_resource")),
    )
    with op.batch_alter_table("resource", schema=None) as batch_op:
        batch_op.create_index("ix_resource_handle", ["handle"], unique=False)
        batch_op.create_index("ix_resource_shard", ["stack_id", "shard"], unique=False)

    op.create_table(
        "resource_observed",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("resource_name", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("presence", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["key"], ["resource.key"], name=op.f("fk_resource_observed_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_resource_observed")),
    )
    op.create_table(
        "resource_properties_observed",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("prop_name", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.Text(), nullable=False),
        sa.Column("resource_name", sa.Text(), nullable=False),
        sa.Column("prop_value", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["id"], ["resource.key"], name=op.f("fk_resource_properties_observed_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", "prop_name", name=op.f("pk_resource_properties_observed")),
    )
    with op.batch_alter_table("resource_properties_observed", schema=None) as batch_op:
        batch_op.create_index("ix_resource_properties_observed_stack", ["stack_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("resource_properties_observed", schema=None) as batch_op:
        batch_op.drop_index("ix_resource_properties_observed_stack")

    op.drop_table("resource_properties_observed")
    op.drop_table("resource_observed")
    with op.batch_alter_table("resource", schema=None) as batch_op:
        batch_op.drop_index("ix_resource_shard")
        batch_op.drop_index("ix_resource_handle")

    op.drop_table("resource")
    with op.batch_alter_table("shard", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_shard_wake",
            sqlite_where=sa.text("wake_at IS NOT NULL"),
            postgresql_where=sa.text("wake_at IS NOT NULL"),
        )
        batch_op.drop_index("ix_shard_observe")

    op.drop_table("shard")
    op.drop_table("revision")
    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.drop_index("ix_event_stack")

    op.drop_table("event")
    with op.batch_alter_table("stack", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_stack_live_name",
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )
        batch_op.drop_index("ix_stack_root")
        batch_op.drop_index("ix_stack_parent")
        batch_op.drop_index("ix_stack_listing")

    op.drop_table("stack")
    with op.batch_alter_table("forsaken", schema=None) as batch_op:
        batch_op.drop_index("ix_forsaken_look_at")

    op.drop_table("forsaken")
    op.drop_table("file")
