"""Resources of a nested stack while an enclosing stack is being deleted: nothing is created for them. Pure.

Otherwise a thing that vanishes before the deletion of the nested stack begins would be created again, only to be
deleted. Things may vanish early: Magnum, for example, deletes load balancers of its clusters.
"""

from collections.abc import Iterable

from homeostat.model.desired import Definition
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Enclosing, Resource

REASON = "nothing is made for what will be deleted"
AGAIN_S = 30.0
"""Seconds between examinations, since nothing wakes the resource when the enclosing deletion fails."""


def is_to_be_deleted(around: Iterable[Enclosing]) -> bool:
    """Return whether a nested stack is known to be deleted together with an enclosing stack.

    Args:
        around: The enclosing stacks from the inside out; incomplete if a row between them is unknown.
    """
    for stack in around:
        # A stack that is kept survives the deletion above it, with everything inside.
        if stack.deletion_policy != DeletionPolicy.DELETE:
            return False
        if stack.action == Action.DELETE:
            # An abandoned stack releases its things, and a failed deletion may be followed by an update.
            return stack.status == Status.IN_PROGRESS and stack.spares is None
    return False


def covers(definition: Definition, row: Resource | None) -> bool:
    """Return whether a resource of such a stack will be deleted; a resource that may be kept converges as before."""
    policies = {definition.deletion_policy, row.deletion_policy if row is not None else definition.deletion_policy}
    return policies == {DeletionPolicy.DELETE} and (row is None or row.external_id is None)


def wait(definition: Definition, row: Resource | None, now: float, reason: str = "") -> Waiting:
    """Return the reason to wait; `reason` is the problem of the resource, if any."""
    key, since = ("", None) if row is None else (row.key, row.updated_at)
    text = f"{reason}; {REASON}" if reason else REASON
    return Waiting(definition.name, Why.TO_BE_DELETED, (), text, since, key=key, ends_at=now + AGAIN_S)
