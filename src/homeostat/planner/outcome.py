"""What an answer of the cloud means for a row: the second half of deciding, as pure as the first."""

import re
from dataclasses import replace

from homeostat.model.errors import HomeostatError, NotFound, NotSupported, Rejected, Transient, Uncertain
from homeostat.model.observed import Condition, Observation, Presence, Remedy, Verdict
from homeostat.model.plan import Event, Recorded, Step, Verb
from homeostat.model.status import MAINTENANCE, Action, Status
from homeostat.model.world import Resource, Seen, World, next_own_look
from homeostat.planner.actions import maintenance_state, snapshot_state
from homeostat.planner.lifecycle import adoption_data
from homeostat.planner.retry.backoff import delay_s
from homeostat.planner.scope import HEALING, thing_of
from homeostat.resources import builtin_kinds
from homeostat.resources.registry import is_outside, kind_of, type_of
from homeostat.templates.registry import POST_DELETE

CHANGED = "state changed"
NESTED_FAILURE = re.compile(r"Resource \w+ failed: (?P<kind>\w+): resources\.(?P<name>[^.:\[]+)(?P<rest>.*)", re.DOTALL)
UNJUDGED = 0
"""Number of no look at all."""


def event_of(row: Resource, status: str, reason: str, action: str = "") -> Event:
    return Event(row.name, action or row.action, status, reason, row.shown_type, row.key, row.handle)


TOLD_MAX = 4000
"""Characters of an error that are kept."""


def failure_text(row: Resource, error: Exception | str) -> str:
    """`<class>: resources.<name>: <message>`, the form in which failures travel up to the stack.

    The failure of a nested stack keeps its class, and its path grows: `resources.group.resources[2]`.
    """
    nested = NESTED_FAILURE.match(error) if isinstance(error, str) else None
    if nested is not None:
        member = f"[{nested['name']}]" if nested["name"].isdigit() else f".{nested['name']}"
        return f"{nested['kind']}: resources.{row.name}.resources{member}{nested['rest']}"
    kind = "ResourceInError" if isinstance(error, str) else type(error).__name__
    inside = kind_of(row.type) == "stack"  # an error of what is nested names a place in there
    if isinstance(error, Rejected) and not (error.error or inside) and error.path[:2] == ("resources", row.name):
        return f"{kind}: {_cut(str(error))}"
    return f"{kind}: resources.{row.name}: {_cut(str(error))}"


def _cut(text: str) -> str:
    """An error may quote a value, and many rows may tell of it."""
    return text if len(text) <= TOLD_MAX else f"{text[:TOLD_MAX]}…"


def stack_failure(world: World, row: Resource) -> str:
    """Why a stack fails with this resource."""
    if world.stack.action == Action.SUSPEND and row.action not in MAINTENANCE:
        refusal = f"State {row.action}_{row.status} invalid for suspend: {row.reason}"
        return f"Resource {Action.SUSPEND} failed: {failure_text(row, NotSupported(refusal))}"
    return f"Resource {row.action} failed: {row.reason}"


def conclude(world: World, step: Step, answer: Observation | HomeostatError, now: float) -> Recorded:
    """Change the row of a performed step by its answer, and say what is to be stored."""
    row = step.row
    taking = row.external_id is not None or (row.action == Action.ADOPT and row.busy)
    if step.verb is Verb.OBSERVE and not taking:
        return _looked_once_more(world, row, answer, now)
    row.updated_at = now
    if isinstance(answer, Transient | Uncertain):
        return _try_again(row, answer, now)
    if isinstance(answer, HomeostatError):
        way_out = f". {snapshot_state.WAY_OUT}" if snapshot_state.asked(row) else ""
        return fail(world, row, failure_text(row, answer) + way_out, now)
    if row.action == Action.ADOPT and step.verb is not Verb.FIND:
        return _seen_there(world, row, answer, now)
    if snapshot_state.asked(row) or snapshot_state.taken(row):
        return _snapshot_asked(world, row, answer, now)
    if maintenance_state.unlocking(row):
        return _unlocked(world, row, answer, now)
    if step.verb is Verb.OBSERVE:
        return _taken(world, row, answer, now)
    if step.verb is Verb.DELETE:
        return _deleted(world, row, answer, now)
    if step.verb is Verb.FIND:
        return _found(world, row, answer, now)
    if step.verb is Verb.UPDATE and answer.presence is Presence.ABSENT and is_changed_outside(row):
        return _missed(world, row, answer, now)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    row.handle = answer.handle or row.handle
    look(world, row, answer)
    record = judged(world, row, now)
    record.observation = answer
    return record


def look(world: World, row: Resource, seen: Observation) -> None:
    """Make `seen` the newest observation of the row, already judged."""
    before = world.seen.get(row.key)
    row.judged = next_own_look(before.number if before is not None else 0)
    world.seen[row.key] = Seen(seen, row.judged)


def judge_at_rest(world: World, row: Resource, verdict: Verdict) -> None:
    """It is about to be complete. What differs is judged once more when it is at rest, and mended there; of one that
    was suspended or locked it is only known that this is done."""
    ready = verdict.condition is Condition.READY and row.action not in MAINTENANCE
    row.judged = world.seen[row.key].number if ready else UNJUDGED


