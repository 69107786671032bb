"""The drain time of servers that leave a group, read only for shards that may have such servers (ADR 0069)."""

from sqlalchemy import Connection

from homeostat.convergence.healing_brake import batches_of
from homeostat.model.status import Action
from homeostat.model.world import World
from homeostat.planner.policies.draining import SERVER
from homeostat.resources.group_limits import DRAIN_TIME
from homeostat.resources.registry import kind_of
from homeostat.store.shards import brakes


def drain_s(tx: Connection, world: World) -> float:
    """Return the `drain_time` of the innermost group around the servers of a shard.

    It is 0 if the group itself is deleted: then no server is left to take over.
    """
    key = world.stack.parent_key
    # Every shard with servers counts: a server may begin to leave in the middle of the pass, once its successor exists.
    if key is None or not any(kind_of(row.type) == SERVER for row in world.rows.values()):
        return 0.0
    while key is not None and (owner := brakes.owner_of(tx, key)) is not None:
        batches = batches_of(owner)
        if batches is not None:
            deleted = Action.DELETE in (owner.action, owner.stack_action)
            return 0.0 if deleted else float(batches.get(DRAIN_TIME) or 0)
        key = owner.parent_key
    return 0.0
