"""Loading the world of one shard, for a pass of its owner and for an explanation, which owns nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.convergence.draining import drain_s
from homeostat.convergence.healing_brake import brake_of
from homeostat.convergence.health_facts import shard_health
from homeostat.convergence.nested_stacks import observation
from homeostat.convergence.nested_stacks.attributes import show_members
from homeostat.desired.deletion_policies import inherited
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.desired import Identity
from homeostat.model.errors import Superseded
from homeostat.model.status import Status
from homeostat.model.world import HEAL_SHARE, Resource, Seen, World
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.registry import type_of
from homeostat.store.shards import shard_state, shards
from homeostat.store.stacks import revisions, rollouts, snapshots, stacks
from homeostat.templates import requires


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world and the row of its shard.

    Attributes:
        world: All that deciding about the shard needs.
        shard: Row of table `shard`.
        looks: Observations of nested stacks that differ from the stored ones; the shard's owner stores them.
    """

    world: World
    shard: Row[Any]
    looks: Sequence[tuple[Resource, Seen]]


def load_world(
    tx: Connection,
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
        number: Number of the shard.
        now: Time of the observations of nested stacks.
        share: Share of a stack's things that is healed at a time, where the stack has no setting of its own.
        timeout_s: How long an action may take, where the stack has no setting of its own.

    Raises:
        Superseded: The shard does not exist (any more): its stack was purged.
    """
    row = stacks.get(tx, stack_id)
    shard = shards.get(tx, stack_id, number)
    if row is None or shard is None:
        raise Superseded(f"shard {number} of stack {stack_id} is gone")
    facts = stacks.facts(row)
    graph = definitions.get(
        Identity(facts.id, facts.name, facts.project),
        facts.revision,
        number,
        lambda: revisions.desired_of(tx, facts.id, facts.revision),
    )
    rows, seen = shard_state.load_rows(tx, facts.id, number)
    world = World(facts, number, graph, rows, seen, shard.settled_revision, shard.looked_at or 0.0, shard.blind)
    world.policies = inherited(tx, facts)
    # The stamps are the shard's logical clock: new ones are greater than any that a row carries.
    world.stamp = max((max(r.born, r.changed, r.resolved) for r in rows.values()), default=0)
    if facts.restoring and facts.snapshot is not None:
        world.restored = snapshots.complete_parts(tx, facts.snapshot["id"], facts.snapshot["place"])
    # `refresh` first: it replaces observations, which `show_members` completes. Only what other resources read is
    # completed, since a group may have a million members.
    looks = observation.refresh(tx, world, now)
    show_members(tx, world, _read_by_others(world))
    world.brake = brake_of(tx, world, share)
    world.drain_s = drain_s(tx, world)
    world.health = shard_health(tx, world, shard, now)
    # Of few types there are many rows.
    if any(isinstance(type_of(each), Membership) for each in {row.type for row in rows.values()}):
        world.rollouts = rollouts.of_stack(tx, facts.id)
    # An action in progress has a deadline of its own; only healing of a stack at rest needs this limit (ADR 0058).
    if facts.status != Status.IN_PROGRESS:
        world.patience_s = stacks.timeout_of(stacks.timeout_mins_of(tx, row), timeout_s)
    return Loaded(world, shard, looks)


def _read_by_others(world: World) -> set[str]:
    """Return the names of resources whose reference or attributes others of the shard read."""
    return {name for each in world.definitions.values() if not each.static for name in requires(each.properties)}
