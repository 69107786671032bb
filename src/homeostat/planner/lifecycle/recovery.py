"""Recovery of members that a health policy finds unhealthy: its actions are tried one by one. Pure (ADR 0072).

What is found is put on the row as a mark, as that of a user would be. Then, unless something holds it back, each action
of the policy is an act on the thing like any other: its intent is stored before the cloud hears of it. After each the
member has some time to be found healthy; then the next one follows. Before another thing is made in its place, what the
policy asks for is cut off, and the cloud has to confirm that.
"""

from dataclasses import replace
from typing import overload

from homeostat.model.desired import Definition
from homeostat.model.health_policy import AFTER_FENCING, ActionType, Built, Fence, HealthPolicy, Mode
from homeostat.model.intent import FENCE, OperationIntent, arguments_of, operation_of
from homeostat.model.marks import BY_HINT, NO_MARKS, RecoveryMark, UnhealthyMark
from homeostat.model.node_health import Finding, NodeHealth, ShardHealth
from homeostat.model.observed import Condition, Presence, Remedy, Verdict
from homeostat.model.plan import SETTLED, Decision, Step, Verb, event_of
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.actions import check
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import heal
from homeostat.planner.policies import health_brake, unhealthy
from homeostat.planner.retry.policy import RETRY

REPORTER = "homeostat:health-policy"
"""Reporter of the marks that health policies make."""
RECOVERED = "recovered: it is healthy again"
WELL = "it is healthy again"
UNFENCE = "unfence"
STOPPED = "stopped"
"""Status of a server that is off."""
JOINED = "it is healthy again, and what was cut off of it is joined again"
KEPT = "a user has left it so"
UNCHECKED = "no health policy holds for it any more"
STALE_S = 30.0
"""So much longer than two intervals ago a member may have been found unhealthy: after that it is looked at first."""
PAUSE_S, PAUSE_S_MAX = 60.0, 3600.0
"""Shortest and longest pause after all actions were tried in vain; it doubles."""


def decide(context: Context, definition: Definition, row: Resource, now: float) -> Decision | None:
    """Decide about a resource at rest for which a health policy may hold; None where the policy has no say."""
    health = context.world.health
    policy = health.policy_of(row.name) if health is not None else None
    mark = unhealthy.mark_of(row)
    # In a locked or suspended stack what is wrong is shown with what was found; nothing begins from it.
    if context.world.stack.held or row.external_id is not None or (mark is not None and not is_marked(row)):
        return None
    # What is cut off and out of sight is joined again once it is seen.
    concerned = mark is not None or (was_recovered(row) and not (is_cut_off(row) and _is_gone(context, row)))
    if health is None or policy is None:
        return _well(context, row, UNCHECKED, now) if concerned else None
    node = _fresh(health, policy, health.nodes.get(row.key) or _unlooked(row, mark), now)
    if row.marks is not None and row.marks.kept and _is_kept(context, row):
        return _well(context, row, KEPT, now) if concerned else None
    if node.finding is Finding.HEALTHY:
        return _well(context, row, RECOVERED if _recovery(row) else WELL, now) if concerned else None
    if mark is None:
        # What was found before the last act on it may have been mended by that.
        old = max(node.since, health.looked_at) < row.updated_at
        return None if old or node.finding is Finding.UNKNOWN else _noticed(context, row, node, now)
    if context.world.stack.status == Status.IN_PROGRESS:
        return _during_action(context, definition, row, node, policy, now)
    return _recovered(context, definition, row, node, policy, now)


def is_marked(row: Resource) -> bool:
    """Return whether a health policy has marked a row unhealthy."""
    return row.marks is not None and row.marks.unhealthy is not None and row.marks.unhealthy.reporter == REPORTER


def fails_nothing(row: Resource) -> bool:
    """Return whether the failure of a row concerns its health policy alone, and no action of its stack."""
    return (is_marked(row) or was_recovered(row)) and row.handle != ""


