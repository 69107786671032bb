"""A new definition for members of a group, step by step, by revisions of their stack (ADR 0068).

Each revision follows from the newest one (`planner.members.staged_group`), and is stored with the row of the rollout.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import delete, update

from homeostat.convergence.members.member_change import (
    BUSY_S,
    CHUNK,
    POLL_S,
    Changed,
    Changing,
    Failed,
    Progress,
    extent,
)
from homeostat.desired.members import reached_shards, regrouped, touched_by
from homeostat.model.group import GroupDefinition
from homeostat.model.plan import Priority
from homeostat.model.rollout import MemberOrder, Rollout, RolloutState
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Action, Status
from homeostat.planner.members import rollout_move, staged_group
from homeostat.planner.members.staged_group import Unreached
from homeostat.resources.signals import FAILURE, SUCCESS
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.sql import lock_order
from homeostat.store.stacks import action_begin, revisions, rollout_members, rollout_reports, rollouts, stacks
from homeostat.store.stacks.rollout_reports import Gate, Report

TIMEOUT_S = 3600.0
"""Default seconds in which the members of a step get their definition."""
ENDS: Mapping[str, Callable[[GroupDefinition], GroupDefinition]] = {
    RolloutState.SUCCEEDED: staged_group.finished,
    RolloutState.ROLLED_BACK: staged_group.taken_back,
    RolloutState.ABORTED: staged_group.stopped,
}
"""End of a rollout -> the resulting group."""


class MembersNotLocked(Exception):
    """A revision is needed of the members' stack, which has to be locked before the row of the rollout."""


def lock_members(tx: Transaction, key: str) -> bool:
    """Lock the stack with the members of a group, and its shards, first of all; return False without such a stack.

    A stack is locked before its shards, and its shards before those of the parent stacks (ADR 0057).
    """
    rollout = rollouts.of_group(tx, key)
    if rollout is None or rollout.subject is None:
        return False
    parent = stacks.for_update(tx, rollout.stack_id)
    if parent is None or stacks.for_update(tx, rollout.members) is None:
        return False
    lock_order.take_shards(tx, schema.shard.c.stack_id == rollout.members)
    return True


@dataclass(frozen=True, slots=True)
class Staged:
    """The stack with the members of a group, at its newest revision.

    Attributes:
        stack: Its row.
        group: The group, which is staged.
        locked: Whether its row and its shards are locked.
    """

    stack: StackRow
    group: GroupDefinition
    locked: bool

    @property
    def changed_at(self) -> float:
        """When its newest revision came."""
        return float(self.stack.updated_at or self.stack.created_at)


