"""Recovery of members that a health policy finds unhealthy: its actions are tried one by one. Pure (ADR 0072).

The finding marks the row, as a user's mark would. Unless the brake postpones it, each action of the policy is then an
act on the thing, with its intent stored before the request. After an action the member has some time to become healthy
before the next action. Before a replacement is created, the member is fenced as the policy asks, and the cloud has to
confirm the fence.
"""

from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.health_policy import AFTER_FENCING, ActionType, Built, Fence, HealthPolicy, Mode
from homeostat.model.intent import FENCE, OperationIntent, arguments_of
from homeostat.model.marks import BY_HINT, NO_MARKS, RecoveryMark, UnhealthyMark
from homeostat.model.node_health import Finding, NodeHealth, RecoveryAction, ShardHealth, StartedRecovery
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import SETTLED, Decision, Operate, Step, event_of
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.actions import check
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import heal
from homeostat.planner.lifecycle.create import may_exist
from homeostat.planner.lifecycle.recovery_state import (
    REPORTER,
    Case,
    fences_of,
    fit_to_policy,
    host,
    is_fenced,
    is_gone,
    is_host_down,
    is_kept,
    is_marked,
    keep,
    new_recovery,
    recovery_of,
    status,
    unfenced,
    was_recovered,
)
from homeostat.planner.policies import detection, health_brake, reported, unhealthy
from homeostat.planner.policies.incidents import incident_of
from homeostat.planner.retry.policy import RETRY

RECOVERED = "recovered: it is healthy again"
WELL = "it is healthy again"
UNFENCE = "unfence"
STOPPED = "stopped"
"""Status of a server that is off."""
JOINED = "it is healthy again, and what was cut off of it is joined again"
KEPT = "a user has left it so"
UNCHECKED = "no health policy holds for it any more"
PAUSE_S, PAUSE_S_MAX = 60.0, 3600.0
"""Shortest and longest pause after all actions have failed; the pause doubles."""


def decide(context: Context, definition: Definition, row: Resource, now: float) -> Decision | None:
    """Decide about a resource at rest with or without a health policy; None if the policy has no say."""
    health = context.world.health
    policy = health.policy_of(row.name) if health is not None else None
    mark = unhealthy.mark_of(row)
    by_person = mark is not None and not is_marked(row)
    # In a locked or suspended stack findings are only shown; nothing begins.
    if context.world.stack.frozen or row.external_id is not None or (by_person and not _is_verdict(context, row, now)):
        return None
    # A fenced and absent thing is unfenced after it reappears.
    concerned = mark is not None or (was_recovered(row) and not (is_fenced(row) and is_gone(context, row)))
    if health is None or policy is None:
        return _well(context, row, UNCHECKED, now) if concerned else None
    if health.paused and row.converge_requested_at is None:
        return _paused(context, definition, row, health.paused, now) if concerned else None
    node = _fresh(health, policy, health.nodes.get(row.key) or _unlooked(row, mark), now)
    if by_person:
        return _reported(Case(context, definition, row, node, policy, now))
    if row.marks is not None and row.marks.kept and is_kept(context, row):
        return _well(context, row, KEPT, now) if concerned else None
    if node.finding is Finding.HEALTHY:
        return _well(context, row, RECOVERED if recovery_of(row) else WELL, now) if concerned else None
    if mark is None:
        # The last act may have repaired an older finding.
        is_outdated = max(node.since, health.looked_at) < row.updated_at
        # The newest look was healthy, but several in a row are needed.
        failing = [detected for detected in node.detected if detected.finding is Finding.UNHEALTHY]
        is_better = bool(failing) and all(detected.successes > 0 for detected in failing)
        return None if is_outdated or is_better or node.finding is Finding.UNKNOWN else _mark(context, row, node, now)
    case = Case(context, definition, row, node, policy, now)
    return _during_action(case) if context.world.stack.status == Status.IN_PROGRESS else _recovered(case)


