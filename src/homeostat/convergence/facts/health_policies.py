"""Health policies of shards as values, and the health facts of a shard for the planner."""

from collections.abc import Sequence

from homeostat.clustering.decisions.policies import stored_health_policy
from homeostat.model.health_policy import HealthPolicy
from homeostat.model.member_names import is_companion
from homeostat.model.node_health import NodeNames, ShardHealth
from homeostat.model.status import Action, Status
from homeostat.model.world import World
from homeostat.resources import groups
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ShardRow
from homeostat.store.shards import health
from homeostat.store.shards.health import WatchedMember
from homeostat.store.stacks import revisions

REMOVING = "members are being removed, and until that is done health checks of the group are off"


def policies(checks: Sequence[health.Check]) -> dict[str, HealthPolicy]:
    """Return the policies by the name of their resource, see `ShardHealth`."""
    return {check.name: stored_health_policy(check.spec) for check in checks}


def shard_health(tx: Transaction, world: World, shard: ShardRow, now: float) -> ShardHealth | None:
    """Return the health facts of a shard's things; None without health policies."""
    if shard.health_at is None:
        return None
    stack = world.stack
    checks = health.checks_of(tx, [stack.id]).get(stack.id, [])
    in_force = policies(checks)
    if not in_force:
        return None
    unhealthy, recovered = health.counts(tx, stack.id, now)
    nodes = health.of_shard(tx, stack.id, world.shard)
    size = sum(not is_companion(name) for name in world.definitions)
    if stack.shards > 1:
        group = revisions.group_of(tx, stack.id, stack.revision)
        size = groups.size_of(group) if group is not None else size
    looked_at = shard.health_looked_at or 0.0
    names = {}
    if any(policy.has_calls for policy in in_force.values()):
        names = {row.key: node_names(row, checks) for row in health.members_of(tx, [(stack.id, world.shard)])}
    begun = health.begun(tx, stack.id, now) if unhealthy else ()
    off = _are_leaving(world) or bool(health.paused(tx, [stack.id]))
    paused = REMOVING if off else ""
    return ShardHealth(in_force, nodes, looked_at, size, unhealthy, recovered, paused=paused, names=names, begun=begun)


def _are_leaving(world: World) -> bool:
    """Return whether an action of the stack removes members of this shard."""
    if world.stack.status != Status.IN_PROGRESS or world.stack.action == Action.DELETE:
        return False
    return any(
        row.replaced_by is None and not row.failed and row.name not in world.definitions and not is_companion(row.name)
        for row in world.rows.values()
    )


def node_names(row: WatchedMember, checks: Sequence[health.Check]) -> NodeNames:
    """Return the names that placeholders are expanded to.

    Args:
        row: A member, see `store.shards.health.members_of`.
        checks: The policies for its stack.
    """
    check = next((candidate for candidate in checks if candidate.name in (row.name, "")), None)
    seen = row.object or {}
    cluster = check.cluster if check is not None else ""
    name = row.node_name or str(seen.get("name") or row.name)
    address, inside = str(seen.get("address") or ""), row.cluster_id or row.stack_id
    return NodeNames(name, row.node_id or row.key, row.handle, address, cluster, inside)
