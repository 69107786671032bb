"""Meaning of a cloud's answer for a row: the second half of deciding, as pure as the first."""

import re
from dataclasses import replace

from homeostat.kinds.compute import unconfirmed
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model import plan
from homeostat.model.errors import HomeostatError, NotFound, NotSupported, Rejected, Transient, Uncertain
from homeostat.model.intent import (
    FENCE,
    PARTS_FIRST,
    OperationIntent,
    adoption_of,
    arguments_of,
    changed_of,
    late_s_of,
    left_alone_for,
    operation_of,
    with_late_s,
    without_adoption,
)
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Observation, Presence, Remedy, Verdict
from homeostat.model.plan import Event, Step, StepOutcome, event_of
from homeostat.model.stack_actions import MAINTENANCE, STACK_ACTIONS
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, World, next_own_look
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.scope import thing_of
from homeostat.planner.states import maintenance_state, snapshot_state, unkept
from homeostat.resources.registry import is_outside, kind_of, type_of
from homeostat.templates.registry import POST_DELETE

CHANGED = "state changed"
"""Default reason of an event, as in Heat."""
NESTED_FAILURE = re.compile(r"Resource \w+ failed: (?P<kind>\w+): resources\.(?P<name>[^.:\[]+)(?P<rest>.*)", re.DOTALL)
"""Reason that `stack_failure` returns for a nested stack."""
UNJUDGED = 0
"""Below the number of any look: a row with this `judged_observation` has its newest observation judged again."""


def begin(row: Resource, action: str, reason: str = CHANGED) -> list[Event]:
    """Begin an action of a row; return its event, or none if it has begun already."""
    if left_alone_for(row.intent):
        # The action overwrites the note in the intent: judge the thing again at rest, to heal it or renew the note.
        row.judged_observation = UNJUDGED
    goes_on = row.busy and row.action == action
    row.enter(action, Status.IN_PROGRESS, reason)
    return [] if goes_on else [event_of(row)]


ERROR_MAX = 4000
"""Maximum length of an error; the rest is cut off."""


def failure_text(row: Resource, error: Exception | str) -> str:
    """Return `<class>: resources.<name>: <message>`, the form in which failures travel up to the stack.

    The failure of a nested stack keeps its class, and its path grows: `resources.group.resources[2]`.
    """
    nested = NESTED_FAILURE.match(error) if isinstance(error, str) else None
    if nested is not None:
        member = f"[{nested['name']}]" if nested["name"].isdigit() else f".{nested['name']}"
        return f"{nested['kind']}: resources.{row.name}.resources{member}{nested['rest']}"
    kind = "ResourceInError" if isinstance(error, str) else type(error).__name__
    # The path of an error inside a nested stack names a resource of the nested stack, not of this stack.
    inside = kind_of(row.type) == "stack"
    if isinstance(error, Rejected) and not (error.error or inside) and error.path[:2] == ("resources", row.name):
        return f"{kind}: {cut(str(error))}"
    return f"{kind}: resources.{row.name}: {cut(str(error))}"


def cut(text: str) -> str:
    """Shorten an error, which may quote a value and be repeated by many rows."""
    return text if len(text) <= ERROR_MAX else f"{text[:ERROR_MAX]}…"


def stack_failure(world: World, row: Resource) -> str:
    """Return the reason of a stack's failure caused by this resource."""
    if world.stack.action == Action.SUSPEND and row.action not in MAINTENANCE:
        refusal = f"State {row.action}_{row.status} invalid for suspend: {row.reason}"
        return f"Resource {Action.SUSPEND} failed: {failure_text(row, NotSupported(refusal))}"
    return f"Resource {row.action} failed: {row.reason}"


