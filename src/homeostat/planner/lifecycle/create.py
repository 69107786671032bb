"""Creation of a thing, and the search for the thing of an unanswered creation. Pure."""

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.plan import FIND, Create, Step
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import specs
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import intents
from homeostat.planner.names import token
from homeostat.planner.policies import unhealthy
from homeostat.resources.registry import kind_of


def create(context: Context, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
    row = intents.new_row(context, definition, now, replaces)
    step = context.acts.begin(definition, row, now)
    step.inserted = True
    if replaces is not None:
        # To store its new `replaced_by`.
        step.also = (replaces,)
    return step


def begin(context: Context, definition: Definition, row: Resource, now: float) -> Step:
    """Intend the creation of a row's thing."""
    unhealthy.forget(row)
    row.type, row.template_type, row.deletion_policy = (
        definition.type,
        definition.template_type or None,
        definition.deletion_policy,
    )
    try:
        # The properties of a new row are those to keep from its predecessor.
        want = context.resolve(definition, row if row.marks is not None and row.marks.restored is not None else None)
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now, Action.CREATE)
    row.attempts += 1
    # A token for each try: the late thing of an abandoned try carries the old token, and is deleted by it (ADR 0012).
    row.token = token(row.key, context.world.next_stamp())
    return intents.intend(context, row, Create(specs.desired_spec(context, want, row)), want, Action.CREATE, now)


def find(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Look for the thing of an unanswered creation, after the cloud's listing lag."""
    if row.due_at is not None and row.due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
    visible_at = row.updated_at + context.world.listing_lag_s
    if visible_at > now:
        return Waiting(row.name, Why.BACKOFF, (), "its creation may have begun", row.updated_at, visible_at, row.key)
    return Step(row, FIND)


def may_exist(row: Resource) -> bool:
    """Return whether a thing may exist: a nested stack may have been created although its row has no handle yet."""
    return row.handle != "" or (row.token != "" and kind_of(row.type) == "stack")
