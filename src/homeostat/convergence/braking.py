"""The facts that hold healing back: asked of the database only where a shard has something that may be healed."""

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import Connection

from homeostat.model.observed import Presence
from homeostat.model.status import Status
from homeostat.model.world import Brake, Resource, Seen, StackFacts, World
from homeostat.planner.depart import is_lost
from homeostat.planner.outcome import is_looked_for
from homeostat.resources import groups, own
from homeostat.resources.families.scaling import ScalingGroup
from homeostat.resources.nested import POLICY, NestedStack
from homeostat.resources.registry import is_outside, kind_of, of_kind, type_of, types
from homeostat.store import brakes, stacks


def brake_of(tx: Connection, world: World, share: float) -> Brake:
    """share — of the service."""
    stack = world.stack
    share = float((stack.healing or {}).get("share") or share)
    creating = stack.complete_revision is None and stack.status == Status.IN_PROGRESS
    if creating or not any(_is_troubled(world, row) for row in world.rows.values()):
        return Brake(share)
    members, elsewhere = None, 0
    if stack.shards > 1:
        group = stacks.group_of(tx, stack.id, stack.revision)
        members = groups.size_of(group) if group is not None else None
        elsewhere = brakes.elsewhere(tx, stack.id, world.shard)
    return Brake(share, members, elsewhere, _in_service_min(tx, stack), _blind(tx, world))


def _is_troubled(world: World, row: Resource) -> bool:
    seen = world.seen.get(row.key)
    return row.failed or row.marks is not None or (seen is not None and (seen.number != row.judged or _is_absent(seen)))


def _is_absent(seen: Seen) -> bool:
    return seen.observation.presence is Presence.ABSENT


def _in_service_min(tx: Connection, stack: StackFacts) -> int:
    """How many members the group whose stack this is keeps in service, as its update policy says."""
    row = brakes.owner_of(tx, stack.parent_key) if stack.parent_key is not None else None
    kind = type_of(row.type) if row is not None else None
    if row is None or not isinstance(kind, NestedStack) or not isinstance(row.properties, Mapping):
        return 0
    values = kind.complete(row.properties)
    policy = kind.rollout(values) if isinstance(kind, ScalingGroup) else values.get(POLICY) or {}
    return int((policy.get("rolling_update") or {}).get("min_in_service") or 0)


def _blind(tx: Connection, world: World) -> frozenset[str]:
    """Kinds of which nothing is seen any more in the project."""
    missed: dict[str, float] = defaultdict(float)
    for row in world.rows.values():
        seen = world.seen.get(row.key)
        if seen is not None and _is_absent(seen) and not row.leaving and not is_lost(row) and is_looked_for(row):
            kind = kind_of(row.type)
            missed[kind] = max(missed[kind], seen.observation.seen_at)
    types = of_kind(missed)
    return frozenset(
        kind for kind, since in missed.items() if brakes.is_blind(tx, world.stack.project, types[kind], since)
    )


def doubts(tx: Connection) -> list[brakes.Doubted]:
    """What waits in all projects since nothing of its kind is seen any more."""
    kinds = {each.kind for name, each in types().items() if is_outside(name)} - own.KINDS
    return brakes.doubted(tx, of_kind(kinds))