def conclude(world: World, step: Step, answer: Observation | HomeostatError, now: float) -> StepOutcome:
    """Apply the answer to the row of an executed step, and return the outcome to store."""
    row, act = step.row, step.act
    is_look = row.external_id is not None or (row.action == Action.ADOPT and row.busy)
    # The owner's second look is no act and must not touch `updated_at`, the start of intervals.
    if isinstance(act, plan.Observe) and not is_look:
        return _second_look(world, row, answer, now)
    if isinstance(act, plan.Find) and isinstance(answer, Observation) and not answer.present:
        outcome_later = _may_come(row, now)
        if outcome_later is not None:
            return outcome_later
    row.updated_at = now
    if isinstance(answer, Transient | Uncertain):
        record = _try_again(row, answer, now)
        if isinstance(act, plan.Create) and isinstance(answer, Uncertain) and answer.late_s:
            row.intent, record.whole = with_late_s(row.intent, answer.late_s), True
        return record
    if isinstance(answer, HomeostatError) and isinstance(act, plan.DeleteWithParts):
        if act.inside:
            # Nested stacks may not have reached all parts yet, and the parts cannot be deleted first.
            return _try_again(row, Transient(f"it is to be deleted together with its parts: {answer}"), now)
        return _parts_first(row, answer)
    if isinstance(answer, HomeostatError):
        way_out = f". {snapshot_state.WAY_OUT}" if snapshot_state.deletion_token(row) else ""
        return fail(world, row, failure_text(row, answer) + way_out, now)
    return _observed(world, step, answer, now)


def _observed(world: World, step: Step, answer: Observation, now: float) -> StepOutcome:
    """Conclude an answer with an observation."""
    row, act = step.row, step.act
    # The order matters: the purpose of the row comes before its act, which may serve several purposes.
    if row.action == Action.ADOPT and not isinstance(act, plan.Find):
        return _adopted_answer(world, row, answer, now)
    if snapshot_state.deletion_token(row) or snapshot_state.is_stack_snapshot(row):
        return _snapshot_requested(world, row, answer, now)
    if maintenance_state.unlocking(row):
        return _unlocked(world, row, answer, now)
    if isinstance(act, plan.Operate) and operation_of(row.intent) == FENCE:
        return _fenced(world, row, answer, now)
    if isinstance(act, plan.Observe):
        return _observed_external(world, row, answer, now)
    if isinstance(act, plan.Deletion):
        return _deleted(world, row, answer, now)
    if isinstance(act, plan.Find):
        return _found(world, row, answer, now)
    if isinstance(act, plan.Update) and answer.presence is Presence.ABSENT and is_changed_outside(row):
        return _missed(world, row, answer, now)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    row.handle = answer.handle or row.handle
    has_new_notes = unkept.accept(world, step, answer)
    look(world, row, answer)
    record = judged(world, row, now)
    record.observation, record.whole = answer, record.whole or has_new_notes
    return record


