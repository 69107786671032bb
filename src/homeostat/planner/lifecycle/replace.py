"""Replacement of a thing: create the new one first, or delete the old one first. Pure."""

from homeostat.kinds.exclusive import Shared, Way
from homeostat.model.desired import Definition
from homeostat.model.plan import Step
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import handover, intents


def create_first(context: Context, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
    """Replace a thing: create the replacement, let the dependants move, then delete the old thing.

    If both need an exclusive claim, the old thing first releases the claim or is deleted.

    Args:
        why: The change that is impossible in place.
    """
    # Nothing was created for this row, so it can be reused.
    if row.handle == "" and row.acted_at is None and row.token == "":
        return context.acts.begin(definition, row, now)
    restricted = context.restricted(definition, "replace", row, now)
    if restricted is not None:
        return restricted
    handover.note_claims(context, row)
    needs = handover.needs(context, definition, row)
    if needs.way is Way.LETS_GO:
        return handover.let_go(context, definition, row, needs.held, now)
    if needs.way is Way.GOES:
        refusal = handover.refusal(context, row, needs)
        if refusal:
            return context.acts.fail(row, refusal, now, Action.UPDATE)
        return delete_first(context, definition, row, now, handover.reason(needs))
    return context.acts.create(definition, now, replaces=row)


def delete_first(context: Context, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
    """Replace a thing by deleting it first, since it holds (or if broken, may hold) claims of its replacement.

    The new row waits, and becomes the successor of all predecessors of the deleted row.

    Args:
        why: Reason of the deletion; "" for the row's reason.
    """
    handover.note_claims(context, row)
    new = intents.new_row(context, definition, now, replaces=row)
    older = [other for other in context.world.rows.values() if other.replaced_by == row.key and not other.deleting]
    for predecessor in older:
        predecessor.replaced_by = new.key
    deleting = outcome.begin(row, Action.DELETE, why or row.reason)
    row.acted_at = row.due_at = None
    row.revision = context.world.stack.revision
    # An older intent, such as a snapshot of the whole stack, must not be taken for the intent of this deletion.
    row.intent = None
    row.updated_at = now
    return Step(new, inserted=True, events=deleting, also=[row, *older])


def wait_for_predecessor(context: Context, definition: Definition, row: Resource) -> Waiting | None:
    old = context.world.rows.get(row.replaces or "")
    if old is not None and old.deleting:
        needs = handover.needs(context, definition, old) if old.reason == outcome.CHANGED else Shared()
        why = handover.reason(needs) if needs.held else old.reason
        return Waiting(row.name, Why.LEAVING, (old.key,), why, row.updated_at, key=row.key)
    return None
