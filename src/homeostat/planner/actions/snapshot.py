"""Snapshots of whole stacks: the part of each resource. Pure.

The thing itself does not change. A snapshot is requested from its cloud, with a token that is stored first, and the
resource is done when an observation shows the snapshot complete. Nested stacks get the same request.
"""

from homeostat.model.intent import OperationIntent, adoption_of
from homeostat.model.observed import Condition, Presence
from homeostat.model.plan import SETTLED, Decision, Operate, Part, Settled, Step, event_of
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.actions import check
from homeostat.planner.names import physical_name, snapshot_token
from homeostat.planner.retry.policy import RETRY
from homeostat.planner.scope import NEVER_SEEN, thing_of
from homeostat.planner.states import snapshot_state
from homeostat.resources.registry import is_known, kind_of, type_of

GIVEN_UP = "the snapshot is given up: something else was requested of the stack"


def take(world: World, row: Resource | None, now: float) -> Decision:
    """Begin the part of a resource without an act in progress."""
    if row is None or row.action == Action.INIT or row.handle == "":
        return SETTLED
    if row.action == Action.SNAPSHOT and row.revision == world.stack.revision:
        if row.failed:
            return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        return SETTLED
    # The adoption is pending, and its data is in the intent.
    if adoption_of(row.intent) is not None:
        return SETTLED
    if kind_of(row.type) == "stack":
        return check.pass_on(world, row, snapshot_state.SNAPSHOT, now)
    if not _has_data(row):
        # Recording the action would lose the row's failure.
        return SETTLED if row.failed else _nothing_to_keep(world, row, now)
    events = outcome.begin(row, Action.SNAPSHOT)
    row.revision, row.updated_at = world.stack.revision, now
    row.acted_at = row.due_at = None
    row.attempts = row.retries = 0
    row.intent = OperationIntent(snapshot_state.SNAPSHOT, token=snapshot_token(row.key, row.revision))
    step = _request(world, row)
    step.events = events
    return step


def _has_data(row: Resource) -> bool:
    if row.external_id is not None or not is_known(row.type):
        return False
    kind = type_of(row.type)
    return kind.can_snapshot and kind.snapshot_property(kind.complete(row.properties)) != ""


def _nothing_to_keep(world: World, row: Resource, now: float) -> Settled:
    events = outcome.begin(row, Action.SNAPSHOT)
    row.enter(Action.SNAPSHOT, Status.COMPLETE, outcome.CHANGED)
    row.revision, row.updated_at = world.stack.revision, now
    return Settled(Step(row, events=[*events, event_of(row)]))


def _request(world: World, row: Resource) -> Step:
    """Request the snapshot; repeated requests have the same token and make no second snapshot."""
    row.attempts += 1
    row.acted_at = row.due_at = None
    token = snapshot_state.token_of(row)
    arguments = {"token": token, "name": physical_name(world.stack.name, row.name, row.key)}
    part = Part(token, row.name, kind_of(row.type))
    return Step(row, Operate(snapshot_state.SNAPSHOT, arguments), part=part)


def go_on(world: World, row: Resource, now: float) -> Decision:
    """Decide about a resource whose snapshot is being made."""
    # A newer revision has interrupted the snapshot of the stack.
    if row.revision != world.stack.revision:
        return _done(row, GIVEN_UP, now)
    if row.due_at is not None and row.due_at > now and row.acted_at is None:
        return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
    if kind_of(row.type) == "stack":
        return _inside(world, row, now)
    if row.acted_at is None:
        return _request(world, row)
    look = world.seen[row.key].observation if row.key in world.seen else NEVER_SEEN
    if look.presence is Presence.ABSENT:
        return _failed(world, row, snapshot_state.TOO_LATE, now)
    if look.presence is Presence.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, reason=look.reason, since=row.updated_at, key=row.key)
    return _being_made(world, row, now)


def _being_made(world: World, row: Resource, now: float) -> Decision:
    snapshot = snapshot_state.observed(world, row)
    # The cloud lost the snapshot after accepting the request, or lists late. A second request is idempotent.
    if snapshot is None:
        due_at = (row.acted_at or now) + world.listing_lag_s + RETRY.delay_s(row.attempts)
        if due_at <= now:
            return _request(world, row)
        return Waiting(row.name, Why.SNAPSHOT, (), "nothing is seen of it yet", row.updated_at, due_at, row.key)
    if snapshot.get("status") == snapshot_state.AVAILABLE:
        part = Part(snapshot_state.token_of(row), row.name, kind_of(row.type), str(snapshot["id"]))
        step = _done(row, outcome.CHANGED, now)
        step.part = part
        return step
    if snapshot.get("status") == snapshot_state.ERROR:
        fault = snapshot.get("fault") or "the cloud gives no reason"
        return _failed(world, row, f"its snapshot {snapshot['id']} failed: {fault}", now)
    return Waiting(
        row.name, Why.SNAPSHOT, (), f"its snapshot {snapshot['id']} is being made", row.updated_at, key=row.key
    )


def _inside(world: World, row: Resource, now: float) -> Decision:
    """Decide about a nested stack."""
    if row.acted_at is None:
        return Step(row, Operate(snapshot_state.SNAPSHOT, {}))
    verdict = type_of(row.type).judge(thing_of(world, row), now)
    if verdict.condition in (Condition.READY, Condition.DRIFTED):
        last = world.seen[row.key].observation.properties.get("action")
        # The nested stack itself got another request in the meantime.
        if last != Action.SNAPSHOT:
            return _failed(world, row, f"its snapshot was given up: {last} came in between", now)
        outcome.judge_at_rest(world, row, verdict)
        return Step(row, events=outcome.complete(world, row, now).events)
    if outcome.unfit(verdict):
        return _failed(world, row, verdict.reason, now)
    return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, verdict.due_at, row.key)


def _done(row: Resource, reason: str, now: float) -> Step:
    """Complete the part of a resource.

    `changed` stays, since no attribute has changed. Observations made meanwhile are judged at rest.
    """
    row.judged_observation = outcome.UNJUDGED
    row.enter(row.action, Status.COMPLETE, reason)
    row.updated_at = now
    row.intent = row.due_at = None
    return Step(row, events=[event_of(row)])


def _failed(world: World, row: Resource, reason: str, now: float) -> Step:
    record = outcome.fail(world, row, outcome.failure_text(row, reason), now)
    return Step(row, events=record.events)
