"""Priority of the next pass over a shard, when nothing new happens before it (CV17). Pure."""

from homeostat.model.intent import operation_of
from homeostat.model.plan import Priority
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World


def urgency(world: World) -> Priority:
    """Return the priority of a shard's next pass.

    Actions of users come first, then healing and its leftovers, then rolling updates in progress, then mere
    differences of properties.
    """
    stack = world.stack
    if stack.status == Status.IN_PROGRESS:
        return Priority.ROLLOUT if stack.step_at is not None else Priority.USER
    return min((_urgency_of(row) for row in world.rows.values() if row.busy), default=Priority.GARBAGE)


def _urgency_of(row: Resource) -> Priority:
    """Return the priority of a row in progress while its stack is at rest."""
    drifted = row.action == Action.UPDATE and not operation_of(row.intent)
    return Priority.DRIFT if drifted else Priority.HEAL