def was_recovered(row: Resource) -> bool:
    """Return whether a recovery of a row has begun, and its traces are still there."""
    return _recovery(row) is not None


def is_acting(row: Resource) -> bool:
    """Return whether an action of a recovery, other than making another one, is in progress on a row."""
    return row.busy and row.action != Action.CREATE and is_marked(row) and was_recovered(row)


def is_cut_off(row: Resource) -> bool:
    """Return whether something of a row is cut off."""
    recovery = _recovery(row)
    return recovery is not None and bool(recovery.fenced)


def cut_off_first(context: Context, row: Resource, reason: str, now: float) -> Decision | None:
    """Return what cuts a thing off that is to be replaced though no recovery does it; None where nothing has to be."""
    health = context.world.health
    policy = health.policy_of(row.name) if health is not None else None
    if policy is None or not row.handle or not _unfenced(row, policy) or _is_gone(context, row):
        return None
    return _fence(context, row, reason, policy, _recovery(row) or RecoveryMark(now), now)


def wait_for_predecessor(context: Context, row: Resource, waits: Waiting, now: float) -> Waiting | None:
    """Return the wait of a member made again for what it replaces to go; None where its policy lets it be made now.

    That is after `node_delete_timeout`, with `node_force_recreate`: the deletion goes on.
    """
    health, old = context.world.health, context.world.rows.get(row.replaces or "")
    policy = health.policy_of(row.name) if health is not None else None
    if policy is None or not policy.force_recreate or old is None or not is_marked(old):
        return waits
    due_at = row.updated_at + policy.delete_timeout_s
    return replace(waits, due_at=due_at) if now < due_at else None


def _fresh(health: ShardHealth, policy: HealthPolicy, node: NodeHealth, now: float) -> NodeHealth:
    """Return the health of a member; unknown where all workers were away since it was found."""
    away_s = now - max(health.looked_at, node.since)
    if node.finding is Finding.UNHEALTHY and away_s > 2 * policy.interval_s + STALE_S:
        return replace(node, finding=Finding.UNKNOWN, reason=f"{node.reason}, {away_s:.0f} s ago; no look since")
    return node


def _unlooked(row: Resource, mark: UnhealthyMark | None) -> NodeHealth:
    """Return the health of a member at which the policy that holds now has not looked yet."""
    return NodeHealth(
        Finding.UNKNOWN, row.updated_at if mark is None else mark.since, "" if mark is None else mark.reason
    )


def _noticed(context: Context, row: Resource, node: NodeHealth, now: float) -> Step:
    """Mark a member that was found unhealthy; its event says why."""
    event = unhealthy.marked(row, UnhealthyMark(node.reason, now, reporter=REPORTER))
    row.changed = context.world.next_stamp()
    return Step(Verb.RECORD, row, events=[event])


def _well(context: Context, row: Resource, reason: str, now: float) -> Decision:
    """Take the mark off a member; what was cut off of it is joined again before."""
    recovery, gone = _recovery(row), _is_gone(context, row)
    cut = _cut(row, recovery) if recovery is not None else ()
    if recovery is not None and cut and row.handle and not gone:
        return _join(context, row, recovery, cut, now)
    row.marks = replace(row.marks or NO_MARKS, recovery=recovery if gone and is_cut_off(row) else None)
    if row.failed:
        events = []
        if row.handle and row.action != Action.CHECK:
            # An action of the recovery has failed, and the thing is well all the same.
            row.enter(Action.CHECK, Status.FAILED, row.reason)
            events.append(event_of(row))
        events.append(unhealthy.unmarked(row, reason, context.world.settled_revision, now))
    else:
        events = outcome.begin(row, Action.CHECK, reason)
        unhealthy.forget(row)
        events += outcome.complete(context.world, row, now, reason).events
    row.attempts = 0
    row.changed = context.world.next_stamp()
    return Step(Verb.RECORD, row, events=events)


