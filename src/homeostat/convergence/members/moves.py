"""The next move of a rollout, stored in the transaction that has locked its row (RU3, RU4, RU6).

`planner.members.rollout_move` decides about the move.
"""

from dataclasses import replace

from homeostat.convergence.members import definitions
from homeostat.convergence.members.definitions import DefinitionChange
from homeostat.convergence.members.member_change import (
    BUSY_S,
    CHUNK,
    POLL_S,
    Changed,
    Changing,
    Failed,
    MemberChange,
    unchanged,
)
from homeostat.convergence.members.metadata import MetadataChange
from homeostat.model.plan import Priority
from homeostat.model.rollout import MemberOrder, OnFailure, Rollout, RolloutState, having
from homeostat.model.status import Status
from homeostat.planner.members import rollout_move
from homeostat.planner.members.rollout_move import Advance, Checked, Finish, Move, Refuse, Repeat, Rest
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.stacks import rollout_members, rollout_reports, rollouts, stacks

ROLLOUT = "ROLLOUT"
"""Action of the events about a rollout."""
UNASKED = Checked(asked=False)


class RolloutMoves:
    """Moves and ends of single rollouts.

    Args:
        db: The database.
        timeout_s: Default seconds in which the members of a step get a new definition.
    """

    def __init__(self, db: Database, timeout_s: float) -> None:
        self._db = db
        self._timeout_s = timeout_s

    def _change(self, tx: Transaction, rollout: Rollout, *, locked: bool) -> MemberChange:
        """Return the change of a rollout's members; `locked` says whether their stack and its shards are locked."""
        if rollout.subject is None:
            return MetadataChange(tx)
        return DefinitionChange(tx, definitions.staged(tx, rollout, locked=locked), self._timeout_s)

    def _go_on(self, tx: Transaction, rollout: Rollout, checks: Checked, now: float, change: MemberChange) -> None:
        stack, members = stacks.get(tx, rollout.stack_id), stacks.get(tx, rollout.members)
        obstacle = _obstacle(stack, members, change)
        if obstacle or members is None:
            # The time of the step starts again at the end of the obstacle.
            rollouts.save(tx, replace(rollout, due_at=now + BUSY_S, step_at=now, reason=obstacle))
        elif rollout.unbegun:  # begun by the first pass that sees its handles
            rollouts.save(tx, replace(rollout, due_at=None))
        else:
            match change.progress(rollout, now):
                case Changing() as changing:
                    self._save(tx, changing, now)
                case Failed(reason):
                    self._refuse(tx, rollout, reason, now, change)
                case Changed(changed, event):
                    self._note(tx, changed, event, now)
                    zoned = self._zoned(tx, changed, members, now)
                    if zoned is not None:
                        self._step(tx, zoned, checks, int(members.size), change, now)

    def _zoned(self, tx: Transaction, rollout: Rollout, members: StackRow, now: float) -> Rollout | None:
        """Return a rollout with the zones of its members, if needed; None while they are being collected."""
        if rollout.settings.order != MemberOrder.ZONE or rollout.step:
            return rollout
        rollout = rollout_members.find_zones(tx, rollout, int(members.shards))
        if rollout.place < members.shards:
            rollouts.save(tx, replace(rollout, due_at=now))
            return None
        return replace(rollout, place=0)

    def _step(
        self, tx: Transaction, rollout: Rollout, checks: Checked, total: int, change: MemberChange, now: float
    ) -> None:
        """Make the next move of a rollout once the members of its step, of `total` by now, have the change."""
        change.renew(rollout, rollout_members.gone(tx, rollout, CHUNK), now)
        rollout, move = self._next_move(tx, rollout, checks, total, change, now)
        match move:
            case Advance(target):
                step = replace(rollout, step=rollout.step + 1, total=total, step_at=now, reported_at=None)
                changing = change.give(replace(step, target=target), now)
                if changing is None:
                    # Further members exist as rows only: they will be created with the new metadata.
                    self._succeed(tx, rollout, now, change)
                else:
                    self._save(tx, changing, now)
            case Repeat(target):
                # The new members replace the lost members of the step, whose time continues.
                again = replace(rollout, target=target)
                waits = replace(again, due_at=now + BUSY_S, reason=f"step {rollout.step}: its members are gone")
                self._save(tx, change.give(again, now) or Changing(waits), now)
            case Rest(due_at, reason, reported):
                due = now + POLL_S if due_at is None else min(due_at, now + POLL_S)
                at = (rollout.reported_at or now) if reported else None
                rollouts.save(tx, replace(rollout, due_at=due, reason=reason, reported_at=at))
            case Refuse(reason):
                self._refuse(tx, rollout, reason, now, change)
            case Finish():
                self._succeed(tx, rollout, now, change)

    def _next_move(
        self, tx: Transaction, rollout: Rollout, checks: Checked, total: int, change: MemberChange, now: float
    ) -> tuple[Rollout, Move]:
        """Return the rollout with a fresh count of the changed members, and the next move."""
        report = rollout_reports.report_of(tx, rollout)
        # Answers to a former step, or of former URLs, do not count.
        current = checks if checks.is_about(rollout) else UNASKED
        move = rollout_move.next_move(rollout, report, current, total, now)
        if isinstance(move, Finish | Repeat):
            # `active` counts lost members, too, so as many present members may not have the change yet.
            rollout = replace(rollout, active=change.count(rollout))
            move = rollout_move.next_move(rollout, report, current, total, now)
        return rollout, move

    def _save(self, tx: Transaction, changing: Changing, now: float) -> None:
        self._note(tx, changing.rollout, changing.event, now)
        rollouts.save(tx, changing.rollout)

    # -- ends --------------------------------------------------------------------------------------------------------

    def _succeed(self, tx: Transaction, rollout: Rollout, now: float, change: MemberChange) -> None:
        done = f"all {rollout.active} members have the new {rollout.what}"
        self._end(tx, rollout, RolloutState.SUCCEEDED, done, now, change)

    def _refuse(self, tx: Transaction, rollout: Rollout, reason: str, now: float, change: MemberChange) -> None:
        if rollout.settings.on_failure == OnFailure.HOLD:
            held = f"{reason}; held until a user resumes, rolls back or aborts it"
            rollouts.save(tx, replace(rollout, state=RolloutState.HELD, due_at=None, reason=held))
            self._note(tx, rollout, held, now)
        elif rollout.settings.on_failure == OnFailure.ABORT:
            self._end(tx, rollout, RolloutState.ABORTED, f"{reason}; {unchanged(rollout)}", now, change)
        else:
            self._roll_back(tx, rollout, reason, now, change)

    def _roll_back(self, tx: Transaction, rollout: Rollout, reason: str, now: float, change: MemberChange) -> Rollout:
        count = change.take_back(rollout)
        back = f"{reason}; {having(count, 'has', 'have')} the old {rollout.what} again"
        return self._end(tx, replace(rollout, active=0), RolloutState.ROLLED_BACK, back, now, change)

    def _end(
        self, tx: Transaction, rollout: Rollout, state: RolloutState, reason: str, now: float, change: MemberChange
    ) -> Rollout:
        """End a rollout, and have the pass of the group's shard conclude its row; return the stored rollout."""
        if state is RolloutState.SUCCEEDED:
            rollout_reports.hand_on_reports(tx, rollout, now)
        ended = replace(rollout, state=state, due_at=None, reason=f"rollout {reason}")
        change.end(ended, now)
        rollouts.save(tx, ended)
        self._note(tx, rollout, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])
        return ended

    def _note(self, tx: Transaction, rollout: Rollout, event: str, now: float) -> None:
        """Record an event of the group, if there is a text, without a change of its status."""
        owner = records.owners(tx, [rollout.key]).get(rollout.key) if event else None
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(ROLLOUT, f"Rollout: {event}")], now)


def _obstacle(stack: StackRow | None, members: StackRow | None, change: MemberChange) -> str:
    """Return why a rollout may not proceed now; "" if it may."""
    if stack is None or members is None:
        return "the group is gone"
    facts = stacks.facts(stack)
    if facts.frozen:
        return "the stack is locked or suspended"
    if members.status == Status.IN_PROGRESS and change.is_blocked_by(members.action):
        return "the members of the group are being changed"
    return ""