def _paused(context: Context, definition: Definition, row: Resource, why: str, now: float) -> Decision:
    """Decide about an unhealthy member while health checks are off: no recovery begins or continues."""
    if context.world.stack.status == Status.IN_PROGRESS:
        if not (context.unsettled and not context.failed_early and context.differs(definition, row)):
            return SETTLED
        # The stack's action replaces the member, after the same fence.
        health = _health(context)
        policy = health.policy_of(row.name)
        if policy is not None:
            return _recreate(Case(context, definition, row, _unlooked(row, unhealthy.mark_of(row)), policy, now))
    due_at = now + health_brake.EXAMINED_S
    return Waiting(row.name, Why.POSTPONED, (), f"{row.reason}; {why}", row.updated_at, due_at, row.key)


def _is_verdict(context: Context, row: Resource, now: float) -> bool:
    """Return whether a health policy acts on a user's mark; during an update the update replaces the member."""
    health, stack = context.world.health, context.world.stack
    holds = health is not None and health.policy_of(row.name) is not None
    updated = stack.status == Status.IN_PROGRESS or (context.is_newer(row) and not context.failed_early)
    return holds and not updated and reported.report_of(row.marks, now) is not None


def _reported(case: Case) -> Decision:
    """Recover a member marked by a user at once; later looks show whether the recovery helped."""
    row, health = case.row, _health(case.context)
    if not reported.is_answered(row.marks):
        return _recovered(replace(case, node=reported.with_report(case.node, row.marks, case.now)))
    unlooked = health.looked_at <= row.updated_at and not (row.failed and row.action != Action.CHECK)
    if unlooked or (case.node.finding is Finding.HEALTHY and case.node.is_doubted):
        due_at = case.now + health_brake.EXAMINED_S
        return Waiting(row.name, Why.VERIFYING, (), case.node.reason, row.updated_at, due_at, row.key)
    if case.node.finding is Finding.HEALTHY or not case.policy.detections:
        return _well(case.context, row, RECOVERED, case.now)
    return _recovered(case)


def fence_first(context: Context, row: Resource, reason: str, now: float) -> Decision | None:
    """Return the fencing of a thing to be replaced outside of a recovery; None if there is nothing to fence."""
    health = context.world.health
    policy = health.policy_of(row.name) if health is not None else None
    if policy is None or not row.handle or not unfenced(row, policy) or is_gone(context, row):
        return None
    return _fence(context, row, reason, policy, recovery_of(row) or new_recovery(context, row, policy, now), now)


def wait_for_predecessor(context: Context, row: Resource, waiting: Waiting, now: float) -> Waiting | None:
    """Return the wait of a replacement for the deletion of its predecessor; None if its policy allows the creation now.

    With `node_force_recreate` the wait ends after `node_delete_timeout`; the deletion goes on.
    """
    health, old = context.world.health, context.world.rows.get(row.replaces or "")
    policy = health.policy_of(row.name) if health is not None else None
    if policy is None or not policy.force_recreate or old is None or not (is_marked(old) or was_recovered(old)):
        return waiting
    due_at = row.updated_at + policy.delete_timeout_s
    return replace(waiting, due_at=due_at) if now < due_at else None


def _fresh(health: ShardHealth, policy: HealthPolicy, node: NodeHealth, now: float) -> NodeHealth:
    """Return the health of a member; UNKNOWN if all workers were away since the finding."""
    if health.looked_at == 0.0 and node.finding is not Finding.UNKNOWN:
        reason = f"{node.reason or WELL}; no look since members were removed"
        return replace(node, finding=Finding.UNKNOWN, reason=reason)
    away_s = now - max(health.looked_at, node.since)
    if node.finding is Finding.UNHEALTHY and away_s > policy.stale_s:
        return replace(node, finding=Finding.UNKNOWN, reason=f"{node.reason}, {away_s:.0f} s ago; no look since")
    return node


def _unlooked(row: Resource, mark: UnhealthyMark | None) -> NodeHealth:
    """Return the health of a member before the first look of its current policy."""
    return NodeHealth(
        Finding.UNKNOWN, row.updated_at if mark is None else mark.since, "" if mark is None else mark.reason
    )