def _cut(row: Resource, recovery: RecoveryMark) -> tuple[str, ...]:
    """Return what is cut off of a thing, or may be: a fence that is not confirmed may have had its effect."""
    asked = arguments_of(row.intent).get("what", ()) if operation_of(row.intent) == FENCE else ()
    return tuple(dict.fromkeys((*recovery.fenced, *map(str, asked))))


def _join(context: Context, row: Resource, recovery: RecoveryMark, cut: tuple[str, ...], now: float) -> Decision:
    """Join again what was cut off of a member: a server that was powered off is started first."""
    left: tuple[str, ...] = ()
    if Fence.COMPUTE in cut and _status(context, row) == STOPPED:
        step = Step(Verb.OPERATE, row, operation="start")
        left = tuple(each for each in cut if each != Fence.COMPUTE)
    else:
        step = Step(Verb.OPERATE, row, operation=UNFENCE, arguments={"what": list(cut)})
    decision = heal.heal(context, row, Verdict(Condition.BROKEN, JOINED, Remedy.OPERATE), now, step)
    if decision is step:
        _keep(row, replace(recovery, fenced=left))
    return decision


def _during_action(
    context: Context, definition: Definition, row: Resource, node: NodeHealth, policy: HealthPolicy, now: float
) -> Decision:
    """Have an action of the stack replace a member that it has to change; recover any other, and do not wait for it."""
    if context.unsettled and not context.is_halted and context.differs(definition, row):
        return _recreate(context, definition, row, node, policy, now)
    decision = _recovered(context, definition, row, node, policy, now)
    return decision if isinstance(decision, Step) else SETTLED


def _recovered(
    context: Context, definition: Definition, row: Resource, node: NodeHealth, policy: HealthPolicy, now: float
) -> Decision:
    if node.finding is Finding.UNKNOWN:
        return Waiting(row.name, Why.UNSEEN, (), node.reason, row.updated_at, key=row.key)
    return check.look_first(context.world, row) or _recover(context, definition, row, node, policy, now)


def _recover(
    context: Context, definition: Definition, row: Resource, node: NodeHealth, policy: HealthPolicy, now: float
) -> Decision:
    recovery = _fitting(_recovery(row), policy)
    if recovery is None:
        first = BY_HINT if policy.by_hint and node.hint else 0
        return _begin(context, definition, row, node, policy, RecoveryMark(now, first), now)
    if recovery.acted_at is not None:
        waiting = _verified(context, row, node, policy, recovery, now)
        if waiting is not None:
            return waiting
        recovery = _next(recovery, policy, now)
        if recovery.step == 0:
            # Stored at once: the pause before another round counts from now.
            _keep(row, recovery)
            return Step(Verb.RECORD, row)
    if recovery.rounds and recovery.step == 0:
        due_at = recovery.begun_at + min(PAUSE_S * 2 ** (recovery.rounds - 1), PAUSE_S_MAX)
        if due_at > now and row.asked_at is None:
            said = f"{node.reason}; tried in vain: {', '.join(recovery.tried)}"
            return Waiting(row.name, Why.BACKOFF, (), said, row.updated_at, due_at, row.key)
        return _begin(context, definition, row, node, policy, recovery, now)
    return _act(context, definition, row, node, policy, recovery, now)


def _begin(
    context: Context,
    definition: Definition,
    row: Resource,
    node: NodeHealth,
    policy: HealthPolicy,
    recovery: RecoveryMark,
    now: float,
) -> Decision:
    """Begin a recovery, or another round of it, unless something holds it back; count it among those of the hour."""
    waits = _waits(context, row, node, policy, now)
    if waits is not None:
        return waits
    marks = row.marks
    decision = _act(context, definition, row, node, policy, recovery, now)
    if isinstance(decision, Step) and decision.recovery:
        decision.begins_recovery = True
        health = _health(context)
        context.world.health = replace(health, recovered=health.recovered + 1)
    else:
        row.marks = marks  # it has yet to begin
    return decision