def staged(tx: Transaction, rollout: Rollout, *, locked: bool) -> Staged | None:
    """Return the members of a rollout; None if their stack has a newer definition, or is being deleted."""
    stack = stacks.get(tx, rollout.members)
    if stack is None or stack.action == Action.DELETE:
        return None
    group = revisions.group_of(tx, stack.id, stack.revision)
    if group is None or not staged_group.is_about(group, rollout.subject):
        return None
    return Staged(stack, group, locked)


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """A change of members' definition.

    Attributes:
        tx: The transaction.
        members: The members; None if their stack has a newer definition by now.
        timeout_s: See `TIMEOUT_S`.
    """

    tx: Transaction
    members: Staged | None
    timeout_s: float

    @property
    def is_current(self) -> bool:
        return self.members is not None

    def is_blocked_by(self, action: str) -> bool:
        # The change awaits its own revisions in `progress`.
        return (action in NON_CHANGING_ACTIONS) == self.is_current

    # -- steps -------------------------------------------------------------------------------------------------------

    def progress(self, rollout: Rollout, now: float) -> Progress:
        if self.members is None:  # the next pass of the group decides about its newer revision
            return Changing(replace(rollout, due_at=now + POLL_S, step_at=now))
        stack = self.members.stack
        if stack.status == Status.IN_PROGRESS:
            return self._watched(self.members, rollout, now)
        if rollout.giving is None:
            return Changed(rollout)
        if stack.status == Status.FAILED:
            return Failed(f"step {rollout.step}: {stack.reason}")
        self._note_given(self.members, rollout, now)
        changed = replace(rollout, giving=None, step_at=now)
        return Changed(changed, f"step {rollout.step}: {extent(changed)}")

    def _watched(self, members: Staged, rollout: Rollout, now: float) -> Changing | Failed:
        """Return the progress of a step; an alarm, or a failed member, does not wait for the rest of the step."""
        self._follow_time(members, rollout, now)
        # The time for reports begins once the members have the definition.
        begun = replace(rollout, step_at=now)
        count = self._renew(members, rollout, rollout.giving) if rollout.giving is not None else 0
        refused = rollout_move.refusal(begun, rollout_reports.report_of(self.tx, rollout), now)
        if refused:
            return Failed(refused)
        reason = "the members of the group are being changed"
        if rollout.step:
            reason = f"step {rollout.step}: its members get the new definition, {count} of {rollout.active} so far"
        poll_s = BUSY_S if members.stack.size <= CHUNK else POLL_S
        return Changing(replace(begun, due_at=now + poll_s, reason=reason))

    def _follow_time(self, members: Staged, rollout: Rollout, now: float) -> None:
        """Set the deadline by which the members of a step have their definition.

        Raises:
            MembersNotLocked: The deadline changes, and the stack with the members is not locked.
        """
        if rollout.giving is None:
            return
        # Counted from the newest revision: an update in the middle of a step that leaves the definition unchanged would
        # leave the members without a deadline, since a group has none during its rollout.
        stack, deadline = members.stack, members.changed_at + self._time_s(rollout)
        if deadline == stack.deadline:
            return
        if not members.locked:
            raise MembersNotLocked
        self.tx.execute(update(schema.stack).where(schema.stack.c.id == stack.id).values(deadline=deadline))
        shards.wake(self.tx, stack.id, now, Priority.USER)

    def give(self, rollout: Rollout, now: float) -> Changing | None:
        """Store the revision by which the members of a step get the new definition.

        Raises:
            MembersNotLocked: The stack with the members is not locked.
        """
        members = self._current()
        if rollout.active >= rollout.target:
            self._note_given(members, rollout, now)
            return None
        if not members.locked:
            raise MembersNotLocked
        group, place = members.group, rollout.place
        missing = max(rollout.target - staged_group.given(group), 0)
        ordered: list[str] = []
        if rollout.settings.order == MemberOrder.ZONE:
            count = int(members.stack.shards)
            ordered, place = rollout_members.next_by_zone(self.tx, rollout, count, missing, Unreached(group))
        failed = rollout_members.failed_names(self.tx, rollout)
        names = staged_group.chosen(group, rollout.settings, missing, failed, ordered)
        after = staged_group.with_given(group, names)
        number = self._revise(members, rollout, after, now)
        active = staged_group.given(after)
        target = max(rollout.target, active)
        giving = replace(rollout, giving=number, active=active, target=target, place=place, step_at=now)
        reason = f"step {rollout.step}: {extent(giving)} from now on"
        return Changing(replace(giving, reason=reason, due_at=now + BUSY_S), reason)

    def renew(self, rollout: Rollout, lost: list[str], now: float) -> None:
        if lost:  # A canary that dies and is made again has to report all the same.
            self._note_given(self._current(), rollout, now)

    def retry(self, rollout: Rollout, now: float) -> Rollout:
        members = self._current()
        if rollout.giving is None or members.stack.status != Status.FAILED:
            return rollout
        return replace(rollout, giving=self._revise(members, rollout, members.group, now), step_at=now)

    def count(self, rollout: Rollout) -> int:
        return staged_group.given(self._current().group)

    # -- ends --------------------------------------------------------------------------------------------------------

    def take_back(self, rollout: Rollout) -> int:
        rollouts.deactivate(self.tx, rollout.key)
        return rollout.active

    def end(self, rollout: Rollout, now: float) -> None:
        """Store the revision of the end of a rollout.

        Raises:
            MembersNotLocked: The stack with the members is not locked.
        """
        if self.members is not None:
            self._revise(self.members, rollout, ENDS[rollout.state](self.members.group), now)

    def _current(self) -> Staged:
        assert self.members is not None, "the stack of the members is about something else"
        return self.members

    def _revise(self, members: Staged, rollout: Rollout, after: GroupDefinition, now: float) -> int:
        if not members.locked:
            raise MembersNotLocked
        stack = members.stack
        intent = revisions.intent_of(self.tx, stack.id, stack.revision)
        # Each step continues the act of the group, with its intent.
        revision = regrouped(self.tx.database, after, int(stack.revision), intent)
        touched, within_s = touched_by(members.group, after), self._time_s(rollout)
        number = action_begin.revise(self.tx, stack, Action.UPDATE, revision, now, within_s, touched=touched)
        self._forget(rollout, stack)
        return number

    def _time_s(self, rollout: Rollout) -> float:
        """Return the seconds in which the members of a step get their definition."""
        if rollout.settings.progress_s:
            return rollout.settings.progress_s
        parent = stacks.get(self.tx, rollout.stack_id)
        if parent is None:
            return self.timeout_s
        return stacks.timeout_of(stacks.timeout_mins_of(self.tx, parent), self.timeout_s)

    def _forget(self, rollout: Rollout, stack: StackRow) -> None:
        """Delete the revisions of former steps, up to one for each member: the way back does not need them."""
        old = schema.revision
        steps = (old.c.number > rollout.subject, old.c.number < stack.revision)
        kept = old.c.number != (0 if stack.complete_revision is None else stack.complete_revision)
        self.tx.execute(delete(old).where(old.c.stack_id == stack.id, *steps, kept))

    # -- reports -----------------------------------------------------------------------------------------------------

    def _note_given(self, members: Staged, rollout: Rollout, now: float) -> None:
        """Record the things of members with the new definition, and their reports.

        A member may report before its id is known here: this report is among the signals of the handle.
        """
        self._renew(members, rollout)
        gates = rollout.settings.gates
        signals = records.signals_of(self.tx, {gate.handle for gate in gates})
        for bit, gate in enumerate(gates):
            heard = [Gate(rollout.key, bit, len(gates))]
            for signal in signals.get(gate.handle, ()):
                if signal.at >= members.changed_at:
                    rollout_reports.store(self.tx, heard, [_report(signal.object)], now)

    def _renew(self, members: Staged, rollout: Rollout, since: int | None = None) -> int:
        """Record the members with, or on their way to, the new definition; return their number."""
        group = members.group
        unreached, count, reached = Unreached(group), staged_group.given(group), reached_shards(group)
        return rollout_members.renew(self.tx, rollout, lambda name: name not in unreached, reached, count, since)


def _report(signal: Mapping[str, Any]) -> Report:
    """Return the report of a signal in normal form."""
    names = [str(name) for name in (signal.get("data"), signal.get("id")) if name not in (None, "")]
    status = SUCCESS if signal.get("status") == SUCCESS else FAILURE
    return Report(names, status, str(signal.get("reason") or ""))
