"""Users' operations, checks and recoveries of single resources. Pure.

A request waits until no act on its row is in progress. An operation is stored as an intent, so that the next owner of
the shard continues it; its end is in `planner.request_outcome`.
"""

from dataclasses import replace

from homeostat.kinds.registry import KINDS
from homeostat.model import requested
from homeostat.model.desired import Definition
from homeostat.model.intent import OperationIntent, arguments_of, operation_of
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import OBSERVE, Decision, Operate, Step
from homeostat.model.requested import ABANDON, CHECK, RECREATE, Phase, Request
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome, request_outcome
from homeostat.planner.context import Context
from homeostat.planner.policies import unhealthy
from homeostat.planner.request_outcome import TIMED_OUT, WAKES
from homeostat.planner.scope import thing_of
from homeostat.planner.states.maintenance_state import wait_while_frozen
from homeostat.resources.registry import kind_of, type_of

LOOKED_AT = "it is looked at, as a user has asked"
NOTHING = "there is no physical object"
PATIENCE_S = 60.0
"""Seconds to wait for a thing in transition to settle before a requested check counts it as unhealthy."""
LOOK_S = 5.0
"""Seconds between two looks at a thing in transition."""


def decide(context: Context, definition: Definition, row: Resource, request: Request, now: float) -> Decision:
    """Execute the oldest request of a row without an act in progress."""
    if request.phase is not Phase.WAITING:
        return _ended_otherwise(context, row, request, now)
    if now >= request.until:
        return _failed(context, row, request, TIMED_OUT, now)
    if context.world.stack.frozen:
        waiting = wait_while_frozen(context.world.stack, row.name, row.key, request.at)
        return replace(waiting, due_at=min(request.until, waiting.due_at or request.until))
    if request.operation == ABANDON:
        return _done(context, row, request, now)
    if request.operation == CHECK or request.if_unwell:
        looked = _looked(context, row, request, now)
        if not isinstance(looked, Verdict):
            return looked
        well = looked.condition in (Condition.READY, Condition.DRIFTED) and unhealthy.mark_of(row) is None
        if request.operation == CHECK and not well:
            return _failed(context, row, request, looked.reason or row.reason, now)
        if well:
            return _done(context, row, request, now, was_well=True)
    if request.operation == RECREATE:
        return _recreate(context, definition, row, request, now)
    return _operate(context, row, request, now)


