"""Adoption: taking over existing things from an exported document. No cloud creates or changes anything. Pure.

A thing in a cloud is observed; its companions without a resource, such as the port of a server, are marked. Nested
stacks and the service's own records are created again from the document. Differences are healed after the whole stack
is adopted, like any other drift (CV16).
"""

from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.intent import adoption_of, with_adoption
from homeostat.model.observed import Condition
from homeostat.model.plan import OBSERVE, RECORD, Act, Create, Decision, Operate, Step
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome, specs
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import intents
from homeostat.planner.names import token
from homeostat.planner.scope import thing_of
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import is_outside, kind_of, type_of

ADOPT = "adopt"
"""Operation on the service's own records."""


def begin(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Intend the adoption of a resource, whose requirements are done."""
    # A newer revision wants another type: the existing thing stays untouched.
    if row.type != definition.type:
        return context.acts.replace(definition, row, now)
    data = adoption_of(row.intent)
    assert data is not None
    row.deletion_policy = definition.deletion_policy
    row.template_type = definition.template_type or None
    try:
        want = context.resolve(definition)
        want.kind.adoption(data.get("data") or {})
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now, Action.ADOPT)
    if kind_of(row.type) == NestedStack.kind or kind_of(row.type) in BUILTIN_KINDS:
        # Only a record that is created again carries a token. No token means that the thing was not created here.
        row.token = row.token or token(row.key, context.world.next_stamp())
    elif is_outside(row.type):
        row.handle = want.kind.adopted_handle(data["id"], want.kind.complete(want.values))
    step = intents.intend(context, row, RECORD, want, Action.ADOPT, now)
    # `intents.intend` has overwritten the adoption data.
    row.intent = with_adoption(row.intent, data)
    step.act = _act(context, row)
    return step


def go_on(context: Context, row: Resource, now: float) -> Decision:
    """Execute an intended adoption, again if need be, or judge its result."""
    if row.acted_at is None:
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        return Step(row, _act(context, row))
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    if verdict.condition is Condition.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, reason=verdict.reason, since=row.updated_at, key=row.key)
    record = outcome.adopted(context.world, row, verdict, now)
    if row.status != Status.IN_PROGRESS:
        return Step(row, events=record.events)
    return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, verdict.due_at, row.key)


def _act(context: Context, row: Resource) -> Act:
    kind, data = kind_of(row.type), adoption_of(row.intent) or {}
    if kind in ("", NestedStack.kind):
        return Create({}, data)
    if kind in BUILTIN_KINDS:
        return Operate(ADOPT, {**data, "token": row.token, "spec": specs.requested_spec(context, row)})
    # A cloud marks a thing by an operation; without marks a look is enough.
    arguments = type_of(row.type).adoption(data.get("data") or {})
    return OBSERVE if arguments is None else Operate(ADOPT, arguments)
