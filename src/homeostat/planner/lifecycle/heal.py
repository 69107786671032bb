"""Healing of things that are missing, broken or drifted (CV13). Pure."""

from homeostat.model.desired import Definition
from homeostat.model.intent import changed_of
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import Decision, Event, Operate, Step, Update, event_of
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome, specs
from homeostat.planner.context import Context
from homeostat.planner.policies import healing
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.states import unkept
from homeostat.resources.registry import type_of


def apply_verdict(context: Context, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
    if verdict.condition is Condition.ABSENT:
        return recreate(context, definition, row, verdict, now)
    return apply_remedy(context, definition, row, verdict, now)


def apply_remedy(context: Context, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
    """Apply the remedy of the verdict."""
    if verdict.remedy is Remedy.OPERATE:
        return _operate(context, row, verdict, now)
    if verdict.remedy is Remedy.RECREATE:
        return recreate(context, definition, row, verdict, now)
    if verdict.remedy is Remedy.REPLACE:
        return replace(context, definition, row, verdict.reason, now)
    if verdict.remedy is Remedy.UPDATE:
        return repair(context, row, verdict, now)
    # Remedy MANUAL: fail the action in progress; at rest, a check.
    return context.acts.fail(row, verdict.reason, now, "" if row.busy else Action.CHECK)


def recreate(context: Context, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
    """Replace a missing or broken thing, at growing intervals, and fail after too many attempts (CV13)."""
    required = context.missing_requirements(definition)
    if required is not None:
        return _note_loss(context, row, verdict, now) or required
    # Only a creation gives up: a resource that was healthy once is healed for as long as it takes.
    if RETRY.is_final(row.attempts) and row.action == Action.CREATE and row.busy:
        return context.acts.fail(row, verdict.reason, now)
    # A thing that was healthy for a while breaks for a new reason: earlier attempts do not count.
    calm = row.status == Status.COMPLETE and RETRY.is_calm(now - row.updated_at)
    due_at = row.updated_at + RETRY.delay_after_s(0 if calm else row.attempts)
    if due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), verdict.reason, row.updated_at, due_at, row.key)
    absent = verdict.condition is Condition.ABSENT
    stopped = context.gates.postpone_healing(row, verdict.reason, now, absent=absent)
    stopped = stopped or (context.gates.look_once_more(row, now) if absent else None)
    if stopped is not None:
        return stopped
    noticed = event_of(row, action=Action.CHECK, status=Status.FAILED, reason=verdict.reason)
    known = row.action == Action.CHECK and row.failed
    row.reason = verdict.reason
    # The steps below change the row.
    being_created = healing.is_being_created(row)
    if absent:
        # Create first: there is nothing to delete, and the old row stays in case its thing comes back (ADR 0045).
        step = context.acts.create(definition, now, row)
        row.enter(Action.CHECK, Status.FAILED, verdict.reason)
        row.updated_at = now
        healing.mark_lost(row, now)
    else:
        # A broken thing may hold the address or name of its replacement (ADR 0009).
        step = context.acts.delete_first(definition, row, now)
    if not being_created:
        context.gates.begin_healing(step)
    if not known:
        step.events = [noticed, *step.events]
    return step


def _note_loss(context: Context, row: Resource, verdict: Verdict, now: float) -> Decision | None:
    """Record a loss in a failed stack, where a required resource may never be created."""
    if not context.failed_early or verdict.condition is not Condition.ABSENT or row.status != Status.COMPLETE:
        return None
    gates = context.gates
    stopped = gates.postpone_healing(row, verdict.reason, now, absent=True) or gates.look_once_more(row, now)
    if stopped is not None:
        return stopped
    # The row keeps its revision: that of its later recreation.
    row.enter(Action.CHECK, Status.FAILED, verdict.reason)
    row.updated_at = now
    return Step(row, events=[event_of(row)])


def replace(context: Context, definition: Definition, row: Resource, reason: str, now: float) -> Decision:
    stopped = context.gates.postpone_healing(row, reason, now)
    if stopped is not None:
        return stopped
    being_created = healing.is_being_created(row)
    step = context.acts.replace(definition, row, now, reason)
    if not being_created:
        context.gates.begin_healing(step)
    return step


def _operate(context: Context, row: Resource, verdict: Verdict, now: float) -> Decision:
    return context.acts.heal(row, verdict, now, Operate(verdict.operation, {}))


def repair(context: Context, row: Resource, verdict: Verdict, now: float) -> Decision:
    kind = type_of(row.type)
    spec = specs.requested_spec(context, row)
    # The same request makes up for an interrupted update, whose fields may not be among the compared ones.
    unchanged = changed_of(row.intent) if outcome.is_unchanged(row) else ()
    drifted = tuple(field for name in verdict.drifted for field in kind.fields_of(name, row.properties)) or tuple(spec)
    changed = tuple(dict.fromkeys((*drifted, *unchanged)))
    decision = context.acts.heal(row, verdict, now, Update(spec, changed))
    if isinstance(decision, Step) and isinstance(decision.act, Update):
        unkept.sent(context.world, row, verdict)
    return decision


def heal(context: Context, row: Resource, verdict: Verdict, now: float, act: Operate | Update) -> Decision:
    """Intend a healing act; from the third in a row on, at growing intervals."""
    before = 0 if RETRY.is_calm(now - row.updated_at) else row.attempts
    delay_s = RETRY.delay_after_s(before)
    due_at = row.updated_at + delay_s if delay_s else now
    if due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), verdict.reason, row.updated_at, due_at, row.key)
    stopped = context.gates.postpone_healing(
        row, verdict.reason, now, destroys=False, alive=verdict.condition is Condition.DRIFTED
    )
    if stopped is not None:
        return stopped
    being_created = healing.is_being_created(row)
    reason, events = f"healing: {verdict.reason}", list[Event]()
    # Healing during the creation is a part of the creation, without events.
    if row.busy and row.action == Action.CREATE:
        row.reason = reason
    else:
        if not (row.failed and row.action == Action.CHECK):
            row.enter(Action.CHECK, Status.FAILED, verdict.reason)
            events.append(event_of(row))
        events += outcome.begin(row, Action.UPDATE, reason)
    row.intent = specs.intent_of(act)
    row.acted_at = row.due_at = row.converge_requested_at = None
    row.retries, row.attempts, row.updated_at = 0, before + 1, now
    step = Step(row, act, events)
    if not being_created:
        context.gates.begin_healing(step)
    return step
