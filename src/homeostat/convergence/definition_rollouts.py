"""Rollouts of a new definition: the revisions of the group's stack by which members get it, step by step (ADR 0068).

`metadata_rollouts` makes such a rollout go on like any other. What a step, its end or the way back means for the
members is a revision of their stack, which follows from its newest one and is stored with the row of the rollout.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, update

from homeostat.desired.members import group_desired, reached_shards, touched_by
from homeostat.model.group import GroupDefinition
from homeostat.model.plan import Priority
from homeostat.model.rollout import MemberOrder, Rollout, RolloutState
from homeostat.model.status import Action, Status
from homeostat.planner.policies import definition_rollout
from homeostat.planner.policies.definition_rollout import Unreached
from homeostat.resources.signals import FAILURE, SUCCESS
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.sql import lock_order
from homeostat.store.stacks import action_begin, revisions, rollout_members, rollout_reports, rollouts, stacks
from homeostat.store.stacks.rollout_reports import Gate, Report

TIMEOUT_S = 3600.0
"""Seconds in which the members of a step get their definition, where neither the rollout nor the stack says more."""
ENDS: Mapping[str, Callable[[GroupDefinition], GroupDefinition]] = {
    RolloutState.SUCCEEDED: definition_rollout.finished,
    RolloutState.ROLLED_BACK: definition_rollout.taken_back,
    RolloutState.ABORTED: definition_rollout.stopped,
}
"""State of a rollout that has ended -> the group that it leads to."""


class MembersNotLocked(Exception):
    """A revision of the stack with the members is needed, which has to be locked before the row of the rollout."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The stack with the members of a group, at its newest revision.

    Attributes:
        stack: Its row.
        group: The group, which is staged.
        locked: Whether its row and its shards are locked.
    """

    stack: Row[Any]
    group: GroupDefinition
    locked: bool


def lock_members(db: Database, tx: Connection, key: str) -> bool:
    """Lock the stack with the members of a group, and its shards, before anything else; return whether that was done.

    A stack is locked before its shards, and those before the shards of the stacks around it (ADR 0057).
    """
    rollout = rollouts.of_group(tx, key)
    if rollout is None or rollout.subject is None:
        return False
    parent = stacks.for_update(db, tx, rollout.stack_id)
    if parent is None or stacks.for_update(db, tx, rollout.members) is None:
        return False
    lock_order.take_shards(tx, schema.shard.c.stack_id == rollout.members)
    return True


def staged(tx: Connection, rollout: Rollout, *, locked: bool) -> Staged | None:
    """Return the members of a rollout; None where their stack is about something else by now, or is being deleted."""
    stack = stacks.get(tx, rollout.members)
    if stack is None or stack.action == Action.DELETE:
        return None
    group = revisions.group_of(tx, stack.id, stack.revision)
    if group is None or not definition_rollout.is_about(group, rollout.subject):
        return None
    return Staged(stack, group, locked)


def is_busy(found: Staged) -> bool:
    return bool(found.stack.status == Status.IN_PROGRESS)


def given(found: Staged) -> int:
    """Return how many members have the new definition."""
    return definition_rollout.given(found.group)


def has_failed(found: Staged) -> bool:
    return bool(found.stack.status == Status.FAILED)


# -- members -----------------------------------------------------------------------------------------------------------


def give(
    db: Database, tx: Connection, rollout: Rollout, found: Staged, wanted: int, now: float, timeout_s: float
) -> Rollout:
    """Store the revision by which the members of a step get the new definition; return the rollout with that step.

    Args:
        db: The database.
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout at its new step.
        found: The members.
        wanted: How many of them have the new definition after the step.
        now: The time.
        timeout_s: See `TIMEOUT_S`.

    Raises:
        MembersNotLocked: The stack with the members is not.
    """
    if not found.locked:
        raise MembersNotLocked
    group, place = found.group, rollout.place
    missing = max(wanted - definition_rollout.given(group), 0)
    ordered: list[str] = []
    if rollout.settings.order == MemberOrder.ZONE:
        count = int(found.stack.shards)
        ordered, place = rollout_members.next_by_zone(tx, rollout, count, missing, Unreached(group))
    failed = rollout_members.failed_names(tx, rollout)
    names = definition_rollout.chosen(group, rollout.settings, missing, failed, ordered)
    after = definition_rollout.with_given(group, names)
    number = _revise(db, tx, rollout, found, after, now, timeout_s)
    active = definition_rollout.given(after)
    return replace(rollout, giving=number, active=active, target=max(wanted, active), place=place, step_at=now)


def give_again(db: Database, tx: Connection, rollout: Rollout, found: Staged, now: float, timeout_s: float) -> Rollout:
    """Let the members of a step that could not get the new definition try it again.

    Raises:
        MembersNotLocked: The stack with the members is not locked.
    """
    return replace(rollout, giving=_revise(db, tx, rollout, found, found.group, now, timeout_s), step_at=now)


def end(db: Database, tx: Connection, rollout: Rollout, found: Staged, now: float, timeout_s: float) -> None:
    """Store the revision that the end of a rollout leads to.

    Raises:
        MembersNotLocked: The stack with the members is not locked.
    """
    _revise(db, tx, rollout, found, ENDS[rollout.state](found.group), now, timeout_s)


def _revise(
    db: Database, tx: Connection, rollout: Rollout, found: Staged, after: GroupDefinition, now: float, timeout_s: float
) -> int:
    if not found.locked:
        raise MembersNotLocked
    stack = found.stack
    intent = revisions.intent_of(tx, stack.id, stack.revision)
    # To the group it is the same act; environment and files are copied from the revision before.
    desired = replace(group_desired(after), intent=intent, copied_from=int(stack.revision), secret=stack.secret)
    touched = touched_by(found.group, after)
    within_s = _time_s(tx, rollout, timeout_s)
    number = action_begin.revise(db, tx, stack, Action.UPDATE, desired, now, within_s, touched=touched)
    _forget(tx, rollout, stack)
    return number


def _time_s(tx: Connection, rollout: Rollout, timeout_s: float) -> float:
    """Return the seconds in which the members of a step get their definition."""
    parent = stacks.get(tx, rollout.stack_id)
    default_s = timeout_s if parent is None else stacks.timeout_of(stacks.timeout_mins_of(tx, parent), timeout_s)
    return rollout.settings.progress_s or default_s


def follow_time(tx: Connection, rollout: Rollout, found: Staged, now: float, timeout_s: float) -> None:
    """Have the members of a step get their definition in the time that the newest revision gives them.

    It counts from the newest revision of their stack: an update in the middle of a step, which leaves their definition
    as it is, would leave them without a deadline otherwise, as the group has none while it rolls out.

    Raises:
        MembersNotLocked: The stack with the members is not locked, and another time holds than so far.
    """
    stack = found.stack
    if rollout.giving is None:
        return
    deadline = float(stack.updated_at or stack.created_at) + _time_s(tx, rollout, timeout_s)
    if deadline == stack.deadline:
        return
    if not found.locked:
        raise MembersNotLocked
    tx.execute(update(schema.stack).where(schema.stack.c.id == stack.id).values(deadline=deadline))
    shards.wake(tx, stack.id, now, Priority.USER)


def _forget(tx: Connection, rollout: Rollout, stack: Row[Any]) -> None:
    """Delete the revisions of former steps, which nothing goes back to: there may be as many as members."""
    old = schema.revision
    steps = (old.c.number > rollout.subject, old.c.number < stack.revision)
    kept = old.c.number != (0 if stack.complete_revision is None else stack.complete_revision)
    tx.execute(delete(old).where(old.c.stack_id == stack.id, *steps, kept))


# -- reports -----------------------------------------------------------------------------------------------------------


def note_reached(tx: Connection, rollout: Rollout, found: Staged) -> int:
    """Note which members are on their way to the new definition; return how many have it, or are."""
    return _renew(tx, rollout, found, rollout.giving)


def note_given(tx: Connection, rollout: Rollout, found: Staged, now: float) -> None:
    """Note which things the members have that are to have the new definition, and what these have reported.

    A member may report before its id is known here: that report is among the signals of the handle.
    """
    _renew(tx, rollout, found)
    gates = rollout.settings.gates
    signals = records.signals_of(tx, {gate.handle for gate in gates})
    since = float(found.stack.updated_at or found.stack.created_at)
    for bit, gate in enumerate(gates):
        heard = [Gate(rollout.key, bit, len(gates))]
        for signal in signals.get(gate.handle, ()):
            if signal.at >= since:
                rollout_reports.store(tx, heard, [_report(signal.object)], now)


def _renew(tx: Connection, rollout: Rollout, found: Staged, since: int | None = None) -> int:
    group = found.group
    unreached, given = Unreached(group), definition_rollout.given(group)
    return rollout_members.renew(tx, rollout, lambda name: name not in unreached, reached_shards(group), given, since)


def _report(signal: Mapping[str, Any]) -> Report:
    """Return what a signal in normal form reports."""
    names = [str(each) for each in (signal.get("data"), signal.get("id")) if each not in (None, "")]
    status = SUCCESS if signal.get("status") == SUCCESS else FAILURE
    return Report(names, status, str(signal.get("reason") or ""))