def _mark(context: Context, row: Resource, node: NodeHealth, now: float) -> Step:
    """Mark an unhealthy member; its event has the reason."""
    event = unhealthy.marked(row, UnhealthyMark(node.reason, now, reporter=REPORTER))
    row.changed = context.world.next_stamp()
    return Step(row, events=[event])


def _well(context: Context, row: Resource, reason: str, now: float) -> Decision:
    """Remove the mark of a healthy member, after undoing its fence."""
    recovery, absent = recovery_of(row), is_gone(context, row)
    cut = fences_of(row, recovery) if recovery is not None else ()
    if recovery is not None and cut and row.handle and not absent:
        return _join(context, row, recovery, cut, now)
    row.marks = replace(row.marks or NO_MARKS, recovery=recovery if absent and is_fenced(row) else None)
    if row.failed:
        events = []
        if row.handle and row.action != Action.CHECK:
            # A recovery action failed, and the thing is healthy all the same.
            row.enter(Action.CHECK, Status.FAILED, row.reason)
            events.append(event_of(row))
        events.append(unhealthy.unmarked(row, reason, context.world.settled_revision, now))
    else:
        events = outcome.begin(row, Action.CHECK, reason)
        unhealthy.forget(row)
        events += outcome.complete(context.world, row, now, reason).events
    row.attempts = 0
    row.changed = context.world.next_stamp()
    return Step(row, events=events)


def _join(context: Context, row: Resource, recovery: RecoveryMark, cut: tuple[str, ...], now: float) -> Decision:
    """Undo the fence of a member; first start a server that was powered off."""
    remaining: tuple[str, ...] = ()
    if Fence.COMPUTE in cut and status(context, row) == STOPPED:
        act = Operate("start", {})
        remaining = tuple(fence for fence in cut if fence != Fence.COMPUTE)
    else:
        act = Operate(UNFENCE, {"what": list(cut)})
    decision = heal.heal(context, row, Verdict(Condition.BROKEN, JOINED, Remedy.OPERATE), now, act)
    if isinstance(decision, Step) and decision.act is act:
        keep(row, replace(recovery, fenced=remaining, unsure=()))
    return decision


def _during_action(case: Case) -> Decision:
    """Decide during an action of the stack: replace a member to be changed anyway; recover the rest without waiting."""
    context = case.context
    if context.unsettled and not context.failed_early and context.differs(case.definition, case.row):
        return _recreate(case)
    decision = _recovered(case)
    return decision if isinstance(decision, Step) else SETTLED


def _recovered(case: Case) -> Decision:
    row = case.row
    if case.node.finding is Finding.UNKNOWN:
        health = _health(case.context)
        node = health.nodes.get(row.key)
        # No worker is woken by a look that confirms an earlier finding.
        is_stale = health.looked_at == 0.0 or (node is not None and node.finding is not Finding.UNKNOWN)
        due_at = case.now + health_brake.EXAMINED_S if is_stale else None
        return Waiting(row.name, Why.UNSEEN, (), case.node.reason, row.updated_at, due_at, row.key)
    return check.look_first(case.context.world, row) or _recover(case)


def _recover(case: Case) -> Decision:
    row, policy, now = case.row, case.policy, case.now
    recovery = fit_to_policy(recovery_of(row), policy)
    if recovery is None:
        inside = case.node.hint == check.CONVERGE
        first = BY_HINT if case.node.hint and (policy.inside_first if inside else policy.by_hint) else 0
        return _begin(case, new_recovery(case.context, row, policy, now, first))
    if recovery.acted_at is not None:
        waiting = _verified(case, recovery)
        if waiting is not None:
            return waiting
        recovery = _next(recovery, policy, now)
        if recovery.step == 0:
            # Store at once: the pause before the next round counts from now.
            keep(row, recovery)
            return Step(row)
    if recovery.rounds and recovery.step == 0:
        due_at = recovery.begun_at + min(PAUSE_S * 2 ** (recovery.rounds - 1), PAUSE_S_MAX)
        if due_at > now and row.converge_requested_at is None:
            reason = f"{case.node.reason}; tried in vain: {', '.join(recovery.tried)}"
            return Waiting(row.name, Why.BACKOFF, (), reason, row.updated_at, due_at, row.key)
        return _begin(case, recovery)
    return _act(case, recovery)


