"""Worlds of shards under hypothetical facts, for previews; nothing is owned or stored."""

from collections.abc import Mapping

from sqlalchemy import Connection

from homeostat.convergence.stages.loading import world_of
from homeostat.model.desired import Definition
from homeostat.model.world import StackFacts, World
from homeostat.store.shards import shards


def hypothetical_world(
    tx: Connection, facts: StackFacts, definitions: Mapping[str, Definition], number: int, now: float
) -> World:
    """Return the world of a shard as a worker would load it under these facts.

    Args:
        tx: A consistent read.
        facts: Hypothetical facts of the stack.
        definitions: Hypothetical definitions of the shard.
        number: Number of the shard, which may not exist yet.
    """
    shard = shards.get(tx, facts.id, number)
    return World(facts, number, definitions) if shard is None else world_of(tx, facts, definitions, shard, now).world