def judged(world: World, row: Resource, now: float) -> Recorded:
    """COMPLETE or FAIL a row in progress if what was seen of it says so; otherwise it goes on."""
    verdict = maintenance_state.verdict(world, row, now)
    if verdict.condition in (Condition.READY, Condition.DRIFTED):
        judge_at_rest(world, row, verdict)
        return complete(world, row, now)
    if verdict.condition is Condition.BROKEN and verdict.remedy is Remedy.ASK:
        return fail(world, row, failure_text(row, verdict.reason), now)
    row.reason = verdict.reason
    row.due_at = verdict.due_at
    return Recorded(row)


def complete(world: World, row: Resource, now: float) -> Recorded:
    """The row has reached what it should be; whoever depends on it may read it now."""
    row.status = Status.COMPLETE
    row.reason = CHANGED
    row.due_at = None
    row.updated_at = now
    row.changed = world.next_stamp()
    undone = row.action in maintenance_state.UNDOES and row.marks is not None
    if undone:
        row.marks = maintenance_state.without_mark(row, row.action)
    return Recorded(row, [event_of(row, Status.COMPLETE, CHANGED)], whole=no_longer_healed(row) or undone)


def no_longer_healed(row: Resource) -> bool:
    """It is not being healed any more, well or not. Gives whether it was."""
    if row.marks is None or HEALING not in row.marks:
        return False
    row.marks = {name: mark for name, mark in row.marks.items() if name != HEALING} or None
    return True


def is_being_healed(row: Resource) -> bool:
    """Or is it made in the place of one that is?"""
    marked = row.marks is not None and HEALING in row.marks
    return marked and not row.leaving and (row.busy or row.action == Action.INIT)


def fail(world: World, row: Resource, reason: str, now: float) -> Recorded:
    """The row needs a change of the desired state: it is left alone until there is a newer revision."""
    reason = snapshot_state.farewell(row, reason)
    row.status = Status.FAILED
    row.revision = world.stack.revision
    row.reason = reason
    row.due_at = row.asked_at = None
    row.updated_at = now
    return Recorded(row, [event_of(row, Status.FAILED, reason)], whole=no_longer_healed(row))


def _try_again(row: Resource, error: Transient | Uncertain, now: float) -> Recorded:
    row.retries += 1
    row.acted_at = None
    row.due_at = now + delay_s(row.retries, error.retry_after_s if isinstance(error, Transient) else None)
    row.reason = str(error)
    return Recorded(row)


