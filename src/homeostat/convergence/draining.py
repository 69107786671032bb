"""How long servers that leave a group are drained, read only where a shard may have any (ADR 0069)."""

from sqlalchemy import Connection

from homeostat.convergence.healing_brake import batches_of
from homeostat.model.status import Action
from homeostat.model.world import World
from homeostat.planner.policies.draining import SERVER
from homeostat.resources.group_limits import DRAIN_TIME
from homeostat.resources.registry import kind_of
from homeostat.store.shards import brakes


def drain_s(tx: Connection, world: World) -> float:
    """Return the `drain_time` of the innermost group that the servers of a shard are in.

    It is 0 where the group itself is deleted: then no one is left to take over.
    """
    key = world.stack.parent_key
    # Which of them leave may follow in the middle of the pass, when their successors are there.
    if key is None or not any(kind_of(row.type) == SERVER for row in world.rows.values()):
        return 0.0
    while key is not None and (owner := brakes.owner_of(tx, key)) is not None:
        batches = batches_of(owner)
        if batches is not None:
            deleted = Action.DELETE in (owner.action, owner.stack_action)
            return 0.0 if deleted else float(batches.get(DRAIN_TIME) or 0)
        key = owner.parent_key
    return 0.0