def _begin(case: Case, recovery: RecoveryMark) -> Decision:
    """Begin a recovery or its next round unless postponed, and count it in the limit per hour."""
    waiting = _waits(case)
    if waiting is not None:
        return waiting
    marks = case.row.marks
    decision = _act(case, recovery)
    if isinstance(decision, Step) and decision.recovery is not None:
        health, row = _health(case.context), case.row
        decision.recovery = decision.recovery._replace(begins=True, host=host(case.context, row))
        recoveries = (*health.begun, StartedRecovery(row.name, case.now, decision.recovery.host))
        case.context.world.health = replace(health, recovered=health.recovered + 1, begun=recoveries)
        case.context.incidents = None  # to be found anew
    else:
        case.row.marks = marks  # not begun yet
    return decision


def _waits(case: Case) -> Waiting | None:
    """Return why the recovery of a member does not begin; None if it may. A user's consent overrides all reasons."""
    row, node, policy = case.row, case.node, case.policy
    if row.converge_requested_at is not None:
        return None
    if policy.mode is not Mode.AUTOMATIC:
        why = Why.OBSERVED if policy.mode is Mode.OBSERVE else Why.PROPOSED
        names = " → ".join(action.name for action in policy.actions)
        return Waiting(row.name, why, (), f"{node.reason}; would be tried: {names}", row.updated_at, key=row.key)
    incident = incident_of(case.context, row)
    return health_brake.postpone_recovery(policy, _health(case.context), incident, row, node.reason, case.now)


def _verified(case: Case, recovery: RecoveryMark) -> Waiting | None:
    """Return the wait for a healthy look after an action; None after its time limit."""
    row, policy, now = case.row, case.policy, case.now
    if row.failed and row.action != Action.CHECK:
        return None  # the action itself has failed
    ends_at = row.updated_at + policy.verify_s
    looked = _health(case.context).looked_at > row.updated_at
    if now >= ends_at and looked and not detection.is_recovering(policy, case.node):
        return None
    reason = f"{_name_of(case, recovery)} is done; {case.node.reason}"
    return Waiting(row.name, Why.VERIFYING, (), reason, row.updated_at, max(ends_at, now + 1.0), row.key)


def _next(recovery: RecoveryMark, policy: HealthPolicy, now: float) -> RecoveryMark:
    """Return the mark for the next action; after the last action, for another round."""
    name = "the hint" if recovery.step == BY_HINT else policy.actions[recovery.step].name
    tried = (*recovery.tried, name)[-len(policy.actions) - 1 :]
    if recovery.step + 1 < len(policy.actions):
        return replace(recovery, step=recovery.step + 1, acted_at=None, tried=tried)
    return replace(recovery, step=0, acted_at=None, tried=tried, rounds=recovery.rounds + 1, begun_at=now)


def _act(case: Case, recovery: RecoveryMark) -> Decision:
    """Begin the action of a step, or the fence before it."""
    row, policy = case.row, case.policy
    keep(row, recovery)
    name = _name_of(case, recovery)
    if name != Built.RECREATE and is_gone(case.context, row):
        # No operation brings an absent thing back, but a later RECREATE does.
        recreations = [place for place, action in enumerate(policy.actions) if action.name == Built.RECREATE]
        if not recreations:
            reason = f"{case.node.reason}; none of its actions makes another one: add RECREATE"
            return Waiting(row.name, Why.FAILED, (), reason, row.updated_at, key=row.key)
        keep(row, replace(recovery, step=recreations[0]))
        return _recreate(case)
    if name == Built.RECREATE:
        return _recreate(case)
    if name in AFTER_FENCING and unfenced(row, policy):
        return _fence(case.context, row, case.node.reason, policy, recovery, case.now)
    return _operate(case, recovery)


