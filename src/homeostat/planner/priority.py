"""Priority of the next pass over a shard, when nothing new happens before it (CV17). Pure."""

from homeostat.model.intent import operation_of
from homeostat.model.plan import Priority
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World


def urgency(world: World) -> Priority:
    """Return the priority of a shard's next pass.

    What a user waits for comes first, then healing and the leftovers of it. A rolling update that was accepted before
    comes after them, and mere differences of properties after that.
    """
    stack = world.stack
    if stack.status == Status.IN_PROGRESS:
        return Priority.ROLLOUT if stack.step_at is not None else Priority.USER
    return min((_urgency_of(row) for row in world.rows.values() if row.busy), default=Priority.GARBAGE)


def _urgency_of(row: Resource) -> Priority:
    """Return the priority of a row in progress while its stack is at rest."""
    drifted = row.action == Action.UPDATE and not operation_of(row.intent)
    return Priority.DRIFT if drifted else Priority.HEAL
