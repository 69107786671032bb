"""Outcomes of users' requests for single resources (`model.requested`), and the meaning of answers. Pure.

A failed request only leaves an event: the row returns to its former state, so nothing is replaced for it.
"""

from dataclasses import replace

from homeostat.kinds.compute import FENCE_ANSWER
from homeostat.kinds.registry import KINDS
from homeostat.model import intent, requested
from homeostat.model.errors import HomeostatError, Transient, Uncertain
from homeostat.model.intent import changed_of, left_alone_for
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Observation, Presence, Remedy
from homeostat.model.plan import Event, Step, StepOutcome, event_of
from homeostat.model.requested import AT_ONCE, KEEPS, Aim, Before, Phase, Request
from homeostat.model.status import UNBEGUN, Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import kind_of, type_of

OPERATING = frozenset({Phase.OPERATING, Phase.FENCING})
"""Phases with an operation of the cloud port in progress."""
SETTLE_S = 60.0
"""Seconds after an operation for which a thing may still show its former state."""
FENCE_S = 2.0
"""Seconds between two fencing requests."""
TIMED_OUT = "its time was over"
WAKES = frozenset({"start", "unpause", "resume", "reboot", "rebuild", "unrescue", "evacuate"})
"""Operations that end the lasting status of an earlier operation (such as a stop)."""


def first_of(row: Resource) -> Request | None:
    """Return the oldest open request of a row; None if there is none."""
    return row.marks.requested[0] if row.marks is not None and row.marks.requested else None


def is_operating(row: Resource) -> bool:
    """Return whether a requested operation is in progress."""
    if row.marks is None or not row.marks.requested or not row.busy:
        return False
    return row.marks.requested[0].phase in OPERATING


def put(row: Resource, request: Request | None) -> None:
    """Replace the oldest request of a row; None removes it."""
    marks = row.marks or NO_MARKS
    conditions = () if request is None else (request,)
    row.marks = replace(marks, requested=(*conditions, *marks.requested[1:])) or None


def keep(row: Resource, status: str) -> None:
    """Note the status in which an operation leaves a thing; "" for none."""
    row.marks = replace(row.marks or NO_MARKS, kept=status) or None


def as_before(row: Resource) -> Before:
    """Snapshot the row's state, to restore it later."""
    stored = None if row.intent is None else intent.dump(row.intent)
    kept = row.marks.kept if row.marks is not None else ""
    return Before(row.action, row.status, row.reason, stored, row.acted_at, kept)


# -- ends --------------------------------------------------------------------------------------------------------------


def succeed(world: World, row: Resource, request: Request, now: float, *, was_well: bool = False) -> list[Event]:
    """End a request that has succeeded; return its events."""
    text = requested.signed(request, requested.success(request, was_well=was_well))
    _take_off(row, now)
    if not row.busy:
        return _noted(row, Status.COMPLETE, text)
    before = request.before
    keep(row, KEEPS.get(request.operation, "") or _still_kept(row, request))
    row.enter(row.action, Status.COMPLETE, text)
    row.judged_observation, row.changed = outcome.UNJUDGED, world.next_stamp()
    events = [event_of(row)]
    if before is None:
        return events
    _restore_intent(row, before)
    if before.status == Status.FAILED:
        # The failure had set the row's revision to the newest, although the row was never compared with this revision.
        row.revision = min(row.revision, world.settled_revision)
        if before.action != Action.CHECK and request.aim is Aim.OPERATION:
            events += _fail_as_before(row, before)
    return events


def _still_kept(row: Resource, request: Request) -> str:
    return row.marks.kept if row.marks is not None and request.operation not in WAKES else ""


def fail(world: World, row: Resource, request: Request, why: str, now: float) -> list[Event]:
    """End a request that has failed; return its events. The row returns to its former state."""
    text = requested.signed(request, requested.failure(request, outcome.cut(why)))
    _take_off(row, now)
    before = request.before
    if before is None or not (row.busy or row.failed):
        return _noted(row, Status.FAILED, text)
    row.enter(row.action, Status.FAILED, text)
    events = [event_of(row)]
    row.judged_observation, row.changed = outcome.UNJUDGED, world.next_stamp()
    row.acted_at = before.acted_at
    row.intent = None if before.intent is None else intent.load(before.intent)
    keep(row, before.kept)
    if before.status == Status.FAILED:
        return events + _fail_as_before(row, before)
    row.enter(Action.UPDATE, Status.COMPLETE, requested.plain(text))
    return [*events, event_of(row)]


def _take_off(row: Resource, now: float) -> None:
    put(row, None)
    row.due_at, row.updated_at = None, now


