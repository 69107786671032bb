"""Which resource a root stack was made for: a cluster, node or independent stack of a template has its own."""

from sqlalchemy import Connection

from homeostat.clouds.heat_api import token_of
from homeostat.resources.families.senlin import CLUSTER, NODE
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks

LEVELS_MAX = 20
"""Most stacks that are followed from one to the one that it was made for."""


def maker_of(tx: Connection, root: StackRow) -> Owner | None:
    """Return the resource that a root stack was made for; None where no resource has made it, or it is gone."""
    made = [each.token for each in records.linked(tx, [root.id], CLUSTER, NODE)]
    tokens = [*made, *filter(None, map(token_of, root.tags or ()))]
    owners = records.owners(tx, [records.key_of(token) for token in tokens])
    same_project = (each for each in owners.values() if each.project == root.project)
    return next(same_project, None)


def depth_of(tx: Connection, owner: Owner) -> int:
    """Return how deep a stack that is made for a resource is nested, also in stacks that were made for resources."""
    depth = 0
    found: Owner | None = owner
    for _ in range(LEVELS_MAX):
        stack = stacks.get(tx, found.stack_id) if found is not None else None
        root = stacks.get(tx, stack.root_id) if stack is not None else None
        if stack is None or root is None:
            break
        depth += stack.depth + 1
        found = maker_of(tx, root)
    return depth
