"""Deletion policies of leftovers, and things that are kept in any case. Pure."""

from homeostat.kinds.registry import BUILTIN_KINDS, LISTED_KINDS
from homeostat.model.intent import adoption_of
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource
from homeostat.planner.context import Context
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of


def is_kept(context: Context, row: Resource) -> bool:
    """Return whether the thing is kept, since its stack is abandoned or was to adopt the thing.

    A thing created by the service carries a token. Nested stacks are deleted in any case, and release their own
    things. So are records of the service that users could not find or delete without the stack. A thing yet to be
    adopted does not belong to the stack, and is always kept.
    """
    stack, kind = context.world.stack, kind_of(row.type)
    is_made_by_service = kind == NestedStack.kind or kind in BUILTIN_KINDS.keys() - LISTED_KINDS
    if adoption_of(row.intent) is not None and (row.action == Action.INIT or not is_made_by_service):
        return True
    if stack.spares is None or is_made_by_service:
        return False
    adopted = row.action == Action.ADOPT if kind in LISTED_KINDS else row.token == ""
    return stack.abandoned or adopted


def policy_of(context: Context, row: Resource) -> str:
    """Return the deletion policy that holds for a row: usually its last policy.

    In the middle of its deletion the policy of a newer revision counts instead (CV14), and Retain in the newest
    revision counts in any case. An external thing (`external_id`) is always kept.
    """
    if row.external_id is not None:
        return DeletionPolicy.RETAIN
    if context.world.stack.abandoned and kind_of(row.type) == NestedStack.kind:
        # An abandoned nested stack has to release its own things, by a deletion.
        return DeletionPolicy.DELETE
    if row.name in context.world.policies:
        return context.world.policies[row.name]
    definition = context.world.definitions.get(row.name)
    if definition is None or not row.deleting or row.deletion_policy == DeletionPolicy.RETAIN:
        return row.deletion_policy
    newer = row.revision < context.world.stack.revision or definition.deletion_policy == DeletionPolicy.RETAIN
    return definition.deletion_policy if newer else row.deletion_policy