def _waits(context: Context, row: Resource, node: NodeHealth, policy: HealthPolicy, now: float) -> Waiting | None:
    """Return why the recovery of a member does not begin; None where it may. A user's consent goes before all."""
    if row.asked_at is not None:
        return None
    if policy.mode is not Mode.AUTOMATIC:
        why = Why.OBSERVED if policy.mode is Mode.OBSERVE else Why.PROPOSED
        names = " → ".join(each.name for each in policy.actions)
        return Waiting(row.name, why, (), f"{node.reason}; would be tried: {names}", row.updated_at, key=row.key)
    health = _health(context)
    return health_brake.held_back(policy, health, row, node.reason, now)


def _verified(
    context: Context, row: Resource, node: NodeHealth, policy: HealthPolicy, recovery: RecoveryMark, now: float
) -> Waiting | None:
    """Return the wait for a look that finds a member healthy after an action; None once its time is over."""
    if row.failed and row.action != Action.CHECK:
        return None  # the action itself has failed
    ends_at = row.updated_at + policy.verify_s
    if now >= ends_at and _health(context).looked_at > row.updated_at:
        return None
    said = f"{_name_of(policy, recovery.step, node)} is done; {node.reason}"
    return Waiting(row.name, Why.VERIFYING, (), said, row.updated_at, max(ends_at, now + 1.0), row.key)


def _next(recovery: RecoveryMark, policy: HealthPolicy, now: float) -> RecoveryMark:
    """Return the mark for the next action; after the last one, for another round from the first."""
    name = "the hint" if recovery.step == BY_HINT else policy.actions[recovery.step].name
    tried = (*recovery.tried, name)[-len(policy.actions) - 1 :]
    if recovery.step + 1 < len(policy.actions):
        return replace(recovery, step=recovery.step + 1, acted_at=None, tried=tried)
    return replace(recovery, step=0, acted_at=None, tried=tried, rounds=recovery.rounds + 1, begun_at=now)


def _act(
    context: Context,
    definition: Definition,
    row: Resource,
    node: NodeHealth,
    policy: HealthPolicy,
    recovery: RecoveryMark,
    now: float,
) -> Decision:
    """Begin the action of a step, or what comes before it."""
    _keep(row, recovery)
    name = _name_of(policy, recovery.step, node)
    if name != Built.RECREATE and _is_gone(context, row):
        # No operation brings back what does not exist: a later action may.
        later = [place for place, each in enumerate(policy.actions) if each.name == Built.RECREATE]
        if not later:
            said = f"{node.reason}; none of its actions makes another one: add RECREATE"
            return Waiting(row.name, Why.FAILED, (), said, row.updated_at, key=row.key)
        _keep(row, replace(recovery, step=later[0]))
        return _recreate(context, definition, row, node, policy, now)
    if name == Built.RECREATE:
        return _recreate(context, definition, row, node, policy, now)
    if name in AFTER_FENCING and _unfenced(row, policy):
        return _fence(context, row, node.reason, policy, recovery, now)
    return _operate(context, row, node, policy, recovery, now)


def _operate(
    context: Context, row: Resource, node: NodeHealth, policy: HealthPolicy, recovery: RecoveryMark, now: float
) -> Decision:
    operation, arguments = _operation(policy, recovery.step, node)
    name = _name_of(policy, recovery.step, node)
    if recovery.step != BY_HINT and policy.actions[recovery.step].type is not ActionType.BUILT_IN:
        # Repeated, it is known by that again.
        arguments["token"] = f"{row.key}-{round(recovery.begun_at * 1000)}-{recovery.rounds}-{recovery.step}"
    if name == Built.EVACUATE:
        # Repeated after a lost answer, it must not move once more.
        arguments["from"] = _host(context, row)
    step = Step(Verb.OPERATE, row, operation=operation, arguments=arguments)
    verdict = Verdict(Condition.BROKEN, f"{node.reason}; {name}", Remedy.OPERATE)
    decision = heal.heal(context, row, verdict, now, step)
    if isinstance(decision, Step) and row.busy:
        # It may run by it: what is made in its place later waits until it is cut off once more.
        fenced = tuple(each for each in recovery.fenced if each != Fence.COMPUTE)
        _keep(row, replace(recovery, acted_at=now, fenced=fenced))
        decision.recovery = name
    return decision


