"""When a worker has to do something for an action of a cluster

A program of the version before, which may run beside this one, has no actions that wait.
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("action", sa.Column("due_at", sa.Double(), nullable=True))
    op.create_index("ix_action_stack", "action", ["stack_id"])
    due = sa.text("due_at IS NOT NULL")
    op.create_index("ix_action_due_at", "action", ["due_at"], sqlite_where=due, postgresql_where=due)


def downgrade() -> None:
    op.drop_index("ix_action_due_at", "action")
    op.drop_index("ix_action_stack", "action")
    op.drop_column("action", "due_at")