def _taken(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    """A look at what is somebody else's."""
    if answer.presence is Presence.UNKNOWN:
        return _try_again(row, Transient(answer.reason or "nobody can tell whether it is there"), now)
    if answer.presence is Presence.ABSENT:
        missing = NotFound(f"The {row.shown_type} ({row.handle}) could not be found.")
        return fail(world, row, failure_text(row, missing), now)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    look(world, row, answer)
    record = judged(world, row, now)
    row.judged = world.seen[row.key].number
    record.observation = answer
    return record


def is_looked_for(row: Resource) -> bool:
    """Is it a thing of a cloud, which one look may miss? What the service keeps itself is in its own rows."""
    return row.handle != "" and is_outside(row.type) and kind_of(row.type) not in builtin_kinds.KINDS


def is_changed_outside(row: Resource) -> bool:
    """Is it a thing of a cloud that is being changed?"""
    return row.busy and row.action == Action.UPDATE and is_looked_for(row)


def is_unchanged(row: Resource) -> bool:
    """Was its thing to be changed, and was not, before something else was said of it: that it is gone, or unhealthy?"""
    return row.acted_at is None and row.handle != "" and bool((row.intent or {}).get("changed"))


def _missed(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    """What was not found was not changed: when it is seen again, it is changed."""
    record = _try_again(row, Transient(answer.reason or "it is gone"), now)
    look(world, row, answer)
    world.looked.discard(row.key)
    record.observation = answer
    return record


def _looked_once_more(world: World, row: Resource, answer: Observation | HomeostatError, now: float) -> Recorded:
    """The owner's look at what was not found. It is judged like any other look, and nothing else of the row changes."""
    if isinstance(answer, HomeostatError) or answer.presence is Presence.UNKNOWN:
        row.retries += 1
        row.due_at = now + delay_s(row.retries, answer.retry_after_s if isinstance(answer, Transient) else None)
        return Recorded(row)
    row.retries, row.due_at = 0 if row.acted_at is not None else row.retries, None
    before = world.seen.get(row.key)
    known = before.observation.properties if before is not None else {}
    once = {name: known[name] for name in type_of(row.type).told_once if name in known}
    if answer.present:
        answer = replace(answer, properties={**once, **answer.properties})
    else:  # it was not there already when it was missed for the first time
        since = before.observation.seen_at if before is not None and not before.observation.present else answer.seen_at
        answer = replace(answer, properties=known, seen_at=since)
    world.seen[row.key] = Seen(answer, next_own_look(before.number if before is not None else 0))
    world.looked.add(row.key)
    return Recorded(row, observation=answer)


def _seen_there(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    """An answer about what is to be taken over. What is not there is told, and forgotten: it is made when somebody asks
    for it once more."""
    if answer.presence is Presence.UNKNOWN:
        return _try_again(row, Transient(answer.reason or "nobody can tell whether it is there"), now)
    if answer.presence is Presence.ABSENT:
        missing = NotFound(f"The {row.shown_type} ({row.handle}) could not be found. {TO_BE_MADE}")
        return _not_there(world, row, failure_text(row, missing), now)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    row.handle = answer.handle or row.handle
    kind = type_of(row.type)
    known = (adoption_data.of(row) or {}).get("data") or {}
    once = {name: known[name] for name in kind.told_once if name in known and name not in answer.properties}
    if once:
        answer = replace(answer, properties={**answer.properties, **once})
    look(world, row, answer)
    record = taken_over(world, row, kind.judge(thing_of(world, row, kind), now), now)
    record.observation = answer
    return record


TO_BE_MADE = "Update the stack, or ask it to converge, to have it made; abandon the stack if this is the wrong project"


def _not_there(world: World, row: Resource, reason: str, now: float) -> Recorded:
    row.handle = row.token = ""
    adoption_data.forget(row)
    record = fail(world, row, reason, now)
    record.whole = True
    return record


def taken_over(world: World, row: Resource, verdict: Verdict, now: float) -> Recorded:
    """COMPLETE a row whose thing is there, whatever it is like: what is wrong with a thing of the cloud is mended
    later. What the service has made anew FAILS if it is of no use; what is not settled yet goes on."""
    if verdict.condition is Condition.ABSENT:
        return _not_there(world, row, failure_text(row, f"{verdict.reason}. {TO_BE_MADE}"), now)
    broken = verdict.condition is Condition.BROKEN
    if broken and (not is_outside(row.type) or kind_of(row.type) in builtin_kinds.KINDS):
        adoption_data.forget(row)
        record = fail(world, row, failure_text(row, verdict.reason), now)
    elif broken or verdict.condition in (Condition.READY, Condition.DRIFTED):
        adoption_data.forget(row)
        judge_at_rest(world, row, verdict)
        record = complete(world, row, now)
    else:
        row.reason, row.due_at = verdict.reason, verdict.due_at
        record = Recorded(row)
    record.whole = True
    return record


def _deleted(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    if answer.presence is Presence.ABSENT:
        doubted = answer.not_found and is_looked_for(row)
        record = removed(world, row, snapshot_state.farewell(row, CHANGED))
        if doubted:  # the cloud may be wrong: should it turn up again, it is removed, also while its row lingers
            record.forsaken, row.token = row.token, ""
        return record
    row.handle = row.handle or answer.handle
    row.acted_at = now
    row.due_at = None
    look(world, row, answer)
    return Recorded(row, observation=answer)


def _snapshot_asked(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    """The row goes on once its snapshot is seen complete."""
    if answer.presence is Presence.ABSENT and row.leaving:
        return removed(world, row, snapshot_state.TOO_LATE)
    row.acted_at = now
    row.due_at = None
    row.retries = 0
    look(world, row, answer)
    return Recorded(row, observation=answer)


def _unlocked(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    """Now it may be deleted."""
    if answer.presence is Presence.ABSENT:
        return removed(world, row)
    row.marks, row.intent = maintenance_state.without_mark(row, Action.UNLOCK), None
    row.due_at = None
    row.retries = 0
    look(world, row, answer)
    return Recorded(row, observation=answer)


def removed(world: World, row: Resource, reason: str = CHANGED) -> Recorded:
    """The thing is gone (or let go of), and so is its row, unless its deletion stops once more at the very end."""
    events = [event_of(row, Status.COMPLETE, reason, Action.DELETE)]
    if not _lingers(world, row):
        return Recorded(row, events, removed=True)
    row.action, row.status, row.reason, row.handle = Action.DELETE, Status.COMPLETE, reason, ""
    row.due_at = None
    return Recorded(row, events)


def _lingers(world: World, row: Resource) -> bool:
    """Is there a hook at the end of its deletion (see `planner.lifecycle.hooks`)? What was never made goes by."""
    if world.stack.abandoned or row.action == Action.INIT:
        return False
    deleting = world.stack.action == Action.DELETE and world.stack.status == Status.IN_PROGRESS
    return deleting and POST_DELETE in (row.hooks or {}).get("leaving", ())


def _found(world: World, row: Resource, answer: Observation, now: float) -> Recorded:
    """A creation whose answer was lost: what it made is taken over, or it is given up and its token with it."""
    if answer.presence is not Presence.PRESENT:
        given_up, row.token = row.token, ""
        return Recorded(row, forsaken=given_up)
    row.handle = answer.handle
    row.acted_at = now
    row.due_at = None
    look(world, row, answer)
    return Recorded(row, observation=answer)


def unfit(verdict: Verdict) -> bool:
    """Does this verdict on a resource at rest call for an act?"""
    return verdict.condition in (Condition.ABSENT, Condition.BROKEN, Condition.DRIFTED)