def _noted(row: Resource, status: Status, text: str) -> list[Event]:
    """Note the end of a request for which nothing was begun, as a check that leaves the row unchanged."""
    if row.action == Action.INIT or (row.failed and row.action not in UNBEGUN):
        # The row could not return to its state from a check, so it stays in this state.
        word = Action.CREATE if row.action == Action.INIT else Action.CHECK
        return [event_of(row, action=word, status=status, reason=text)]
    before = as_before(row)
    events = outcome.begin(row, Action.CHECK)
    row.enter(Action.CHECK, status, text)
    events.append(event_of(row))
    if before.status == Status.FAILED:
        return events + _fail_as_before(row, before)
    if status is Status.FAILED:
        row.enter(Action.CHECK, Status.COMPLETE, requested.plain(text))
        events.append(event_of(row))
    return events


def _restore_intent(row: Resource, before: Before) -> None:
    """Restore the former intent of a row; a verdict to leave it alone is made anew."""
    known = None if before.intent is None else intent.load(before.intent)
    row.intent = None if left_alone_for(known) else known
    if changed_of(known) and before.acted_at is None:
        row.acted_at = None  # the update was never carried out: still to do


def _fail_as_before(row: Resource, before: Before) -> list[Event]:
    """Fail a row with its former failure."""
    way = [before.action]
    if before.action not in (Action.CHECK, Action.UPDATE):
        # A row can return to a failed creation only from a check; other actions are not begun again.
        way = [Action.CHECK, *way] if before.action in (Action.CREATE, Action.ADOPT) else [Action.CHECK]
    events = []
    for action in way:
        row.enter(action, Status.FAILED, before.reason)
        events.append(event_of(row))
    return events


# -- answers -----------------------------------------------------------------------------------------------------------


def conclude(world: World, step: Step, answer: Observation | HomeostatError, now: float) -> StepOutcome:
    """Apply the answer to the row of a requested operation, and return the outcome to store."""
    row, request = step.row, first_of(step.row)
    assert request is not None, f"nothing was asked of {row.name}"
    row.updated_at = now
    if isinstance(answer, Transient | Uncertain):
        return _again(row, request, answer, now)
    if isinstance(answer, HomeostatError):
        return StepOutcome(row, fail(world, row, request, str(answer), now), whole=True)
    row.acted_at, row.due_at, row.retries = now, None, 0
    row.handle = answer.handle or row.handle
    fenced = answer.properties.get("fenced", ())
    seen = {name: value for name, value in answer.properties.items() if name not in FENCE_ANSWER}
    if answer.presence is not Presence.UNKNOWN:
        answer = replace(answer, properties=seen)
        outcome.look(world, row, answer)
    record = _fenced(row, request, fenced, answer, now) if request.phase is Phase.FENCING else None
    record = record or StepOutcome(row, advance(world, row, request, now) or [], whole=True)
    record.observation = None if answer.presence is Presence.UNKNOWN else answer
    return record


def _again(row: Resource, request: Request, error: Transient | Uncertain, now: float) -> StepOutcome:
    row.retries += 1
    row.acted_at = None
    delay_s = RETRY.delay_s(row.retries, error.retry_after_s if isinstance(error, Transient) else None)
    row.due_at = min(request.until, now + delay_s)
    row.reason = requested.signed(request, f"{requested.beginning(request)}: {outcome.cut(str(error))}")
    return StepOutcome(row)


def _fenced(row: Resource, request: Request, fenced: object, answer: Observation, now: float) -> StepOutcome:
    """Conclude a fencing request; unconfirmed fences are requested again."""
    fences = request.arguments.get("fence") or ()
    done = isinstance(fenced, list | tuple) and set(fences) <= set(fenced)
    if done or answer.presence is Presence.ABSENT:
        put(row, replace(request, arguments={**request.arguments, "fenced": True}))
    else:
        row.acted_at, row.due_at = None, min(request.until, now + FENCE_S)
    return StepOutcome(row, whole=True)


def advance(world: World, row: Resource, request: Request, now: float) -> list[Event] | None:
    """End an operation that the last observation shows as finished; return its events, None while in progress."""
    if row.acted_at is None or request.phase is not Phase.OPERATING:
        return None
    kind = type_of(row.type)
    thing = thing_of(world, row, kind)
    if thing.seen.presence is Presence.ABSENT:
        return fail(world, row, request, thing.seen.reason or "it does not exist any more", now)
    if thing.seen.presence is Presence.UNKNOWN:
        return None
    verdict = kind.judge(thing, now)
    goal = KEEPS.get(request.operation)
    word = str(thing.seen.properties.get("status", "")).lower()
    statuses = KINDS[kind_of(row.type)].statuses
    if goal is not None:
        done = word == goal
    else:
        done = request.operation in AT_ONCE or verdict.condition in (Condition.READY, Condition.DRIFTED)
    if done:
        return succeed(world, row, request, now)
    lost = verdict.condition is Condition.BROKEN and verdict.remedy is not Remedy.OPERATE and word not in KEEPS.values()
    unchanged = now >= row.acted_at + SETTLE_S and word not in statuses.busy
    if lost or unchanged:
        return fail(world, row, request, verdict.reason or f"its status is {word}", now)
    return None