def _operate(case: Case, recovery: RecoveryMark) -> Decision:
    row, now = case.row, case.now
    operation, arguments = _operation(case, recovery)
    if operation == check.CONVERGE:
        return _converge(case, recovery)
    name = _name_of(case, recovery)
    if recovery.step != BY_HINT and case.policy.actions[recovery.step].type is not ActionType.BUILT_IN:
        # Identifies a repeated call.
        arguments["token"] = f"{row.key}-{round(recovery.begun_at * 1000)}-{recovery.rounds}-{recovery.step}"
    if name == Built.EVACUATE:
        # A repetition after a lost answer must not move the server once more.
        arguments["from"] = host(case.context, row)
    verdict = Verdict(Condition.BROKEN, f"{case.node.reason}; {name}", Remedy.OPERATE)
    decision = heal.heal(case.context, row, verdict, now, Operate(operation, arguments))
    if isinstance(decision, Step) and row.busy:
        # The operation may have started the server: a later replacement needs a new fence.
        fenced = tuple(fence for fence in recovery.fenced if fence != Fence.COMPUTE)
        keep(row, replace(recovery, acted_at=now, fenced=fenced))
        decision.recovery = RecoveryAction(row.name, name)
    return decision


def _converge(case: Case, recovery: RecoveryMark) -> Decision:
    """Converge a member that is a nested stack."""
    row, now = case.row, case.now
    stopped = case.context.gates.postpone_healing(row, case.node.reason, now, destroys=False)
    if stopped is not None:
        return stopped
    step = check.pass_on(case.context.world, row, check.CONVERGE, now)
    keep(row, replace(recovery, acted_at=now))
    step.recovery = RecoveryAction(row.name, check.CONVERGE.upper())
    case.context.gates.begin_healing(step)
    return step


def _operation(case: Case, recovery: RecoveryMark) -> tuple[str, dict[str, object]]:
    """Return the operation of the cloud port for a step, and its arguments."""
    if recovery.step == BY_HINT:
        return case.node.hint, {}
    action = case.policy.actions[recovery.step]
    if action.type is ActionType.BUILT_IN:
        return action.name.lower(), {name: value for name, value in action.params.items() if value is not None}
    # The arguments of the call are read from the policy later, since they may contain secrets.
    return action.type.lower(), {"step": recovery.step, "name": action.name}


def _name_of(case: Case, recovery: RecoveryMark) -> str:
    if recovery.step == BY_HINT:
        return case.node.hint.upper() or "the hint"
    return case.policy.actions[recovery.step].name


def _recreate(case: Case) -> Decision:
    """Replace an unhealthy thing, after fencing it as the policy asks."""
    context, row, now = case.context, case.row, case.now
    recovery = recovery_of(row) or new_recovery(context, row, case.policy, now)
    if not row.handle:
        return context.wait_if_failed(row.name) or _retry_creation(case)
    if unfenced(row, case.policy) and not is_gone(context, row):
        return _fence(context, row, case.node.reason, case.policy, recovery, now)
    return _create_replacement(case, recovery)


def _retry_creation(case: Case) -> Decision:
    """Retry the failed creation of a replacement, at growing intervals."""
    context, row, reason, now = case.context, case.row, case.node.reason, case.now
    due_at = row.updated_at + RETRY.delay_after_s(row.attempts)
    if due_at > now and row.converge_requested_at is None:
        return Waiting(row.name, Why.BACKOFF, (), reason, row.updated_at, due_at, row.key)
    if may_exist(row):
        return context.acts.replace(case.definition, row, now, reason)
    return context.acts.begin(case.definition, row, now)


def _create_replacement(case: Case, recovery: RecoveryMark) -> Decision:
    context, row, reason, now = case.context, case.row, case.node.reason, case.now
    absent = is_gone(context, row)
    if case.policy.quarantine and not absent:
        stopped = context.gates.postpone_healing(row, reason, now, alive=True)
        if stopped is not None:
            return stopped
        step = context.acts.replace(case.definition, row, now, f"it is kept, cut off: {reason}")
        row.deletion_policy = DeletionPolicy.RETAIN
        context.gates.begin_healing(step)
        step.recovery = RecoveryAction(row.name, Built.RECREATE.value)
        return step
    keep(row, replace(recovery, acted_at=now))
    verdict = Verdict(Condition.ABSENT if absent else Condition.BROKEN, reason, Remedy.RECREATE)
    decision = heal.recreate(context, case.definition, row, verdict, now)
    if isinstance(decision, Step) and decision.row is not row:
        decision.recovery = RecoveryAction(row.name, Built.RECREATE.value)
    else:
        keep(row, recovery)
    return decision


