"""Scaling by signal: a signal to a scaling policy stores the next revision of its group's stack (CV2).

A signal is accepted whatever the group is doing: a scaling is just another update. Signals are serialised by the row of
the group's stack, which also holds the end of the cooldown. While an action is in progress that leaves the desired
state unchanged (a check, a snapshot, maintenance), a signal waits in its own row; a periodic task applies it later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeostat.builtin.inbox import SignalOutcome, Untimely
from homeostat.builtin.reports import SIGNAL, Body
from homeostat.clock import Clock
from homeostat.convergence.nested_stacks import tree_size
from homeostat.convergence.nested_stacks.group_revisions import away_members, failed_of, first_to_leave, is_pending
from homeostat.desired.members import group_content, regrouped, touched_by
from homeostat.desired.texts import size_of
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition, reports_of
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Action, Status
from homeostat.model.world import StackFacts
from homeostat.planner.members import rolling_update, staged_group
from homeostat.resources import groups, listed_members
from homeostat.resources.families.scaling import ScalingGroup
from homeostat.resources.families.scaling_policies import POLICY_KIND, ScalingPolicy
from homeostat.resources.instance_signals import ALARMS
from homeostat.resources.registry import type_of
from homeostat.resources.scaling_adjustments import Adjustment, adjusted
from homeostat.resources.signals import shortened
from homeostat.store import events, schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks import action_begin, locks, revisions, scaling, stacks
from homeostat.store.stacks.revisions import NewRevision
from homeostat.store.stacks.scaling import Cooldown, Resize

DEFERRED_MAX = 100
"""Signals that may wait for one group."""
BUSY_S = 1.0
"""Time until a waiting signal is tried again."""
ROUND_MAX = 50
"""Waiting signals applied by one run of the periodic task."""


@dataclass(frozen=True, slots=True)
class ScalingPlan:
    """The effect of a signal, prepared from a consistent read.

    Attributes:
        owner: The resource of the policy.
        parent: The stack in which the group is a resource.
        nested: Row of the group's stack.
        timeout_s: Time limit of an act on the group's stack in seconds.
        revision: Next revision of the group's stack; None if its size stays.
        least: Minimum of its resources, see `tree_size.least_size`.
        touched: Shards changed by the revision, see `action_begin.revise`.
        cooldown: New cooldown of the group.
        resize: Change of its size.
        defer: Whether the signal has to wait for the end of an action.
        ignored: Why the signal changes nothing, if users need to know; else "".
    """

    owner: Owner
    parent: StackFacts
    nested: StackRow
    timeout_s: float
    revision: NewRevision | None = None
    least: int = 0
    touched: Mapping[int, ShardChange] | None = None
    cooldown: Cooldown | None = None
    resize: Resize | None = None
    defer: bool = False
    ignored: str = ""

    @property
    def state(self) -> tuple[Any, ...]:
        """The state that the plan depends on: the plan fits as long as the state is the same."""
        return _state(self.nested)


def _state(nested: StackRow) -> tuple[Any, ...]:
    return nested.revision, nested.complete_revision, nested.action, nested.status, nested.cooldown


class Scaling:
    """Receiver of signals to scaling policies."""

    def __init__(self, db: Database, clock: Clock, resources_max: int, timeout_s: float) -> None:
        """Prepare the receiver.

        Args:
            clock: Clock that ages counts of trees.
            resources_max: Resources of a root stack, including its nested stacks.
            timeout_s: Default time limit of a stack's action.
        """
        self._db = db
        self._trees = tree_size.TreeSizes(clock, resources_max)
        self._timeout_s = timeout_s

    def signal(self, policy_id: str, body: Body) -> SignalOutcome:
        """Scale a group by a policy; within the cooldown or at the bounds, a signal has no effect.

        Args:
            policy_id: Id of the policy's record.
            body: Body of the signal; the event quotes an alarm in it.

        Raises:
            Rejected: There is no such policy or group any more, or it cannot be scaled; the stack is suspended or being
                deleted; the tree of stacks would be too large, or too many signals wait.
        """
        return self._apply(policy_id, reason_of(body), deferred=None)

    def round(self) -> int:
        """Apply signals that have waited for the end of an action; return how many are handled."""
        with self._db.read() as tx:
            # Read without a claim: `remove_deferred` decides which worker applies a signal.
            waiting = scaling.deferred(tx, tx.now(), ROUND_MAX)
        for signal in waiting:
            try:
                self._apply(signal.record_id, signal.reason, deferred=signal.id)
            except Rejected as error:  # the policy or group is deleted or full: there is no client left to inform
                self._drop(signal.id, signal.record_id, f"{signal.reason}; not carried out: {error}")
        return len(waiting)

    def _drop(self, deferred: int, policy_id: str, reason: str) -> None:
        with self._db.write() as tx:
            scaling.remove_deferred(tx, deferred)
            owner = _owner_of(tx, policy_id)
            if owner is not None:
                events.append(tx, owner.stack_id, [owner.event(SIGNAL, f"Signal: {reason}")], tx.now())

    def _apply(self, policy_id: str, reason: str, deferred: int | None) -> SignalOutcome:
        # Planned before the lock, since planning for a large group takes time. If the group's stack has changed in
        # between, the plan is made again under the lock, so that concurrent signals all count.
        with self._db.read() as tx:
            plan = self._plan(tx, policy_id)
        with self._db.write() as tx:
            self._trees.begin(tx, plan.parent, plan.least)
            nested = stacks.for_update(tx, plan.nested.id)
            if nested is None:
                raise _no_group(plan.owner)
            if _state(nested) != plan.state:
                plan = self._plan(tx, policy_id)
            return self._store(tx, plan, policy_id, reason, deferred)

    # -- deciding ----------------------------------------------------------------------------------------------------

    def _plan(self, tx: Transaction, policy_id: str) -> ScalingPlan:
        record, owner = records.get(tx, policy_id, POLICY_KIND), _owner_of(tx, policy_id)
        if record is None or owner is None:
            raise Rejected("ResourceNotAvailable", "The resource is not available: it is not there any more.")
        policy = type_of(owner.type)
        assert isinstance(policy, ScalingPolicy)
        adjustment = policy.adjustment(record.object)
        nested = scaling.group_stack(tx, owner.stack_id, adjustment.group)
        parent = stacks.get(tx, owner.stack_id)
        if nested is None or parent is None:
            raise _no_group(owner)
        _check_state(owner, parent, nested)
        now = tx.now()
        plan = ScalingPlan(owner, stacks.facts(parent), nested, self._time_left(tx, parent, now))
        if nested.status == Status.IN_PROGRESS and nested.action in NON_CHANGING_ACTIONS:
            return replace(plan, defer=True)
        if owner.lock is not None or scaling.cooldown_of(nested).until > now:
            return plan
        return self._resized(tx, plan, adjustment, now)

    def _resized(self, tx: Transaction, plan: ScalingPlan, adjustment: Adjustment, now: float) -> ScalingPlan:
        """Return the plan with the next revision of the group, unless its size stays."""
        nested = plan.nested
        rows, _ = shard_state.load_where(tx, schema.resource.c.key == nested.parent_key)
        row = rows.get(nested.parent_key or "")
        kind = type_of(row.type) if row is not None else None
        bounds = kind.bounds(kind.complete(row.properties)) if row and isinstance(kind, ScalingGroup) else None
        if row is None or not isinstance(kind, ScalingGroup) or bounds is None:
            message = f"{adjustment.group} is no group that signals scale: use an AutoScalingGroup"
            raise Rejected("NotSupported", message)
        values = kind.complete(row.properties)
        before = revisions.content_of(tx, nested.id, nested.revision)
        standing = before.group
        if standing is None:
            raise LookupError(f"stack {nested.id} has no group")
        if is_pending(nested) and standing.series is not None and ALARMS in standing.series.suspended:
            return replace(plan, ignored="a rolling update has suspended AlarmNotification")
        away = away_members(tx, nested, standing)
        failed = failed_of(away)
        healthy = groups.size_of(standing) - sum(groups.is_member(name, standing) for name in failed)
        size = adjusted(healthy, adjustment, *bounds)
        if size == healthy:
            return plan
        leaving = {*failed, *first_to_leave(tx, nested, away)}
        sized = groups.resized(standing, standing.resource_def, size, leaving)
        wanted = listed_members.kept_own(standing, sized)
        new = nested.complete_revision is None
        if standing.staged is not None:
            group = staged_group.resized(standing, standing.staged, wanted)
        elif _is_refused(nested, standing):
            group = rolling_update.resized(standing, wanted)
        else:
            pending, batches = is_pending(nested), kind.batches(values)
            group = rolling_update.begin(standing, wanted, batches, failed, new, away, pending=pending, now=now)
        # The parent's act on the group's stack continues, with a larger or smaller group: it keeps its intent.
        intent, content = (
            revisions.intent_of(tx, nested.id, nested.revision),
            group_content(group, before.environment, before.files),
        )
        cooldown_s = kind.cooldown_s(values) if adjustment.cooldown_s is None else float(adjustment.cooldown_s)
        return replace(
            plan,
            revision=regrouped(self._db, group, nested.revision, intent, size_of(content)),
            least=tree_size.least_size(content),
            touched=touched_by(standing, group),
            cooldown=Cooldown(now + cooldown_s, f"{adjustment.word} : {adjustment.amount:g}"),
            resize=Resize(float(adjustment.amount), adjustment.word, healthy, size),
        )

    # -- storing -----------------------------------------------------------------------------------------------------

    def _store(
        self, tx: Transaction, plan: ScalingPlan, policy_id: str, reason: str, deferred: int | None
    ) -> SignalOutcome:
        """Store a plan, in the transaction that has locked the group's stack."""
        owner, nested, now = plan.owner, plan.nested, tx.now()
        outcome = SignalOutcome(owner.name, {})
        if plan.defer and deferred is not None:
            scaling.postpone(tx, deferred, now + BUSY_S)
            return outcome
        if plan.defer:
            if scaling.count_deferred(tx, nested.id) >= DEFERRED_MAX:
                message = f"Request limit exceeded: {DEFERRED_MAX} signals wait until {nested.action} of the group ends"
                raise Rejected("RequestLimitExceeded", message)
            scaling.defer(tx, nested.id, policy_id, shortened(reason), now)
            return outcome
        if deferred is not None and not scaling.remove_deferred(tx, deferred):
            return outcome  # another worker was faster
        ignored = plan.ignored if owner.lock is None else f"the stack is locked{locks.describe(owner.lock)}"
        if ignored:
            reason = f"Signal ignored: {ignored}"
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, reason)], now)
        if plan.revision is None or plan.cooldown is None or plan.resize is None:
            return outcome
        try:
            self._trees.count(tx, plan.parent, plan.revision, plan.least, nested.size)
        except tree_size.TooLarge as error:
            raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {error}") from error
        changes = {"cooldown": scaling.longest(nested, plan.cooldown)}
        event = events.append_one(tx, owner.stack_id, owner.event(SIGNAL, f"Signal: {reason}"), now)
        scaling.note(tx, event, nested.id, plan.resize)
        action, timeout_s = _action(nested), plan.timeout_s
        action_begin.revise(tx, nested, action, plan.revision, now, timeout_s, changes, plan.touched)
        return outcome

    def _time_left(self, tx: Transaction, parent: StackRow, now: float) -> float:
        """Return the seconds for an act on the group's stack: its parent's remaining time, at rest a full limit."""
        if parent.deadline is not None:
            return max(float(parent.deadline) - now, 1.0)
        return stacks.timeout_of(stacks.timeout_mins_of(tx, parent), self._timeout_s)


