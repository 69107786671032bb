"""The moves of a rollout, in the transaction that has locked its row: a step, a wait, its end (RU3, RU4, RU6).

`planner.policies.metadata_rollout` says which is next; `definition_rollouts` what a new definition means for members.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.convergence import definition_rollouts
from homeostat.convergence.definition_rollouts import Staged
from homeostat.model.plan import Priority
from homeostat.model.rollout import MemberOrder, OnFailure, Rollout, RolloutState, having
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Status
from homeostat.planner.policies import metadata_rollout
from homeostat.planner.policies.metadata_rollout import Advance, Checked, Finish, Move, Refuse, Repeat, Rest
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.stacks import rollout_members, rollout_reports, rollouts, stacks

CHUNK = 2000
"""Members that get the new metadata in one transaction."""
BUSY_S = 1.0
"""Time until a rollout is tried again whose group is being changed, or whose stack is locked or suspended."""
ROLLOUT = "ROLLOUT"
"""Action of the events about a rollout."""
POLL_S = 5.0
"""Longest time between two looks at a rollout whose members are waited for: a process may die after a report."""
UNASKED = Checked(asked=False)


class RolloutMoves:
    """What makes one rollout go on by a move, or ends it.

    Args:
        db: The database.
        timeout_s: Seconds in which the members of a step get a new definition, where nothing else says so.
    """

    def __init__(self, db: Database, timeout_s: float) -> None:
        self._db = db
        self._timeout_s = timeout_s

    def _staged(self, tx: Connection, rollout: Rollout, *, locked: bool) -> Staged | None:
        """Return the members of a rollout that gives them a new definition; None for any other."""
        return None if rollout.subject is None else definition_rollouts.staged(tx, rollout, locked=locked)

    def _carry_out(self, tx: Connection, rollout: Rollout, staged: Staged | None, now: float) -> None:
        """Give members the definition that the end of their rollout leads to."""
        if staged is not None:
            definition_rollouts.end(self._db, tx, rollout, staged, now, self._timeout_s)

    def _go_on(
        self, tx: Connection, rollout: Rollout, checks: Checked, now: float, staged: Staged | None = None
    ) -> None:
        stack, members = stacks.get(tx, rollout.stack_id), stacks.get(tx, rollout.members)
        obstacle = _obstacle(stack, members, staged)
        if obstacle or members is None:
            # The members of the step get their time once more when the obstacle is gone.
            rollouts.save(tx, replace(rollout, due_at=now + BUSY_S, step_at=now, reason=obstacle))
            return
        if rollout.unbegun:  # the pass that sees its handles begins it
            rollouts.save(tx, replace(rollout, due_at=None))
            return
        given = self._filled if rollout.subject is None else self._given
        reached = given(tx, rollout, members, staged, now)
        zoned = None if reached is None else self._zoned(tx, reached, members, now)
        if zoned is not None:
            self._step(tx, zoned, checks, members, staged, now)

    def _filled(
        self, tx: Connection, rollout: Rollout, members: Row[Any], staged: Staged | None, now: float
    ) -> Rollout | None:
        """Return a rollout whose members have the metadata of its step; None while they get it."""
        if rollout.active >= rollout.target:
            return rollout
        self._fill(tx, rollout, members, now)
        return None

    def _zoned(self, tx: Connection, rollout: Rollout, members: Row[Any], now: float) -> Rollout | None:
        """Return a rollout that knows the zones of its members, where it needs them; None while it looks for them."""
        if rollout.settings.order != MemberOrder.ZONE or rollout.step:
            return rollout
        rollout = rollout_members.find_zones(tx, rollout, int(members.shards))
        if rollout.place < members.shards:
            rollouts.save(tx, replace(rollout, due_at=now))
            return None
        return replace(rollout, place=0)

    def _step(
        self,
        tx: Connection,
        rollout: Rollout,
        checks: Checked,
        members: Row[Any],
        staged: Staged | None,
        now: float,
    ) -> None:
        """Make the next move of a rollout whose members have what they get in its step."""
        gone = rollout_members.gone(tx, rollout, CHUNK)
        if staged is None:
            rollout_members.drop(tx, rollout, gone)
        elif gone:  # A canary that dies and is made again has to report all the same.
            definition_rollouts.note_given(tx, rollout, staged, now)
        total = int(members.size)
        rollout, move = self._next_move(tx, rollout, checks, total, staged, now)
        match move:
            case Advance(target):
                step = replace(rollout, step=rollout.step + 1, total=total, step_at=now, reported_at=None)
                if staged is not None:
                    self._give(tx, step, staged, target, now)
                else:
                    # Others that are counted have no thing: they get the metadata of the group.
                    none_left = partial(self._succeed, tx, rollout, now)
                    self._fill(tx, replace(step, target=target), members, now, none_left)
            case Repeat(target):
                self._repeat(tx, replace(rollout, target=target), members, staged, now)
            case Rest(due_at, reason, reported):
                due = now + POLL_S if due_at is None else min(due_at, now + POLL_S)
                at = (rollout.reported_at or now) if reported else None
                rollouts.save(tx, replace(rollout, due_at=due, reason=reason, reported_at=at))
            case Refuse(reason):
                self._refuse(tx, rollout, reason, now, staged)
            case Finish():
                self._succeed(tx, rollout, now, staged)

    def _given(
        self, tx: Connection, rollout: Rollout, members: Row[Any], staged: Staged | None, now: float
    ) -> Rollout | None:
        """Return a rollout whose members have the definition of its step; None while they get it."""
        if staged is None:  # a newer revision of the group is on its way: the pass that sees it decides
            rollouts.save(tx, replace(rollout, due_at=now + POLL_S, step_at=now))
            return None
        if definition_rollouts.is_busy(staged):
            self._watch_members(tx, rollout, staged, now)
            return None
        if rollout.giving is None:
            return rollout
        if definition_rollouts.has_failed(staged):
            self._refuse(tx, rollout, f"step {rollout.step}: {staged.stack.reason}", now, staged)
            return None
        definition_rollouts.note_given(tx, rollout, staged, now)
        given = replace(rollout, giving=None, step_at=now)
        self._note(tx, given, f"step {rollout.step}: {_extent(given)}", now)
        return given

    def _next_move(
        self, tx: Connection, rollout: Rollout, checks: Checked, total: int, staged: Staged | None, now: float
    ) -> tuple[Rollout, Move]:
        """Return what comes next, and the rollout with the members counted that have what is new."""
        report = rollout_reports.report_of(tx, rollout)
        # What was asked for another step, or of other URLs, says nothing of this one.
        current = checks if checks.is_about(rollout) else UNASKED
        move = metadata_rollout.next_move(rollout, report, current, total, now)
        if isinstance(move, Finish | Repeat):
            # Members that were reached and have gone are still counted, and as many others were never reached.
            reached = (
                rollout_members.count_reached(tx, rollout) if staged is None else definition_rollouts.given(staged)
            )
            rollout = replace(rollout, active=reached)
            move = metadata_rollout.next_move(rollout, report, current, total, now)
        return rollout, move

    def _watch_members(self, tx: Connection, rollout: Rollout, staged: Staged, now: float) -> None:
        """See how far the members of a step are; an alarm, or one that fails, does not wait for the others."""
        definition_rollouts.follow_time(tx, rollout, staged, now, self._timeout_s)
        there = definition_rollouts.note_reached(tx, rollout, staged) if rollout.giving is not None else 0
        # Their time to report begins once they have it.
        begun = replace(rollout, step_at=now)
        refused = metadata_rollout.refusal(begun, rollout_reports.report_of(tx, rollout), now)
        if refused:
            self._refuse(tx, rollout, refused, now, staged)
            return
        reason = "the members of the group are being changed"
        if rollout.step:
            reason = f"step {rollout.step}: its members get the new definition, {there} of {rollout.active} so far"
        poll_s = BUSY_S if staged.stack.size <= CHUNK else POLL_S
        rollouts.save(tx, replace(begun, due_at=now + poll_s, reason=reason))

    def _give(self, tx: Connection, step: Rollout, staged: Staged, target: int, now: float) -> None:
        """Give the new definition to the members of a step."""
        given = definition_rollouts.give(self._db, tx, step, staged, target, now, self._timeout_s)
        reason = f"step {step.step}: {_extent(given)} from now on"
        self._note(tx, given, reason, now)
        rollouts.save(tx, replace(given, reason=reason, due_at=now + BUSY_S))

    def _repeat(self, tx: Connection, rollout: Rollout, members: Row[Any], staged: Staged | None, now: float) -> None:
        """Give what is new to others in place of the members of a step, which are gone; its time goes on."""
        rest = replace(rollout, due_at=now + BUSY_S, reason=f"step {rollout.step}: its members are gone")
        if staged is None:
            self._fill(tx, rollout, members, now, partial(rollouts.save, tx, rest))
        elif rollout.active < rollout.target:
            self._give(tx, rollout, staged, rollout.target, now)
        else:
            definition_rollouts.note_given(tx, rollout, staged, now)
            rollouts.save(tx, rest)

    def _fill(
        self,
        tx: Connection,
        rollout: Rollout,
        members: Row[Any],
        now: float,
        none_left: Callable[[], object] | None = None,
    ) -> None:
        """Give the new metadata to the members of a step, so many at a time that others need not wait.

        Args:
            tx: The transaction; the row of the rollout is locked.
            rollout: The rollout at that step.
            members: Row of the stack with the members.
            now: The time.
            none_left: What follows where no member is left that does not have them; None to go on with fewer.
        """
        wanted = min(rollout.target - rollout.active, CHUNK)
        found, place = rollout_members.activate(tx, rollout, int(members.shards), wanted)
        if not found and none_left is not None:
            none_left()
            return
        active = rollout.active + len(found)
        # Fewer than counted: some are being made, or have gone. They get the metadata of the group in the end.
        target = rollout.target if len(found) == wanted else active
        filled = replace(rollout, active=active, target=target, place=place, due_at=now)
        if len(found) < wanted:
            filled = replace(filled, total=active)
        if active >= target:
            reason = f"step {rollout.step}: {active} of {max(filled.total, active)} members have the new {rollout.what}"
            filled = replace(filled, reason=reason)
            self._note(tx, filled, reason, now)
        rollouts.save(tx, filled)

    def _succeed(self, tx: Connection, rollout: Rollout, now: float, staged: Staged | None = None) -> None:
        done = f"all {rollout.active} members have the new {rollout.what}"
        self._end(tx, rollout, RolloutState.SUCCEEDED, done, now, staged)

    def _refuse(self, tx: Connection, rollout: Rollout, reason: str, now: float, staged: Staged | None = None) -> None:
        if rollout.settings.on_failure == OnFailure.HOLD:
            held = f"{reason}; held until a user resumes, rolls back or aborts it"
            rollouts.save(tx, replace(rollout, state=RolloutState.HELD, due_at=None, reason=held))
            self._note(tx, rollout, held, now)
        elif rollout.settings.on_failure == OnFailure.ABORT:
            self._end(tx, rollout, RolloutState.ABORTED, f"{reason}; {left_as_it_is(rollout)}", now, staged)
        else:
            self._roll_back(tx, rollout, reason, now, staged)

    def _roll_back(
        self, tx: Connection, rollout: Rollout, reason: str, now: float, staged: Staged | None = None
    ) -> Rollout:
        count = rollouts.deactivate(tx, rollout.key)
        if rollout.subject is not None:
            count = rollout.active
        back = f"{reason}; {having(count, 'has', 'have')} the old {rollout.what} again"
        return self._end(tx, replace(rollout, active=0), RolloutState.ROLLED_BACK, back, now, staged)

    def _end(
        self,
        tx: Connection,
        rollout: Rollout,
        state: RolloutState,
        reason: str,
        now: float,
        staged: Staged | None = None,
    ) -> Rollout:
        """End a rollout, and have the pass of the group's shard conclude its row; return what is stored."""
        if state is RolloutState.SUCCEEDED:
            rollout_reports.hand_on_reports(tx, rollout, now)
        ended = replace(rollout, state=state, due_at=None, reason=f"rollout {reason}")
        self._carry_out(tx, ended, staged, now)
        rollouts.save(tx, ended)
        self._note(tx, rollout, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])
        return ended

    def _note(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> None:
        """Record an event of the group that leaves its status as it is."""
        owner = records.owners(tx, [rollout.key]).get(rollout.key)
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(ROLLOUT, f"Rollout: {reason}")], now)


def left_as_it_is(rollout: Rollout) -> str:
    return f"{having(rollout.active, 'keeps', 'keep')} the new {rollout.what}, the others the old"


def _extent(rollout: Rollout) -> str:
    return f"{rollout.active} of {max(rollout.total, rollout.active)} members have the new {rollout.what}"


def _obstacle(stack: Row[Any] | None, members: Row[Any] | None, staged: Staged | None) -> str:
    """Return why a rollout may not go on now; "" where it may.

    Args:
        stack: Stack of the group.
        members: Stack with its members.
        staged: The members, where the rollout gives them a new definition: it waits for them itself.
    """
    if stack is None or members is None:
        return "the group is gone"
    facts = stacks.facts(stack)
    if facts.held:
        return "the stack is locked or suspended"
    if members.status == Status.IN_PROGRESS and (members.action in NON_CHANGING_ACTIONS) == (staged is not None):
        return "the members of the group are being changed"
    return ""
