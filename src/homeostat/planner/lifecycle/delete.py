"""Deletion of resources that should not exist, as their deletion policies say (CV12, CV14). Pure."""

from homeostat.model.intent import OperationIntent, SnapshotMade
from homeostat.model.observed import Condition, Presence, Remedy
from homeostat.model.plan import (
    DELETE,
    FIND,
    OBSERVE,
    Act,
    DeleteWithParts,
    Event,
    Operate,
    Release,
    Step,
    StepOutcome,
    event_of,
)
from homeostat.model.stack_actions import LOCKED
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome, specs
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import cascade, create, hooks
from homeostat.planner.lifecycle.create import may_exist
from homeostat.planner.lifecycle.deletion_policy import is_kept, policy_of
from homeostat.planner.names import physical_name, token
from homeostat.planner.policies import draining
from homeostat.planner.policies.healing import is_lost
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.scope import NEVER_SEEN, thing_of
from homeostat.planner.states import absence, maintenance_state, snapshot_state
from homeostat.resources.missing import unknown
from homeostat.resources.registry import is_known, type_of
from homeostat.templates.registry import POST_DELETE, PRE_DELETE

RETAINED = "kept, as its deletion policy says"
RELEASED = "kept: its stack lets go of it as it is"
REPLACED = "it was not found, and another was made in its place"
RETAINED_AFTER_RETURN = (
    "kept, since it came back after another was made in its place: delete it yourself if you do not need it"
)


def decide(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Decide about an unused leftover (CV12)."""
    if is_kept(context, row):
        # A row stopped at its last hook: its thing is deleted, and the event was sent.
        deleted = row.deleting and row.status == Status.COMPLETE
        events = [] if deleted else [event_of(row, action=Action.DELETE, status=Status.COMPLETE, reason=RELEASED)]
        release = Release(kept_token=row.token, retained="" if deleted else row.handle, reason=RELEASED)
        return Step(row, events=events, removed=True, release=release)
    overtaken = hooks.interrupted(context.world, row)
    if overtaken is not None:
        return overtaken
    policy = policy_of(context, row)
    if policy != row.deletion_policy:
        # Another policy may lead to another act, so the backoff of the last act does not count.
        row.deletion_policy, row.due_at = policy, None
    if row.busy and row.due_at is not None and row.due_at > now and row.acted_at is None:
        return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
    if row.deleting:
        return _continue(context, row, now)
    # An unanswered creation may have made a thing: find out before the row is removed.
    if row.busy and row.action in (Action.CREATE, Action.ADOPT) and row.acted_at is None:
        return create.find(context, row, now) if row.token else _remove_row(context, row, outcome.CHANGED)
    if is_lost(row) and _is_wanted(context, row):
        return _decide_lost(context, row, now)
    drained = None if _is_retained(row) else draining.drain(context, row, now)
    return drained or _stop_at_hook(context, row, PRE_DELETE, now) or _begin(context, row, now)


def _is_wanted(context: Context, row: Resource) -> bool:
    return row.name in context.world.definitions and context.world.stack.action != Action.DELETE


def _decide_lost(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Decide about a row whose thing was absent, and whose replacement is done.

    The thing is looked for a last time, and never deleted: if it came back it may hold data (ADR 0045).
    """
    if row.key not in context.world.looked:
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.UNSEEN, (), REPLACED, row.updated_at, row.due_at, row.key)
        return Step(row, OBSERVE)
    successor = context.world.rows.get(row.replaced_by or "")
    # The handle of a thing identified by a name, or by the things it joins, comes again: the look saw the replacement.
    same = successor is not None and successor.handle == row.handle
    exists = context.world.seen[row.key].observation.present and not same
    return _remove_row(context, row, RETAINED_AFTER_RETURN if exists else REPLACED, stays=exists)


def _stop_at_hook(context: Context, row: Resource, hook: str, now: float) -> Step | Waiting | None:
    """Stop at a hook of the row's deletion, unless its thing was never created."""
    stopped = row.action != Action.INIT and hooks.stops_deletion(row, hook)
    return hooks.stop(context.world, row, hook, now) if stopped else None


def _begin(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Begin or repeat the act of the deletion policy; unlock a thing locked by the stack first."""
    if maintenance_state.has_mark(row, LOCKED) and may_exist(row) and is_known(row.type):
        return _unlock(context, row, now)
    if _is_retained(row):
        return _retain(context, row)
    if not may_exist(row):
        return _remove_row(context, row, outcome.CHANGED)
    if not is_known(row.type):
        return _give_up(context, row, now)
    if snapshot_state.needed(row, row.deletion_policy):
        return _request_snapshot(context, row, now)
    if cascade.has_lost_its_whole(context.world, row):
        step = _find_gone(context, row, now)
        if step is not None:
            return step
    return _request_deletion(context, row, now)


def _find_gone(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Look for a part whose whole is deleted, and remove its row if absent; None if the part still exists.

    Looks are bulk requests, one for all parts of a kind; deletions would be one request each.
    """
    if row.key not in context.world.looked:
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.UNSEEN, (), row.reason, row.updated_at, row.due_at, row.key)
        return Step(row, OBSERVE)
    if context.world.seen[row.key].observation.presence is not Presence.ABSENT:
        return None
    return _record_removal(row, outcome.not_found(context.world, row))


