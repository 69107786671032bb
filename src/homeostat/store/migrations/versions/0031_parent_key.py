"""The stack nested in a resource is found by an index

A program of the version before uses it, too.
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_stack_parent_key", "stack", ["parent_key"])


def downgrade() -> None:
    op.drop_index("ix_stack_parent_key", "stack")