def go_on(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Decide about a row with a requested operation in progress."""
    request = request_outcome.first_of(row)
    assert request is not None, f"nothing was asked of {row.name}"
    if request.phase is Phase.FENCING and (request.arguments.get("fenced") or now >= _leaves_at(request)):
        if not request.arguments.get("fenced") and not request.arguments.get("force"):
            why = f"it was not seen to be cut off within {request.arguments['delete_timeout']} s"
            return _failed(context, row, request, why, now)
        return _make_anew(context, definition, row, request, now)
    if now >= request.until:
        return _failed(context, row, request, TIMED_OUT, now)
    if row.acted_at is None:
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        return _step(row)
    events = request_outcome.advance(context.world, row, request, now)
    if events is not None:
        return Step(row, events=events)
    # After `SETTLE_S` an unchanged thing means failure, see `request_outcome.advance`.
    due_at = min(request.until, max(now + LOOK_S, row.acted_at + request_outcome.SETTLE_S))
    return Waiting(row.name, Why.BUILDING, (), row.reason, row.updated_at, due_at, row.key)


def wait_for_predecessor(context: Context, row: Resource, waiting: Waiting, now: float) -> Step | Waiting | None:
    """Decide about a requested replacement whose predecessor still exists; None to create it all the same."""
    request = request_outcome.first_of(row)
    if request is None or request.operation != RECREATE:
        return waiting
    if now < _leaves_at(request):
        return replace(waiting, due_at=_leaves_at(request))
    if request.arguments.get("force"):
        return None
    within = request.arguments.get("delete_timeout")
    why = f"what was there is not deleted after {within} s: another one is made once it is"
    return _failed(context, row, request, why, now)


def _leaves_at(request: Request) -> float:
    """Return the time limit of the predecessor's deletion."""
    return min(request.until, (request.begun_at or request.at) + float(request.arguments.get("delete_timeout", 0)))


# -- ends --------------------------------------------------------------------------------------------------------------


def _failed(context: Context, row: Resource, request: Request, why: str, now: float) -> Step:
    return Step(row, events=request_outcome.fail(context.world, row, request, why, now))


def _done(context: Context, row: Resource, request: Request, now: float, *, was_well: bool = False) -> Step:
    events = request_outcome.succeed(context.world, row, request, now, was_well=was_well)
    return Step(row, events=events)


def _ended_otherwise(context: Context, row: Resource, request: Request, now: float) -> Step:
    """End a request whose act is over: the replacement is complete, or the act failed with its stack."""
    if row.failed or request.phase is not Phase.RECREATING:
        return _failed(context, row, request, requested.plain(row.reason), now)
    return _done(context, row, request, now)


# -- acts --------------------------------------------------------------------------------------------------------------


def _looked(context: Context, row: Resource, request: Request, now: float) -> Verdict | Step | Waiting:
    """Return the verdict on a thing by a look of this pass, or the step for the look, or a wait."""
    if row.handle == "":
        return Verdict(Condition.ABSENT, NOTHING)
    if outcome.is_looked_for(row) and row.key not in context.world.looked:
        if row.due_at is not None and row.due_at > now:
            due_at = min(request.until, row.due_at)
            return Waiting(row.name, Why.UNSEEN, (), LOOKED_AT, request.at, due_at, row.key)
        return Step(row, OBSERVE)
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    if verdict.condition in (Condition.PENDING, Condition.UNKNOWN) and now < request.at + PATIENCE_S:
        why = Why.BUILDING if verdict.condition is Condition.PENDING else Why.UNSEEN
        due_at = min(request.until, now + LOOK_S)
        return Waiting(row.name, why, (), verdict.reason, request.at, due_at, row.key)
    seen = context.world.seen.get(row.key)
    # A nested stack may be complete although one of its resources is gone.
    inside = str(seen.observation.properties.get("unwell") or "") if seen is not None else ""
    well = verdict.condition in (Condition.READY, Condition.DRIFTED)
    return Verdict(Condition.BROKEN, inside) if inside and well else verdict


def _operate(context: Context, row: Resource, request: Request, now: float) -> Decision:
    kind = KINDS.get(kind_of(row.type))
    if kind is None or request.operation not in kind.operations:
        why = f"a {row.shown_type} has no operation {request.operation}"
        return _failed(context, row, request, why, now)
    if row.handle == "":
        return _failed(context, row, request, NOTHING, now)
    arguments = dict(request.arguments)
    seen = context.world.seen.get(row.key)
    if request.operation == "evacuate" and seen is not None and seen.observation.properties.get("host"):
        # After a lost answer the cloud can recognize an executed evacuation.
        arguments.setdefault("from", seen.observation.properties["host"])
    return _intend(context, row, request.begun(Phase.OPERATING, now, request_outcome.as_before(row)), arguments, now)


def _intend(context: Context, row: Resource, request: Request, arguments: dict[str, object], now: float) -> Step:
    """Write the intent of an operation into the row."""
    operation = "fence" if request.phase is Phase.FENCING else request.operation
    request_outcome.put(row, request)
    if request.operation in WAKES:
        request_outcome.keep(row, "")
    events = outcome.begin(row, Action.UPDATE, requested.signed(request, requested.beginning(request)))
    row.intent = OperationIntent(operation, context.world.next_stamp(), arguments=arguments)
    row.acted_at = row.due_at = row.converge_requested_at = None
    row.retries, row.updated_at = 0, now
    step = _step(row)
    step.events = events
    return step


def _step(row: Resource) -> Step:
    operation, arguments = operation_of(row.intent), arguments_of(row.intent)
    return Step(row, Operate(operation, arguments))


def _recreate(context: Context, definition: Definition, row: Resource, request: Request, now: float) -> Decision:
    """Create a thing anew after deleting the old one, which may hold claims of its replacement."""
    if "replace" in definition.restricted:
        why = "its environment does not allow to replace it"
        return _failed(context, row, request, why, now)
    waiting = context.missing_requirements(definition)
    if waiting is not None:
        return replace(waiting, due_at=request.until)
    fence = list(request.arguments.get("fence") or ())
    kind = KINDS.get(kind_of(row.type))
    if fence and row.handle and kind is not None and "fence" in kind.operations:
        begun = request.begun(Phase.FENCING, now, request_outcome.as_before(row))
        return _intend(context, row, begun, {"what": fence}, now)
    return _make_anew(context, definition, row, request, now)


def _make_anew(context: Context, definition: Definition, row: Resource, request: Request, now: float) -> Step:
    renewal = replace(request.begun(Phase.RECREATING, now), before=None)
    row.reason = requested.signed(renewal, requested.beginning(renewal))
    if row.handle == "" and not row.busy:
        request_outcome.put(row, renewal)
        return context.acts.begin(definition, row, now)
    # Requests in the queue concern the member, not its thing: they pass on to the new row.
    others = row.marks.requested[1:] if row.marks is not None else ()
    row.marks = replace(row.marks or NO_MARKS, requested=(), kept="", unhealthy=None) or None
    step = context.acts.delete_first(definition, row, now)
    step.row.marks = replace(step.row.marks or NO_MARKS, requested=(renewal, *others))
    return step