def _operation(policy: HealthPolicy, step: int, node: NodeHealth) -> tuple[str, dict[str, object]]:
    """Return the operation of the cloud port for a step, and its arguments."""
    if step == BY_HINT:
        return node.hint, {}
    action = policy.actions[step]
    if action.type is ActionType.BUILT_IN:
        return action.name.lower(), {name: value for name, value in action.params.items() if value is not None}
    # What it is called with is read from the policy then: it may hold secrets.
    return action.type.lower(), {"step": step, "name": action.name}


def _name_of(policy: HealthPolicy, step: int, node: NodeHealth) -> str:
    return node.hint.upper() or "the hint" if step == BY_HINT else policy.actions[step].name


def _recreate(
    context: Context, definition: Definition, row: Resource, node: NodeHealth, policy: HealthPolicy, now: float
) -> Decision:
    """Make another thing in the place of an unhealthy one, once that is cut off as the policy asks."""
    recovery = _recovery(row) or RecoveryMark(now)
    if not row.handle:
        return context.halted(row.name) or context.acts.replace(definition, row, now, node.reason)
    if _unfenced(row, policy) and not _is_gone(context, row):
        return _fence(context, row, node.reason, policy, recovery, now)
    return _make_another(context, definition, row, node, policy, recovery, now)


def _make_another(
    context: Context,
    definition: Definition,
    row: Resource,
    node: NodeHealth,
    policy: HealthPolicy,
    recovery: RecoveryMark,
    now: float,
) -> Decision:
    gone = _is_gone(context, row)
    verdict = Verdict(Condition.ABSENT if gone else Condition.BROKEN, node.reason, Remedy.RECREATE)
    if policy.quarantine and not gone:
        stopped = context.gates.held_back(row, node.reason, now, alive=True)
        if stopped is not None:
            return stopped
        step = context.acts.replace(definition, row, now, f"it is kept, cut off: {node.reason}")
        row.deletion_policy = DeletionPolicy.RETAIN
        context.gates.begin_healing(step)
        step.recovery = Built.RECREATE.value
        return step
    _keep(row, replace(recovery, acted_at=now))
    decision = heal.recreate(context, definition, row, verdict, now)
    if isinstance(decision, Step) and decision.row is not row:
        decision.recovery = Built.RECREATE.value
    else:
        _keep(row, recovery)
    return decision


# -- fencing -------------------------------------------------------------------------------------------------------


def _fence(
    context: Context, row: Resource, reason: str, policy: HealthPolicy, recovery: RecoveryMark, now: float
) -> Decision:
    """Begin to cut a thing off; it stays in progress until the cloud confirms that."""
    stopped = context.gates.held_back(row, reason, now, alive=True)
    if stopped is not None:
        return stopped
    due_at = row.updated_at + RETRY.delay_after_s(row.attempts)
    if row.attempts and due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), f"{reason}; {row.reason}", row.updated_at, due_at, row.key)
    what = [each.value for each in policy.fencing]
    events = outcome.begin(row, Action.UPDATE, f"it is cut off before another one is made: {', '.join(what)}")
    row.intent = OperationIntent(FENCE, arguments={"what": what})
    row.acted_at = row.due_at = None
    row.retries, row.attempts, row.updated_at = 0, row.attempts + 1, now
    _keep(row, recovery)
    step = Step(Verb.OPERATE, row, operation=FENCE, arguments={"what": what}, events=events, recovery=FENCE)
    context.gates.begin_healing(step)
    return step