def _owner_of(tx: Transaction, policy_id: str) -> Owner | None:
    record = records.get(tx, policy_id, POLICY_KIND)
    key = records.key_of(record.token) if record is not None else ""
    return records.owners(tx, [key]).get(key) if key else None


def _is_refused(nested: StackRow, group: GroupDefinition) -> bool:
    """Return whether a rolling update has stopped because of members' reports: an alarm must not resume it."""
    stopped = nested.status == Status.FAILED and nested.complete_revision != nested.revision
    return stopped and reports_of(group) is not None


def _action(nested: StackRow) -> str:
    """Return the action that a scaling continues or begins: a creation in progress stays a creation."""
    going_on = nested.status == Status.IN_PROGRESS and nested.complete_revision is None
    return str(nested.action) if going_on else Action.UPDATE


def _check_state(owner: Owner, parent: StackRow, nested: StackRow) -> None:
    """Refuse a signal in a stack that is suspended or being deleted.

    Raises:
        Rejected: NotSupported.
    """
    deleting = Action.DELETE in (parent.action, nested.action)
    for action, is_so in ((Action.SUSPEND, owner.suspended), (Action.DELETE, deleting)):
        if is_so:
            raise Untimely(owner, action)


def _no_group(owner: Owner) -> Rejected:
    message = f"The group of the scaling policy {owner.name} could not be found: it has not been made, or is gone"
    return Rejected("NotFound", message)


def reason_of(body: Body) -> str:
    """Return the event text for a signal, in Heat's words."""
    if not body:
        return "No signal details provided"
    if "current" in body and "previous" in body:
        return f"alarm state changed from {body['previous']} to {body['current']} ({body.get('reason', 'Unspecified')})"
    if "deploy_status_code" in body:
        return f"deployment {'failed' if body['deploy_status_code'] else 'succeeded'}"
    return "Unknown"