def _fenced(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude a fencing request: note the confirmed fences, and request the rest again.

    An absent thing does not count as fenced: it may be present again at the next look.
    """
    fences = [str(fence) for fence in arguments_of(row.intent).get("what", ())]
    confirmed = answer.properties.get("fenced", ()) if answer.present else ()
    marks = row.marks or NO_MARKS
    if marks.recovery is not None:
        # Fences of an earlier policy stay noted: they have to be lifted in the end, too.
        before = [fence for fence in marks.recovery.fenced if fence not in fences]
        row.marks = replace(marks, recovery=replace(marks.recovery, fenced=(*before, *confirmed)))
    if missing := [fence for fence in fences if fence not in confirmed]:
        record = _try_again(row, Transient(unconfirmed(missing, answer.properties)), now)
    else:
        row.acted_at, row.due_at, row.retries = now, None, 0
        row.reason = f"it is cut off: {', '.join(fences)}"
        record = StepOutcome(row)
    look(world, row, answer)
    record.observation, record.whole = answer, True
    return record


def look(world: World, row: Resource, seen: Observation) -> None:
    """Make `seen` the newest observation of the row, already judged."""
    before = world.seen.get(row.key)
    row.judged_observation = next_own_look(before.number if before is not None else 0)
    world.seen[row.key] = Seen(seen, row.judged_observation)


def judge_at_rest(world: World, row: Resource, verdict: Verdict) -> None:
    """Mark the newest observation of a row about to be complete as judged, unless it has to be judged again at rest.

    A drifted thing is judged again and repaired at rest. So is a thing just suspended or locked: this verdict only
    covered the suspension or the lock.
    """
    ready = verdict.condition is Condition.READY and row.action not in MAINTENANCE
    row.judged_observation = world.seen[row.key].number if ready else UNJUDGED
    unkept.forget(world, row, verdict)


def judged(world: World, row: Resource, now: float) -> StepOutcome:
    """Complete or fail a row in progress if its newest observation says so; otherwise it stays in progress."""
    if row.key in world.rollouts or (row.key in world.seen and "staged" in world.seen[row.key].observation.properties):
        return StepOutcome(row)  # the next decision follows its rollout
    verdict = maintenance_state.verdict(world, row, now)
    if verdict.condition in (Condition.READY, Condition.DRIFTED):
        before = row.marks
        judge_at_rest(world, row, verdict)
        record = complete(world, row, now)
        return record if record.whole or row.marks == before else replace(record, whole=True)
    if verdict.condition is Condition.BROKEN and verdict.remedy is Remedy.MANUAL:
        return fail(world, row, failure_text(row, verdict.reason), now)
    # Other damage is left to the next decision, which applies the remedy.
    row.reason = verdict.reason
    row.due_at = verdict.due_at
    return StepOutcome(row)


def complete(world: World, row: Resource, now: float, reason: str = CHANGED) -> StepOutcome:
    """Complete a row: it matches its desired state, and its dependants may read it now."""
    row.enter(row.action, Status.COMPLETE, reason)
    row.due_at = None
    row.updated_at = now
    # This stamp makes the readers of its earlier state stale, see `Context.is_stale`.
    row.changed = world.next_stamp()
    undone = STACK_ACTIONS[row.action].clears != "" and row.marks is not None
    if undone:
        row.marks = maintenance_state.without_mark(row, row.action)
    return StepOutcome(row, [event_of(row)], whole=end_healing(row) or undone)


def end_healing(row: Resource) -> bool:
    """Remove the healing mark of a row, healthy or not; return whether there was a mark."""
    if row.marks is None or not row.marks.healing:
        return False
    row.marks = replace(row.marks, healing=False) or None
    return True


def is_being_healed(row: Resource) -> bool:
    """Return whether a row is being healed, or is the replacement of a row being healed."""
    marked = row.marks is not None and row.marks.healing
    return marked and not row.deleting and (row.busy or row.action == Action.INIT)


def fail(world: World, row: Resource, reason: str, now: float, action: str = "") -> StepOutcome:
    """Fail a row, which is then left alone until a newer revision changes the desired state.

    Args:
        action: The action that fails; "" for the row's own.
    """
    row.enter(action or row.action, Status.FAILED, snapshot_state.end_reason(row, reason))
    # The failure counts for the newest revision, even if the act was for an earlier one: only a newer one retries.
    row.revision = world.stack.revision
    row.due_at = row.converge_requested_at = None
    row.updated_at = now
    return StepOutcome(row, [event_of(row)], whole=end_healing(row))


def _try_again(row: Resource, error: Transient | Uncertain, now: float) -> StepOutcome:
    row.retries += 1
    row.acted_at = None
    row.due_at = now + RETRY.delay_s(row.retries, error.retry_after_s if isinstance(error, Transient) else None)
    row.reason = str(error)
    return StepOutcome(row)


def _may_come(row: Resource, now: float) -> StepOutcome | None:
    """Conclude a search without a result while the creation may still be executed; None if this time is over.

    The time counts from the last unanswered request (`updated_at`). The row keeps its state and token, and another
    search follows.
    """
    over_at = row.updated_at + late_s_of(row.intent)
    if now >= over_at:
        return None
    row.retries += 1
    row.due_at = min(over_at, now + RETRY.delay_s(row.retries))
    return StepOutcome(row)


def _observed_external(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude a look at an external thing (`external_id`)."""
    if answer.presence is Presence.UNKNOWN:
        return _try_again(row, Transient(answer.reason or "the cloud does not say whether it exists"), now)
    if answer.presence is Presence.ABSENT:
        missing = NotFound(f"The {row.shown_type} ({row.handle}) could not be found.")
        return fail(world, row, failure_text(row, missing), now)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    look(world, row, answer)
    record = judged(world, row, now)
    # Differences are no drift: the owner of the thing may change it.
    row.judged_observation = world.seen[row.key].number
    record.observation = answer
    return record


def is_looked_for(row: Resource) -> bool:
    """Return whether a row has a thing in a cloud, which a single look may miss.

    A look never misses the service's own records, which are in its database.
    """
    return row.handle != "" and is_outside(row.type) and kind_of(row.type) not in BUILTIN_KINDS


def is_changed_outside(row: Resource) -> bool:
    """Return whether a thing in a cloud is being changed."""
    return row.busy and row.action == Action.UPDATE and is_looked_for(row)


def is_unchanged(row: Resource) -> bool:
    """Return whether an update of the thing was intended and never executed.

    The thing was not found, or was marked unhealthy in between.
    """
    return row.acted_at is None and row.handle != "" and bool(changed_of(row.intent))


def _missed(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude an update that did not find its thing; it is repeated when the thing reappears."""
    record = _try_again(row, Transient(answer.reason or "it is gone"), now)
    look(world, row, answer)
    # An answer to an update is no look: the owner still has to look for the thing before it creates a replacement.
    world.looked.discard(row.key)
    record.observation = answer
    return record


def _second_look(world: World, row: Resource, answer: Observation | HomeostatError, now: float) -> StepOutcome:
    """Conclude the owner's second look for a missing thing; the row only gets an observation to judge."""
    if isinstance(answer, HomeostatError) or answer.presence is Presence.UNKNOWN:
        row.retries += 1
        row.due_at = now + RETRY.delay_s(row.retries, answer.retry_after_s if isinstance(answer, Transient) else None)
        return StepOutcome(row)
    # An unanswered act (`acted_at` is None) goes on counting its retries.
    row.retries, row.due_at = 0 if row.acted_at is not None else row.retries, None
    before = world.seen.get(row.key)
    known = before.observation.properties if before is not None else {}
    once = {name: known[name] for name in type_of(row.type).creation_only_fields if name in known}
    if answer.present:
        answer = replace(answer, properties={**once, **answer.properties})
    else:
        # Absent since the first look that missed the thing: waiting and doubt count from there.
        since = before.observation.seen_at if before is not None and not before.observation.present else answer.seen_at
        answer = replace(answer, properties=known, seen_at=since)
    world.seen[row.key] = Seen(answer, next_own_look(before.number if before is not None else 0))
    # The row may have judged a look of this number that was not stored, since an observer's look was newer.
    row.judged_observation = UNJUDGED
    world.looked.add(row.key)
    return StepOutcome(row, observation=answer)


def _adopted_answer(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude an answer about a thing to adopt.

    If the thing does not exist, the row fails and drops its adoption data: the next try creates the thing.
    """
    if answer.presence is Presence.UNKNOWN:
        return _try_again(row, Transient(answer.reason or "the cloud does not say whether it exists"), now)
    if answer.presence is Presence.ABSENT:
        missing = NotFound(f"The {row.shown_type} ({row.handle}) could not be found. {TO_BE_MADE}")
        return _not_there(world, row, failure_text(row, missing), now)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    row.handle = answer.handle or row.handle
    kind = type_of(row.type)
    # Fields that the cloud returns only at creation come from the exported document.
    known = (adoption_of(row.intent) or {}).get("data") or {}
    once = {name: known[name] for name in kind.creation_only_fields if name in known and name not in answer.properties}
    if once:
        answer = replace(answer, properties={**answer.properties, **once})
    look(world, row, answer)
    record = adopted(world, row, kind.judge(thing_of(world, row, kind), now), now)
    record.observation = answer
    return record


TO_BE_MADE = "Update or converge the stack to create it; abandon the stack if this is the wrong project"
"""Advice to the user if a thing to adopt does not exist."""


def _not_there(world: World, row: Resource, reason: str, now: float) -> StepOutcome:
    row.handle = row.token = ""
    row.intent = without_adoption(row.intent)
    record = fail(world, row, reason, now)
    record.whole = True
    return record


def adopted(world: World, row: Resource, verdict: Verdict, now: float) -> StepOutcome:
    """Complete an adoption if the thing exists and has settled: drift and damage in a cloud are repaired later.

    A broken thing of the service itself (which has just created it again) fails.
    """
    if verdict.condition is Condition.ABSENT:
        return _not_there(world, row, failure_text(row, f"{verdict.reason}. {TO_BE_MADE}"), now)
    broken = verdict.condition is Condition.BROKEN
    if broken and (not is_outside(row.type) or kind_of(row.type) in BUILTIN_KINDS):
        row.intent = without_adoption(row.intent)
        record = fail(world, row, failure_text(row, verdict.reason), now)
    elif broken or verdict.condition in (Condition.READY, Condition.DRIFTED):
        row.intent = without_adoption(row.intent)
        judge_at_rest(world, row, verdict)
        record = complete(world, row, now)
    else:
        row.reason, row.due_at = verdict.reason, verdict.due_at
        record = StepOutcome(row)
    record.whole = True
    return record


def _deleted(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    if answer.presence is Presence.ABSENT:
        if answer.not_found:
            return not_found(world, row)
        return removed(world, row, snapshot_state.end_reason(row, CHANGED))
    row.handle = row.handle or answer.handle
    row.acted_at = now
    row.due_at = None
    look(world, row, answer)
    return StepOutcome(row, observation=answer)


def _parts_first(row: Resource, error: HomeostatError) -> StepOutcome:
    """Conclude a refused cascade: the parts are deleted first, one by one."""
    row.intent = OperationIntent(PARTS_FIRST)
    row.acted_at = row.due_at = None
    row.reason = f"its parts are deleted first, one by one: {cut(str(error))}"
    return StepOutcome(row, whole=True)


def _snapshot_requested(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude a request for a snapshot; the row goes on after an observation of the complete snapshot."""
    if answer.presence is Presence.ABSENT and row.deleting:
        return removed(world, row, snapshot_state.TOO_LATE)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    look(world, row, answer)
    return StepOutcome(row, observation=answer)


def _unlocked(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude the unlocking before a deletion."""
    if answer.presence is Presence.ABSENT:
        return not_found(world, row)
    row.marks, row.intent = maintenance_state.without_mark(row, Action.UNLOCK), None
    row.due_at = None
    row.retries = 0
    look(world, row, answer)
    return StepOutcome(row, observation=answer)


def removed(world: World, row: Resource, reason: str = CHANGED) -> StepOutcome:
    """Remove the row of a deleted or released thing, unless its deletion stops at a last hook."""
    events = [event_of(row, action=Action.DELETE, status=Status.COMPLETE, reason=reason)]
    if not _stops_at_last_hook(world, row):
        return StepOutcome(row, events, removed=True)
    row.enter(Action.DELETE, Status.COMPLETE, reason)
    row.handle, row.due_at = "", None
    return StepOutcome(row, events)


def not_found(world: World, row: Resource) -> StepOutcome:
    """Remove the row of a thing that was not found, although the cloud may be wrong.

    If the thing turns up again, it is deleted as an orphan, even while its row is stopped at a hook. But if its
    deletion policy wants a snapshot and there is none, the thing is kept, and the event names it.
    """
    if snapshot_state.needed(row, row.deletion_policy) and not snapshot_state.snapshot_id(row):
        return removed(world, row, snapshot_state.TOO_LATE)
    looked_for = is_looked_for(row)
    record = removed(world, row, snapshot_state.end_reason(row, CHANGED))
    if looked_for:
        record.orphan_token, row.token = row.token, ""
    return record


def _stops_at_last_hook(world: World, row: Resource) -> bool:
    """Return whether the row's deletion ends with a hook (see `planner.lifecycle.hooks`); a row in INIT has none."""
    if world.stack.abandoned or row.action == Action.INIT:
        return False
    deleting = world.stack.action == Action.DELETE and world.stack.status == Status.IN_PROGRESS
    return deleting and row.hooks is not None and POST_DELETE in row.hooks.of_deletion


def _found(world: World, row: Resource, answer: Observation, now: float) -> StepOutcome:
    """Conclude the search for the thing of an unanswered creation; without a result, drop the creation's token."""
    if answer.presence is not Presence.PRESENT:
        # The request may still arrive: a thing with this token is then deleted. The next creation gets a new token.
        given_up, row.token = row.token, ""
        return StepOutcome(row, orphan_token=given_up)
    row.handle, row.acted_at, row.due_at = answer.handle, now, None
    look(world, row, answer)
    return StepOutcome(row, observation=answer)


def unfit(verdict: Verdict) -> bool:
    """Return whether this verdict on a resource at rest calls for an act."""
    return verdict.condition in (Condition.ABSENT, Condition.BROKEN, Condition.DRIFTED)
