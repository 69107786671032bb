"""Loading the world of one shard, for a pass of its owner or, without ownership, for an explanation."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.convergence.facts.healing_brake import batches_of, brake_of
from homeostat.convergence.facts.health_policies import shard_health
from homeostat.convergence.nested_stacks import observation
from homeostat.convergence.nested_stacks.attributes import show_members
from homeostat.desired.deletion_policies import inherited
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Superseded
from homeostat.model.stack_actions import CREATING
from homeostat.model.status import Action, Status
from homeostat.model.world import HEAL_SHARE, Resource, Seen, StackFacts, World
from homeostat.planner.actions.check import unsettled
from homeostat.planner.lifecycle import deleted_around
from homeostat.planner.policies.draining import SERVER
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.group_limits import DRAIN_TIME
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of, type_of
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ShardRow
from homeostat.store.shards import brakes, shard_state, shards
from homeostat.store.stacks import deletion, nested_status, revisions, rollouts, snapshots, stacks
from homeostat.templates import requires

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world and the row of its shard.

    Attributes:
        world: All facts for decisions about the shard.
        shard: Row of table `shard`.
        looks: Observations of nested stacks that differ from the stored ones; the shard's owner stores them.
    """

    world: World
    shard: ShardRow
    looks: Sequence[tuple[Resource, Seen]]


def load_world(
    tx: Transaction,
    definitions: DesiredGraphs,
    stack_id: str,
    number: int,
    now: float,
    share: float = HEAL_SHARE,
    timeout_s: float = math.inf,
) -> Loaded:
    """Read the world of one shard; store nothing.

    Args:
        tx: A consistent read: everything is of one moment.
        definitions: Cache of compiled graphs.
        stack_id: Stack of the shard.
        now: Time of the observations of nested stacks.
        share: Share of a stack's things that is healed at a time, unless the stack has a setting of its own.
        timeout_s: Time limit of an action, unless the stack has a setting of its own.

    Raises:
        Superseded: The shard does not exist (any more): its stack was purged.
    """
    row = stacks.get(tx, stack_id)
    shard = shards.get(tx, stack_id, number)
    if row is None or shard is None:
        raise Superseded(f"shard {number} of stack {stack_id} is gone")
    facts = stacks.facts(row)
    graph = _graph_of(tx, definitions, facts, number, facts.revision)
    loaded = world_of(tx, facts, graph, shard, now, share)
    loaded.world.to_be_deleted = _is_to_be_deleted(tx, facts)
    if facts.failed_early:
        loaded.world.earlier = _earlier(tx, definitions, loaded.world)
    # An action in progress has a deadline of its own; only healing of a stack at rest needs this limit (ADR 0058).
    if facts.status != Status.IN_PROGRESS:
        loaded.world.patience_s = stacks.timeout_of(stacks.timeout_mins_of(tx, row), timeout_s)
    return loaded


def _is_to_be_deleted(tx: Transaction, stack: StackFacts) -> bool:
    """Return whether a stack will be deleted with an enclosing stack whose deletion has not reached it yet."""
    if stack.parent_key is None or stack.action == Action.DELETE:
        return False
    # Newer policies may retain the stack: the enclosing stacks read them when their own deletion begins.
    to_be_deleted = deleted_around.is_to_be_deleted(deletion.enclosing_stacks(tx, stack.parent_key))
    return to_be_deleted and deletion.newest_policies(tx, stack.root_id, stack.id) is None


def world_of(
    tx: Transaction,
    facts: StackFacts,
    graph: Mapping[str, Definition],
    shard: ShardRow,
    now: float,
    share: float = HEAL_SHARE,
) -> Loaded:
    """Read the world of one shard under these facts and definitions; store nothing.

    Args:
        tx: A consistent read.
        facts: Facts of the stack, actual or hypothetical.
        graph: Definitions of the shard: those of its newest revision, or hypothetical ones.
        now: Time of the observations of nested stacks.
        share: Share of a stack's things that is healed at a time, unless the stack has a setting of its own.
    """
    number = int(shard.number)
    rows, seen = shard_state.load_rows(tx, facts.id, number)
    world = World(facts, number, graph, rows, seen, shard.settled_revision, shard.looked_at or 0.0, shard.blind)
    world.policies = inherited(tx, facts)
    # The stamps are the shard's logical clock: new ones are greater than any that a row carries.
    world.stamp = max((max(r.born, r.changed, r.resolved) for r in rows.values()), default=0)
    if facts.restoring and facts.snapshot is not None:
        world.restored = snapshots.complete_parts(tx, facts.snapshot.id, facts.snapshot.place)
    # `refresh` first: it replaces observations, which `show_members` completes. Only what other resources read is
    # completed, since a group may have a million members.
    looks = observation.refresh(tx, world, now)
    show_members(tx, world, _read_by_others(world))
    world.brake = brake_of(tx, world, share)
    world.drain_s = _drain_s(tx, world)
    world.health = shard_health(tx, world, shard, now)
    # A shard has many rows, but of few types.
    if any(isinstance(type_of(type_name), Membership) for type_name in {row.type for row in rows.values()}):
        world.rollouts = rollouts.of_stack(tx, facts.id)
    world.neglected = _neglected(tx, world)
    return Loaded(world, shard, looks)


def _drain_s(tx: Transaction, world: World) -> float:
    """Return the `drain_time` of the innermost group around the servers of a shard (ADR 0069).

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


def _neglected(tx: Transaction, world: World) -> frozenset[str]:
    """Return the keys of nested stacks' rows that contain a problem which the newest revision repairs.

    Inside such a stack, a resource is left alone, marked unhealthy, or being replaced because of a mark.
    """
    stack = world.stack
    nested = {row.handle: row.key for row in world.rows.values() if row.handle and kind_of(row.type) == STACK}
    if not nested or not unsettled(world) or stack.frozen or stack.action not in CREATING:
        return frozenset()
    ids = nested_status.neglected(tx, stack.root_id or stack.id, stack.id)
    # Once the newest revision has reached the nested stacks, they repair marked resources themselves.
    if any(world.rows[key].revision != stack.revision for key in nested.values()):
        ids |= nested_status.marked(tx, stack.root_id or stack.id, stack.id)
    return frozenset(nested[stack_id] for stack_id in ids if stack_id in nested)


def _graph_of(
    tx: Transaction, definitions: DesiredGraphs, facts: StackFacts, number: int, revision: int
) -> Mapping[str, Definition]:
    identity = Identity(facts.id, facts.name, facts.project)
    return definitions.get(identity, revision, number, lambda: revisions.stored(tx, facts.id, revision))


def _earlier(tx: Transaction, definitions: DesiredGraphs, world: World) -> dict[int, Mapping[str, Definition]]:
    """Return the earlier graphs that the rows still follow, by revision; purged revisions are left out."""
    complete = world.stack.complete_revision or 0
    reached = {max(row.revision, complete) for row in world.rows.values()} | {complete}
    graphs = {}
    for revision in sorted(reached - {0, world.stack.revision}):
        try:
            graphs[revision] = _graph_of(tx, definitions, world.stack, world.shard, revision)
        except LookupError:
            LOG.info("revision %d of stack %s is not kept any more", revision, world.stack.id)
    return graphs


def _read_by_others(world: World) -> set[str]:
    """Return the names of resources whose reference or attributes are read by siblings in the shard."""
    return {
        name
        for definition in world.definitions.values()
        if not definition.static
        for name in requires(definition.properties)
    }