def is_fencing(row: Resource) -> bool:
    """Return whether a row in progress is being cut off."""
    return operation_of(row.intent) == FENCE


def go_on(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Decide about a thing that is being cut off: ask again, wait, or make another one."""
    stack, health, recovery = context.world.stack, context.world.health, _recovery(row)
    asked = [str(each) for each in arguments_of(row.intent).get("what", ())]
    missing = [each for each in asked if recovery is None or each not in recovery.fenced]
    # What does not exist need not be cut off; that is believed by a second look alone.
    if not missing or _is_gone(context, row):
        policy = health.policy_of(row.name) if health is not None else None
        node = health.nodes.get(row.key) if health is not None else None
        held = stack.held or stack.maintained or not is_marked(row)
        # It may have been found well meanwhile: then it is joined again.
        well = node is not None and node.finding is Finding.HEALTHY
        said = f"it is cut off: {', '.join(asked)}" if not missing else f"it is gone, and was to be cut off: {row.reason}"
        if policy is None or node is None or recovery is None or held or well:
            # It is found unhealthy again, where a policy holds for it, and the recovery goes on then; what a user has
            # marked is replaced next.
            return context.acts.fail(row, said, now, Action.CHECK)
        recovery = _fitting(recovery, policy)
        if _name_of(policy, recovery.step, node) == Built.EVACUATE:
            if missing:
                return context.acts.fail(row, said, now, Action.CHECK)
            return _operate(context, row, node, policy, recovery, now)
        return _make_another(context, definition, row, node, policy, recovery, now)
    if row.acted_at is None and (row.due_at is None or row.due_at <= now):
        return Step(Verb.OPERATE, row, row.reason, operation=FENCE, arguments=arguments_of(row.intent))
    said = f"not confirmed: {', '.join(missing)}"
    return Waiting(row.name, Why.FENCING, (), said, row.updated_at, row.due_at, row.key)


# -- parts -----------------------------------------------------------------------------------------------------------


def _recovery(row: Resource) -> RecoveryMark | None:
    return row.marks.recovery if row.marks is not None else None


@overload
def _fitting(recovery: RecoveryMark, policy: HealthPolicy) -> RecoveryMark: ...
@overload
def _fitting(recovery: RecoveryMark | None, policy: HealthPolicy) -> RecoveryMark | None: ...
def _fitting(recovery: RecoveryMark | None, policy: HealthPolicy) -> RecoveryMark | None:
    """Return the mark of a recovery; from the first action on where another policy, with more of them, has begun it."""
    if recovery is None or recovery.step < len(policy.actions):
        return recovery
    return replace(recovery, step=0, acted_at=None, tried=())


def _unfenced(row: Resource, policy: HealthPolicy) -> list[str]:
    """Return what has yet to be cut off."""
    recovery = _recovery(row)
    return [each for each in policy.fencing if recovery is None or each not in recovery.fenced]


def _keep(row: Resource, recovery: RecoveryMark) -> None:
    row.marks = replace(row.marks or NO_MARKS, recovery=recovery)


def _health(context: Context) -> ShardHealth:
    if context.world.health is None:
        raise ValueError("no health policy holds for this shard")
    return context.world.health


def _host(context: Context, row: Resource) -> str:
    seen = context.world.seen.get(row.key)
    return "" if seen is None else str(seen.observation.properties.get("host") or "")


def _is_kept(context: Context, row: Resource) -> bool:
    """Return whether a thing is as an operation that a user asked for has left it."""
    return row.marks is not None and _status(context, row) == row.marks.kept


def _status(context: Context, row: Resource) -> str | None:
    seen = context.world.seen.get(row.key)
    return None if seen is None else seen.observation.properties.get("status")


def _is_gone(context: Context, row: Resource) -> bool:
    seen = context.world.seen.get(row.key)
    return seen is not None and seen.observation.presence is Presence.ABSENT
