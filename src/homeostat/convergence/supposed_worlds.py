"""Worlds of shards under other facts than the stored ones, for previews; nothing is owned or stored."""

from collections.abc import Mapping

from sqlalchemy import Connection

from homeostat.convergence.stages.loading import world_of
from homeostat.model.desired import Definition
from homeostat.model.world import StackFacts, World
from homeostat.store.shards import shards


def supposed_world(
    tx: Connection, facts: StackFacts, definitions: Mapping[str, Definition], number: int, now: float
) -> World:
    """Return the world of a shard as a worker would load it if its stack were so.

    Args:
        tx: A consistent read.
        facts: Facts of the stack, as they would be.
        definitions: Definitions of the shard, as they would be.
        number: Number of the shard, which may not exist yet.
        now: The time.
    """
    shard = shards.get(tx, facts.id, number)
    return World(facts, number, definitions) if shard is None else world_of(tx, facts, definitions, shard, now).world