def _retain(context: Context, row: Resource) -> Step:
    """Retain the thing, and remove its row; look for an unknown thing first, so that the event can name it."""
    if row.handle == "" and may_exist(row):
        return Step(row, FIND)
    return _remove_row(context, row, RETAINED, stays=True)


def _unlock(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Unlock a thing before its deletion, after locking or unlocking the stack has failed."""
    kind = type_of(row.type)
    method = kind.maintenance_method(thing_of(context.world, row, kind), Action.UNLOCK)
    if method is None:
        # The type does not support unlocking (any more).
        row.marks = maintenance_state.without_mark(row, Action.UNLOCK)
        return _begin(context, row, now)
    act = specs.maintenance_act(context, row, method)
    events = _begin_deletion(row, maintenance_state.UNLOCK_FIRST)
    row.intent = OperationIntent(maintenance_state.UNLOCK)
    _mark_requested(context, row, now)
    return Step(row, act, events)


def _give_up(context: Context, row: Resource, now: float) -> Step:
    """Fail the deletion of a thing whose type is not known any more; release the thing at the next request."""
    if row.deleting and row.failed:
        return _remove_row(context, row, f"{row.handle} is left as it is: its type {row.type} is not known any more")
    reason = f"{unknown(row.type)}, or delete {row.handle} yourself and delete it again: then it is released"
    begin_events = outcome.begin(row, Action.DELETE)
    step = context.acts.fail(row, reason, now)
    step.events = [*begin_events, *step.events]
    return step


def _continue(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Continue a deletion that has begun; release the thing at once if a newer revision retains it (CV14)."""
    if row.status == Status.COMPLETE:
        last = _stop_at_hook(context, row, POST_DELETE, now)
        return last or Step(row, removed=True)
    if _is_retained(row):
        return _retain(context, row)
    if row.failed:
        # No newer revision has requested the deletion again.
        if row.revision == context.world.stack.revision or not context.unsettled:
            waiting = Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
            return _remove_if_gone(context, row, now) or _release_healing(context, row) or waiting
        return _begin(context, row, now)
    # Do not wait for a requested snapshot if the policy has changed.
    if snapshot_state.deletion_token(row) and not snapshot_state.needed(row, row.deletion_policy):
        return _request_deletion(context, row, now)
    if row.acted_at is None:
        # The outcome of the last request is unknown. Deletion, unlocking and snapshot are all safe to repeat.
        return _request_deletion(context, row, now) if snapshot_state.snapshot_id(row) else _begin(context, row, now)
    return (
        _await_snapshot(context, row, now) if snapshot_state.deletion_token(row) else _await_absence(context, row, now)
    )


def _remove_if_gone(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Remove the row of a thing whose deletion failed, if the thing does not exist any more."""
    if not absence.is_gone(context.world, row):
        return None
    return _look_once_more(context, row, now) or _record_removal(row, outcome.not_found(context.world, row))


def _release_healing(context: Context, row: Resource) -> Step | None:
    """Remove the healing mark of a replacement that waits for a failed deletion.

    The replacement cannot be created for now, and must not use up the limit on healing.
    """
    successor = context.world.rows.get(row.replaced_by or "")
    if successor is None or not outcome.is_being_healed(successor):
        return None
    outcome.end_healing(successor)
    return Step(row, also=[successor])


def _await_absence(context: Context, row: Resource, now: float) -> Step | Waiting:
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    if verdict.condition is Condition.ABSENT:
        return _remove_row(context, row, snapshot_state.end_reason(row, outcome.CHANGED))
    if verdict.remedy is Remedy.MANUAL and row.revision < context.world.stack.revision:
        # A failure for an earlier revision.
        return _begin(context, row, now)
    if verdict.remedy is Remedy.MANUAL:
        return context.acts.fail(row, verdict.reason, now)
    if verdict.condition is Condition.BROKEN and cascade.part_kinds(row):
        return _repeat_deletion(context, row, verdict.reason, now)
    return Waiting(row.name, Why.BUILDING, (), "it is being deleted", row.updated_at, verdict.due_at, row.key)


def _repeat_deletion(context: Context, row: Resource, reason: str, now: float) -> Step | Waiting:
    """Repeat the deletion of a load balancer in ERROR, a state in which only deletions are accepted."""
    due_at = (row.acted_at or now) + RETRY.delay_s(row.attempts + 1)
    if due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), reason, row.updated_at, due_at, row.key)
    row.attempts += 1
    return _request_deletion(context, row, now)


def _remove_row(context: Context, row: Resource, reason: str, *, stays: bool = False) -> Step:
    handle = row.handle if stays else ""
    return _record_removal(row, outcome.removed(context.world, row, reason), retained=handle)


def _record_removal(row: Resource, record: StepOutcome, *, retained: str = "") -> Step:
    release = Release(record.orphan_token, retained=retained, reason=record.events[0].reason)
    return Step(row, events=record.events, removed=record.removed, release=release)


def _request_deletion(context: Context, row: Resource, now: float) -> Step:
    """Intend the deletion of a thing, together with its parts in a cascade."""
    parts, inside = context.parts.get(row.key, {}), row.key in context.inside
    act: Act = DeleteWithParts(parts, inside) if parts or inside else DELETE
    # A snapshot counts only for the deletion it was made for; a deletion after a failure makes a new snapshot.
    if not snapshot_state.snapshot_id(row) or row.failed:
        row.intent = None
    events = _begin_deletion(row, snapshot_state.end_reason(row, outcome.CHANGED))
    _mark_requested(context, row, now)
    return Step(row, act, events)


def _begin_deletion(row: Resource, reason: str) -> list[Event]:
    """Begin the deletion, or continue it; only the beginning is an event."""
    events = outcome.begin(row, Action.DELETE, reason)
    if events:
        row.attempts = row.retries = 0
    return events


def _mark_requested(context: Context, row: Resource, now: float) -> None:
    row.revision = context.world.stack.revision
    row.acted_at = row.due_at = None
    row.updated_at = now


def _request_snapshot(context: Context, row: Resource, now: float) -> Step:
    """Intend the snapshot; repeat an unanswered request under the same token, so that it is not made twice."""
    snapshot_token = snapshot_state.deletion_token(row)
    snapshot = snapshot_state.observed(context.world, row) if snapshot_token else None
    # After a failed deletion a complete or failed snapshot does not count: the thing may have been written to since.
    spent = snapshot is not None and snapshot.get("status") != snapshot_state.CREATING
    is_repeated = bool(snapshot_token) and not (row.failed and spent)
    events = _begin_deletion(row, snapshot_state.SNAPSHOT_FIRST)
    if not is_repeated:
        row.resolved = context.world.next_stamp()
        snapshot_token = token(row.key, row.resolved)
    row.intent = OperationIntent(snapshot_state.SNAPSHOT, token=snapshot_token)
    arguments = {"token": snapshot_token, "name": physical_name(context.world.stack.name, row.name, row.key)}
    row.attempts += 1
    _mark_requested(context, row, now)
    return Step(row, Operate(snapshot_state.SNAPSHOT, arguments), events)


def _await_snapshot(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Wait for a requested snapshot: delete the thing after its completion, keep the thing if the snapshot fails."""
    look = context.world.seen[row.key].observation if row.key in context.world.seen else NEVER_SEEN
    if look.presence is Presence.ABSENT:
        return _look_once_more(context, row, now) or _remove_row(context, row, snapshot_state.TOO_LATE)
    if look.presence is Presence.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, reason=look.reason, since=row.updated_at, key=row.key)
    snapshot = snapshot_state.observed(context.world, row)
    if snapshot is None:
        return _repeat_snapshot(context, row, now)
    if snapshot.get("status") == snapshot_state.AVAILABLE:
        row.intent = SnapshotMade(snapshot["id"])
        return _request_deletion(context, row, now)
    if snapshot.get("status") == snapshot_state.ERROR:
        reason = f"its snapshot {snapshot['id']} failed: {snapshot.get('fault') or 'the cloud gives no reason'}"
        return context.acts.fail(row, f"{reason}. {snapshot_state.WAY_OUT}", now)
    reason = f"its snapshot {snapshot['id']} is being made"
    return Waiting(row.name, Why.SNAPSHOT, (), reason, row.updated_at, key=row.key)


def _look_once_more(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Look once more for a missing thing; None if this was done.

    A single look may be wrong, and would leave the thing behind, with its data.
    """
    if row.key in context.world.looked or not outcome.is_looked_for(row):
        return None
    missed_at = context.world.seen[row.key].observation.seen_at
    due_at = row.due_at or missed_at + max(context.world.second_look_s, context.world.listing_lag_s)
    # A first look in the future comes from another machine's clock: do not wait then.
    if missed_at <= now < due_at:
        return Waiting(row.name, Why.UNSEEN, (), row.reason, row.updated_at, due_at, row.key)
    return Step(row, OBSERVE)


def _repeat_snapshot(context: Context, row: Resource, now: float) -> Step | Waiting:
    """Repeat the request for a snapshot that is not listed: the request was lost, or the cloud lists late."""
    due_at = (row.acted_at or now) + context.world.listing_lag_s + RETRY.delay_s(row.attempts)
    if due_at > now:
        return Waiting(row.name, Why.SNAPSHOT, (), "nothing is seen of it yet", row.updated_at, due_at, row.key)
    return _request_snapshot(context, row, now)


def _is_retained(row: Resource) -> bool:
    """Return whether the thing is kept: by policy, or since its type does not support the snapshot of its policy."""
    if row.deletion_policy == DeletionPolicy.SNAPSHOT:
        return not type_of(row.type).can_snapshot
    return row.deletion_policy != DeletionPolicy.DELETE
