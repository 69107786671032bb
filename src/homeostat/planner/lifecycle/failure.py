"""Failed resources: whether and how they are retried (CV10, CV13). Pure."""

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.intent import adoption_of
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import Decision, Step
from homeostat.model.stack_actions import MAINTENANCE
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.actions import check
from homeostat.planner.context import Context, changed_properties
from homeostat.planner.lifecycle import adopt, heal, update
from homeostat.planner.lifecycle.create import may_exist
from homeostat.planner.policies import healing
from homeostat.planner.retry import causes
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.scope import thing_of
from homeostat.planner.states import absence
from homeostat.resources.registry import type_of


def decide(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Retry a failed resource if requested; otherwise check whether it has recovered, or may recover."""
    unseen = check.look_first(context.world, row)
    if unseen is not None:
        return unseen
    # A retry is requested for this resource, or by a newer revision than the failure's. A revision that failed early
    # requests none for a failed check: the resource was healthy before, and is healed in its former state.
    outlasts = context.failed_early and row.action == Action.CHECK
    if row.converge_requested_at is None and (outlasts or not context.is_newer(row)):
        return _without_request(context, definition, row, now)
    waiting = context.wait_if_failed(row.name)
    if waiting is not None and row.converge_requested_at is None:
        return waiting
    row.attempts = 0
    return _created_late(context, row, now) or _try_again(context, definition, row, now)


def _without_request(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Decide about a failed resource without a request for a retry.

    After a failed check it may have come back, or may still be healed (CV13). A failed creation or update is retried
    after a change of its requirements. A resource that became ready after its timeout is complete.
    """
    waiting = Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
    if definition.type != row.type:
        return waiting
    if row.handle and row.action in (Action.CHECK, Action.SNAPSHOT):
        verdict = type_of(row.type).judge(thing_of(context.world, row), now)
        if verdict.condition in (Condition.READY, Condition.DRIFTED):
            # A healthy thing does not undo the failure of its snapshot.
            return waiting if row.action == Action.SNAPSHOT else _well_again(context, row, verdict, now)
        if outcome.unfit(verdict) and verdict.remedy is not Remedy.MANUAL and check.heals(context.world, row):
            return heal.apply_verdict(context, definition, row, verdict, now)
    late = _created_late(context, row, now) if _is_at_rest(context) else None
    if late is not None:
        return late
    if not _may_succeed(context, row, now, changed=context.is_stale(definition, row)):
        return waiting
    return context.missing_requirements(definition) or _retry(context, definition, row, now)


def _retry(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Retry without a request: immediately, then at growing intervals."""
    attempts, due_at = row.attempts, _due_at(row)
    if due_at > now:
        cause = causes.cause_of(row)
        by = cause.released_by if cause is not None else ""
        return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, due_at, row.key, by=by)
    if absence.is_gone(context.world, row):
        return heal.recreate(context, definition, row, absence.verdict(context.world, row), now)
    decision = _try_again(context, definition, row, now)
    # Some retries reset the count, but the intervals have to go on growing.
    row.attempts = max(row.attempts, attempts + 1)
    return decision


def _try_again(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Retry a failed resource: in place if no data is at stake, else by a replacement."""
    if adoption_of(row.intent) is not None:
        return adopt.begin(context, definition, row, now)
    same = definition.type == row.type
    # Nothing was created, so the row can be reused. (A nested stack may exist without a handle.)
    if row.handle == "" and (same or not may_exist(row)):
        return context.acts.begin(definition, row, now)
    # A nested stack gets its desired state again instead of a replacement, so that it retries its own failed parts.
    absent = row.action == Action.CHECK and absence.is_gone(context.world, row)
    if same and type_of(row.type).heals_itself and not absent:
        return _update_again(context, definition, row, now)
    if row.action == Action.CREATE:
        # A never complete thing holds no data, but may hold a name, an address or quota that its replacement needs.
        return context.acts.delete_first(definition, row, now)
    if row.action in (Action.UPDATE, Action.SNAPSHOT, *MAINTENANCE) and same:
        return _after_update(context, definition, row, now)
    if row.action == Action.CHECK and same:
        return _after_check(context, definition, row, now)
    return context.acts.replace(definition, row, now)


def _update_again(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Send the whole desired state again to a resource that heals itself, whatever failed before."""
    try:
        return context.acts.update(context.resolve(definition, row), row, {}, now)
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now)


def _after_check(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Keep a healthy thing; replace an absent or broken one under the rules of healing."""
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    if verdict.condition is Condition.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, (), verdict.reason, row.updated_at, key=row.key)
    if verdict.condition in (Condition.READY, Condition.DRIFTED):
        return _well_again(context, row, verdict, now)
    if verdict.condition is Condition.ABSENT:
        return heal.recreate(context, definition, row, verdict, now)
    return heal.replace(context, definition, row, verdict.reason, now)


def _after_update(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Decide about a failed update: a healthy thing may hold data, and is kept (CV10, CV13).

    An update that failed before acting left the row unchanged; an update refused by the cloud is repeated.
    """
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    # A suspension or resumption that failed halfway is repaired by an operation, without a replacement.
    if row.action in MAINTENANCE and verdict.remedy is Remedy.OPERATE:
        return heal.apply_remedy(context, definition, row, verdict, now)
    # An unknown state is no reason to replace the thing.
    if verdict.condition is Condition.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, (), verdict.reason, row.updated_at, key=row.key)
    if verdict.condition is Condition.ABSENT:
        return heal.recreate(context, definition, row, verdict, now)
    if verdict.condition not in (Condition.READY, Condition.DRIFTED):
        return context.acts.replace(definition, row, now)
    try:
        want = context.resolve(definition, row)
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now)
    if changed_properties(want, row):
        return update.update_or_replace(context, want, row, now)
    if row.action == Action.SNAPSHOT:
        return _after_snapshot(context, row, verdict, now)
    # The desired state equals the row's properties, but the cloud never accepted them: the fields are in the intent.
    if row.acted_at is None:
        return context.acts.update(want, row, want.kind.complete(row.properties), now)
    if verdict.condition is Condition.DRIFTED:
        return heal.repair(context, row, verdict, now)
    return Step(row, events=outcome.complete(context.world, row, now).events)


def _after_snapshot(context: Context, row: Resource, verdict: Verdict, now: float) -> Step:
    """Complete a healthy resource of which only the snapshot failed."""
    outcome.judge_at_rest(context.world, row, verdict)
    events = outcome.begin(row, Action.UPDATE)
    row.intent = None
    row.revision = context.world.stack.revision
    return Step(row, events=[*events, *outcome.complete(context.world, row, now).events])


def _created_late(context: Context, row: Resource, now: float) -> Step | None:
    """Complete a resource whose creation timed out and has succeeded since, instead of creating a second thing."""
    verdict = check.created_late(context.world, row, now) if row.action == Action.CREATE else None
    return _well_again(context, row, verdict, now) if verdict is not None else None


def _well_again(context: Context, row: Resource, verdict: Verdict, now: float) -> Step:
    outcome.judge_at_rest(context.world, row, verdict)
    healing.unmark_lost(row)
    # The failure has set the row's revision to the newest without comparing the row: make the comparison due.
    row.revision = min(row.revision, context.world.settled_revision)
    return Step(row, events=outcome.complete(context.world, row, now).events)


def _may_succeed(context: Context, row: Resource, now: float, *, changed: bool) -> bool:
    """Return whether a failed resource of a stack at rest is worth another try.

    A vanished thing is created again. A broken thing is left to users, since a retry would replace it.

    Args:
        changed: Whether a requirement has changed since the failure.
    """
    world = context.world
    if not _is_at_rest(context) or not check.heals(world, row):
        return False
    kind = type_of(row.type)
    # `_without_request` has judged failed checks of all other things.
    checked = row.action == Action.CHECK and (kind.heals_itself or row.handle == "")
    if row.action not in (Action.CREATE, Action.UPDATE) and not checked:
        return False
    if absence.is_gone(world, row) or causes.cause_of(row) is not None:
        return True
    if not changed:
        return False
    if row.handle == "" or row.action == Action.CREATE or kind.heals_itself:
        return True
    return kind.judge(thing_of(world, row), now).condition in (Condition.READY, Condition.DRIFTED)


def _is_at_rest(context: Context) -> bool:
    """Return whether the stack has reached its newest revision, and no action is in progress."""
    return context.world.stack.status != Status.IN_PROGRESS and not context.failed_early


def _due_at(row: Resource) -> float:
    """Return the time of the next try: the first try is due at once, the next ones at growing intervals."""
    if causes.cause_of(row) is not None:
        return causes.due_at(row)
    return row.updated_at + RETRY.delay_after_s(row.attempts)