# -- fencing -------------------------------------------------------------------------------------------------------


def _fence(
    context: Context, row: Resource, reason: str, policy: HealthPolicy, recovery: RecoveryMark, now: float
) -> Decision:
    """Begin to fence a thing; it stays in progress until the cloud confirms the fence."""
    stopped = context.gates.postpone_healing(row, reason, now, alive=True)
    if stopped is not None:
        return stopped
    due_at = row.updated_at + RETRY.delay_after_s(row.attempts)
    if row.attempts and due_at > now:
        return Waiting(row.name, Why.BACKOFF, (), f"{reason}; {row.reason}", row.updated_at, due_at, row.key)
    what = [fence.value for fence in policy.fencing]
    events = outcome.begin(row, Action.UPDATE, f"it is cut off before another one is made: {', '.join(what)}")
    arguments: dict[str, object] = {"what": what}
    if is_host_down(context, row):
        # The host may work again by the time of the request: then the server is healthy.
        arguments["host_down"] = True
    row.intent = OperationIntent(FENCE, arguments=arguments)
    row.acted_at = row.due_at = None
    row.retries, row.attempts, row.updated_at = 0, row.attempts + 1, now
    keep(row, recovery)
    step = Step(row, Operate(FENCE, arguments), events, recovery=RecoveryAction(row.name, FENCE))
    context.gates.begin_healing(step)
    return step


def go_on(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Decide about a thing that is being fenced: repeat the request, wait, or replace the thing."""
    stack, health, recovery = context.world.stack, context.world.health, recovery_of(row)
    fences = [str(fence) for fence in arguments_of(row.intent).get("what", ())]
    missing = [fence for fence in fences if recovery is None or fence not in recovery.fenced]
    node = health.nodes.get(row.key) if health is not None else None
    # The member may have become healthy meanwhile: then the fence is undone.
    well = node is not None and node.finding is Finding.HEALTHY
    # An absent thing needs no fence; only a second look confirms its absence.
    if not missing or is_gone(context, row) or (well and is_marked(row)):
        policy = health.policy_of(row.name) if health is not None else None
        exempt = stack.frozen or stack.maintained or not is_marked(row)
        was = "gone" if is_gone(context, row) else "well"
        reason = (
            f"it is cut off: {', '.join(fences)}"
            if not missing
            else f"it is {was}, and was to be cut off: {row.reason}"
        )
        if missing and recovery is not None:
            recovery = replace(recovery, unsure=fences_of(row, recovery))
            keep(row, recovery)
        if policy is None or node is None or recovery is None or exempt or well:
            # A policy will find the member unhealthy again and continue the recovery; a member marked by a user is
            # replaced next.
            return context.acts.fail(row, reason, now, Action.CHECK)
        case, recovery = Case(context, definition, row, node, policy, now), fit_to_policy(recovery, policy)
        if _name_of(case, recovery) != Built.EVACUATE:
            return _create_replacement(case, recovery)
        return context.acts.fail(row, reason, now, Action.CHECK) if missing else _operate(case, recovery)
    if row.acted_at is None and (row.due_at is None or row.due_at <= now):
        return Step(row, Operate(FENCE, arguments_of(row.intent)))
    reason = row.reason if row.retries else f"not confirmed: {', '.join(missing)}"
    return Waiting(row.name, Why.FENCING, (), reason, row.updated_at, row.due_at, row.key)


# -- parts -----------------------------------------------------------------------------------------------------------


def _health(context: Context) -> ShardHealth:
    if context.world.health is None:
        raise ValueError("no health policy holds for this shard")
    return context.world.health
