"""What becomes of a thing that should not exist: its deletion policy, and things that stay whatever it says. Pure."""

from homeostat.kinds.registry import BUILTIN_KINDS, LISTED_KINDS
from homeostat.model.intent import adoption_of
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource
from homeostat.planner.context import Context
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of


def is_kept(context: Context, row: Resource) -> bool:
    """Return whether the thing stays, since its stack is abandoned, or was to adopt it.

    What was made here carries a token. A nested stack is deleted in any case, and releases its own things. So are
    things of the service that users could not find or delete without the stack. A thing that is still to be taken
    over does not belong to the stack yet, and stays whatever the stack does.
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
    """Return the deletion policy that holds for a row.

    That is its last one. In the middle of its deletion the policy of a newer revision counts instead
    (CV14), and Retain in the newest revision counts in any case. A thing that is not managed here (`external_id`) stays
    whatever a revision says that could not make it the stack's own.
    """
    if row.external_id is not None:
        return DeletionPolicy.RETAIN
    if context.world.stack.abandoned and kind_of(row.type) == NestedStack.kind:
        # An abandoned nested stack has to release its own things, which is a deletion to it.
        return DeletionPolicy.DELETE
    if row.name in context.world.policies:
        return context.world.policies[row.name]
    definition = context.world.definitions.get(row.name)
    if definition is None or not row.deleting or row.deletion_policy == DeletionPolicy.RETAIN:
        return row.deletion_policy
    newer = row.revision < context.world.stack.revision or definition.deletion_policy == DeletionPolicy.RETAIN
    return definition.deletion_policy if newer else row.deletion_policy
