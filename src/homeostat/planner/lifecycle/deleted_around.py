"""What is nested in a stack that is being deleted, before its own deletion begins: nothing is made for it. Pure.

Otherwise what vanishes meanwhile would be made again, only to be deleted. Others may delete things of a stack before it
does, as Magnum deletes load balancers, and the stack itself goes by what requires what.
"""

from collections.abc import Iterable

from homeostat.model.desired import Definition
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Enclosing, Resource

REASON = "nothing is made for what will be deleted"
AGAIN_S = 30.0
"""Seconds until it is examined again: nothing wakes it where the deletion around it has ended otherwise."""


def is_to_be_deleted(around: Iterable[Enclosing]) -> bool:
    """Return whether a nested stack will be deleted with a stack around it, as far as is known.

    Args:
        around: The stacks around it from the inside out; not all of them where a row between them is not known.
    """
    for stack in around:
        if stack.deletion_policy != DeletionPolicy.DELETE:
            return False
        if stack.action == Action.DELETE:
            return stack.status == Status.IN_PROGRESS and stack.spares is None
    return False


def takes(definition: Definition, row: Resource | None) -> bool:
    """Return whether a resource of such a stack goes with it; what may be kept converges as before."""
    policies = {definition.deletion_policy, row.deletion_policy if row is not None else definition.deletion_policy}
    return policies == {DeletionPolicy.DELETE} and (row is None or row.external_id is None)


def waits(definition: Definition, row: Resource | None, now: float, reason: str = "") -> Waiting:
    """Return the reason why nothing is made for it; `reason` — what is wrong with it."""
    key, since = ("", None) if row is None else (row.key, row.updated_at)
    text = f"{reason}; {REASON}" if reason else REASON
    return Waiting(definition.name, Why.TO_BE_DELETED, (), text, since, key=key, ends_at=now + AGAIN_S)
