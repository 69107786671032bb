"""The resource that a root stack was created for: clusters, nodes and independent stacks have their own root stacks."""

from homeostat.clouds.heat_api import token_of
from homeostat.resources.families.senlin import CLUSTER, NODE
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks

LEVELS_MAX = 20
"""Maximum number of stacks followed to their makers."""


def maker_of(tx: Transaction, root: StackRow) -> Owner | None:
    """Return the resource that a root stack was created for, if any still exists."""
    record_tokens = [record.token for record in records.linked(tx, [root.id], CLUSTER, NODE)]
    tokens = [*record_tokens, *filter(None, map(token_of, root.tags or ()))]
    owners = records.owners(tx, [records.key_of(token) for token in tokens])
    same_project = (owner for owner in owners.values() if owner.project == root.project)
    return next(same_project, None)


def depth_of(tx: Transaction, owner: Owner) -> int:
    """Return the nesting depth of a stack created for a resource, through all makers."""
    depth = 0
    current: Owner | None = owner
    for _ in range(LEVELS_MAX):
        stack = stacks.get(tx, current.stack_id) if current is not None else None
        root = stacks.get(tx, stack.root_id) if stack is not None else None
        if stack is None or root is None:
            break
        depth += stack.depth + 1
        current = maker_of(tx, root)
    return depth
