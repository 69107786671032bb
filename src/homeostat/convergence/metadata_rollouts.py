"""Rollouts of metadata: what makes them go on, and how users steer them (RU3 to RU8).

A rollout is rows and due times; nothing runs in between. A report of a member, the time, or a user makes it go on: each
locks its row, asks `planner.policies.metadata_rollout` for the next move, and stores it. The row of the
group waits for its end (`planner.lifecycle.metadata_updates`).
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Row

from homeostat.convergence.fair_turns import FairTurns
from homeostat.model.errors import Rejected
from homeostat.model.plan import Priority
from homeostat.model.rollout import MemberOrder, OnFailure, Rollout, RolloutState, Steering, having
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Status
from homeostat.planner.policies import metadata_rollout
from homeostat.planner.policies.metadata_rollout import Advance, Checked, Finish, Move, Refuse, Rest
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.stacks import locks, rollout_members, rollout_reports, rollouts, stacks

LOG = logging.getLogger(__name__)
ROUND_MAX = 50
"""Rollouts that one run of the periodic task makes go on."""
CHUNK = 2000
"""Members that get the new metadata in one transaction."""
BUSY_S = 1.0
"""Time until a rollout is tried again whose group is being changed, or whose stack is locked or suspended."""
ROLLOUT = "ROLLOUT"
"""Action of the events about a rollout."""
POLL_S = 5.0
"""Longest time between two looks at a rollout whose members are waited for: a process may die after a report."""
USER = "a user"
"""Who steers a rollout where the service does not know the names of users."""
NO_ROLLOUT = "The group has no rollout in progress."


DONE = object()
T = TypeVar("T")
Ask = Callable[[str], str]
"""URL -> status code of its answer to GET, or why there is none; may take seconds, and raises nothing."""
UNASKED = Checked(asked=False)


class MetadataRollouts:
    """What makes the rollouts of one database go on."""

    def __init__(self, db: Database, ask: Ask | None = None, turns: FairTurns | None = None) -> None:
        """Take the parts.

        Args:
            db: The database.
            ask: Asks a URL that a user named; None to leave that to other processes.
            turns: Threads in which URLs are asked; None to ask them in the caller's.
        """
        self._db = db
        self._ask = ask
        self._turns = turns
        self._asking = threading.Lock()
        self._apart: set[str] = set()

    def round(self) -> int:
        """Make rollouts go on that time moves on; return how many."""
        with self._db.write() as tx:
            due = rollouts.claim_due(tx, self._db.now_of(tx), ROUND_MAX)
            asking = rollouts.asking(tx, due) if self._ask is not None else {}
        for key in due:
            if key not in asking:
                self._safely(self.advance, key)
            elif self._turns is None:
                self._safely(lambda key: deque(self._ask_and_advance(key), maxlen=0), key)
            else:
                self._apart_from_others(self._turns, asking[key], key)
        return len(due)

    def _apart_from_others(self, turns: FairTurns, project: str, key: str) -> None:
        """Make a rollout go on in another thread, since URLs that users name may take their time to answer.

        Each URL is a turn of its own, and one rollout asks one at a time.
        """
        with self._asking:
            if key in self._apart:
                return
            self._apart.add(key)
        left = self._ask_and_advance(key)

        def turn() -> bool:
            more = False
            try:
                more = self._safely(lambda _: next(left, DONE) is not DONE, key) or False
            finally:
                if not more:
                    with self._asking:
                        self._apart.discard(key)
            return more

        turns.add(project, turn)

    def _safely(self, act: Callable[[str], T], key: str) -> T | None:
        """Make a rollout go on; one that cannot holds up no other, and is due again later: None."""
        try:
            return act(key)
        except Exception:
            LOG.exception("the rollout of group %s failed to go on; it is tried again", key)
            return None

    def advance(self, key: str) -> None:
        """Make a rollout go on as far as it may by now without asking URLs; nothing where it does not run."""
        self._advance(key, UNASKED)

    def _ask_and_advance(self, key: str) -> Iterator[None]:
        """Ask the URLs that a rollout has to be approved by, before anything is locked, and make it go on.

        Yields between two URLs.
        """
        with self._db.read() as tx:
            rollout = rollouts.of_group(tx, key)
        if rollout is None:
            return
        if self._ask is None or rollout.state != RolloutState.RUNNING or not rollout.step:
            self._advance(key, UNASKED)
            return
        refused, waits = [], []
        for number, url in enumerate(rollout.settings.checks):
            if number:
                yield
            answer = self._ask(url)
            if answer.startswith("4"):
                refused.append(f"{url} answers {answer}")
            elif not answer.startswith("2"):
                waits.append(f"{url} answers {answer}")
        self._advance(key, Checked(rollout.step, "; ".join(refused), "; ".join(waits)))

    def _advance(self, key: str, checks: Checked) -> None:
        with self._db.write() as tx:
            rollout = rollouts.lock(self._db, tx, key)
            if rollout is not None and rollout.state == RolloutState.RUNNING:
                self._go_on(tx, rollout, checks, self._db.now_of(tx))

    # -- going on ----------------------------------------------------------------------------------------------------

    def _go_on(self, tx: Connection, rollout: Rollout, checks: Checked, now: float) -> None:
        stack, members = stacks.get(tx, rollout.stack_id), stacks.get(tx, rollout.members)
        obstacle = _obstacle(stack, members)
        if obstacle or members is None:
            # The members of the step get their time once more when the obstacle is gone.
            rollouts.save(tx, replace(rollout, due_at=now + BUSY_S, step_at=now, reason=obstacle))
            return
        if rollout.unbegun:  # the pass that sees its handles begins it
            rollouts.save(tx, replace(rollout, due_at=None))
            return
        if rollout.active < rollout.target:
            self._fill(tx, rollout, members, now)
            return
        if rollout.settings.order == MemberOrder.ZONE and not rollout.step:
            rollout = rollout_members.find_zones(tx, rollout, int(members.shards))
            if rollout.place < members.shards:
                rollouts.save(tx, replace(rollout, due_at=now))
                return
            rollout = replace(rollout, place=0)
        rollout_members.drop_gone(tx, rollout, CHUNK)
        rollout, move = self._next_move(tx, rollout, checks, int(members.size), now)
        match move:
            case Advance(target):
                step = replace(rollout, step=rollout.step + 1, total=int(members.size), target=target, step_at=now)
                self._fill(tx, replace(step, reported_at=None), members, now, begins=True)
            case Rest(due_at, reason, reported):
                due = now + POLL_S if due_at is None else min(due_at, now + POLL_S)
                at = (rollout.reported_at or now) if reported else None
                rollouts.save(tx, replace(rollout, due_at=due, reason=reason, reported_at=at))
            case Refuse(reason):
                self._refuse(tx, rollout, reason, now)
            case Finish():
                self._succeed(tx, rollout, now)

    def _next_move(
        self, tx: Connection, rollout: Rollout, checks: Checked, total: int, now: float
    ) -> tuple[Rollout, Move]:
        """Return what comes next, and the rollout with the members counted that have the new metadata."""
        report = rollout_reports.report_of(tx, rollout)
        # What was asked for another step says nothing of this one.
        current = checks if checks.step == rollout.step else UNASKED
        move = metadata_rollout.next_move(rollout, report, current, total, now)
        if isinstance(move, Finish):
            # Members that were reached and have gone are still counted, and as many others were never reached.
            rollout = replace(rollout, active=rollout_members.count_reached(tx, rollout))
            move = metadata_rollout.next_move(rollout, report, current, total, now)
        return rollout, move

    def _fill(self, tx: Connection, rollout: Rollout, members: Row[Any], now: float, *, begins: bool = False) -> None:
        """Give the new metadata to the members of a step, so many at a time that others need not wait.

        Where no member is left to begin a step with, the rollout is over.
        """
        wanted = min(rollout.target - rollout.active, CHUNK)
        found, place = rollout_members.activate(tx, rollout, int(members.shards), wanted)
        if not found and begins:  # Others that are counted have no thing: they get the metadata of the group.
            self._succeed(tx, replace(rollout, step=rollout.step - 1), now)
            return
        active = rollout.active + len(found)
        # Fewer than counted: some are being made, or have gone. They get the metadata of the group in the end.
        target = rollout.target if len(found) == wanted else active
        filled = replace(rollout, active=active, target=target, place=place, due_at=now)
        if len(found) < wanted:
            filled = replace(filled, total=active)
        if active >= target:
            reason = f"step {rollout.step}: {active} of {max(filled.total, active)} members have the new metadata"
            filled = replace(filled, reason=reason)
            self._note(tx, filled, reason, now)
        rollouts.save(tx, filled)

    def _succeed(self, tx: Connection, rollout: Rollout, now: float) -> None:
        done = f"all {rollout.active} members have the new metadata"
        self._end(tx, rollout, RolloutState.SUCCEEDED, done, now)

    def _refuse(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> None:
        if rollout.settings.on_failure == OnFailure.HOLD:
            held = f"{reason}; held until a user resumes, rolls back or aborts it"
            rollouts.save(tx, replace(rollout, state=RolloutState.HELD, due_at=None, reason=held))
            self._note(tx, rollout, held, now)
        elif rollout.settings.on_failure == OnFailure.ABORT:
            self._end(tx, rollout, RolloutState.ABORTED, f"{reason}; {_aborted(rollout)}", now)
        else:
            self._roll_back(tx, rollout, reason, now)

    def _roll_back(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> Rollout:
        count = rollouts.deactivate(tx, rollout.key)
        back = f"{reason}; {having(count, 'has', 'have')} the old metadata again"
        return self._end(tx, replace(rollout, active=0), RolloutState.ROLLED_BACK, back, now)

    def _end(self, tx: Connection, rollout: Rollout, state: RolloutState, reason: str, now: float) -> Rollout:
        """End a rollout, and have the pass of the group's shard conclude its row; return what is stored."""
        if state is RolloutState.SUCCEEDED:
            rollout_reports.hand_on_reports(tx, rollout, now)
        ended = replace(rollout, state=state, due_at=None, reason=f"rollout {reason}")
        rollouts.save(tx, ended)
        self._note(tx, rollout, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])
        return ended

    def _note(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> None:
        """Record an event of the group that leaves its status as it is."""
        owner = records.owners(tx, [rollout.key]).get(rollout.key)
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(ROLLOUT, f"Rollout: {reason}")], now)

    # -- steering ----------------------------------------------------------------------------------------------------

    def pause(self, key: str, by: str = USER) -> Rollout:
        """Stop a rollout where it is, until it is resumed.

        Args:
            key: Key of the row of the group.
            by: Who does it, for the event.

        Raises:
            Rejected: NotFound where none is in progress; Conflict for one that does not run; StackLocked.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.PAUSE)
            paused = replace(rollout, state=RolloutState.PAUSED, due_at=None)
            return self._steered(tx, paused, f"paused by {by}", now)

    def resume(self, key: str, by: str = USER) -> Rollout:
        """Let a rollout that is paused or held go on.

        What has failed so far is accepted, with any alarm, and the members of the step get their time once more.

        Raises:
            Rejected: NotFound; Conflict for one that is neither paused nor held; StackLocked; NotSupported for a
                suspended stack.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.RESUME)
            forgiven = rollout_reports.report_of(tx, rollout).failed_in_all
            going = replace(rollout, state=RolloutState.RUNNING, step_at=now, due_at=now, forgiven=forgiven, alarm="")
            return self._steered(tx, going, f"resumed by {by}", now)

    def approve(self, key: str, by: str = USER, step: int | None = None) -> Rollout:
        """Approve the step of a rollout, so that the next one may begin.

        Args:
            key: Key of the row of the group.
            by: Who does it, for the event.
            step: The step that is meant; None for the one that goes on.

        Raises:
            Rejected: NotFound; Conflict for one that does not run, that asks for no approval, or that is at another
                step; StackLocked; NotSupported for a suspended stack.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.APPROVE)
            if not rollout.settings.approval:
                raise Rejected("Conflict", f"The rollout of {rollout.name} asks for no approval: it goes on by itself.")
            if step not in (None, rollout.step):
                message = f"The rollout of {rollout.name} is at step {rollout.step}, not {step}: look at it again."
                raise Rejected("Conflict", message)
            approved = replace(rollout, approved=rollout.step, due_at=now)
            return self._steered(tx, approved, f"step {rollout.step} is approved by {by}", now)

    def promote(self, key: str, by: str = USER) -> Rollout:
        """Give the new metadata to all members, whatever the gates say.

        Raises:
            Rejected: NotFound; StackLocked; NotSupported for a suspended stack.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.PROMOTE)
            promoted = f"promoted by {by}: all members have the new metadata"
            return self._end(tx, rollout, RolloutState.SUCCEEDED, promoted, now)

    def abort(self, key: str, by: str = USER) -> Rollout:
        """End a rollout where it is.

        Raises:
            Rejected: NotFound; StackLocked.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.ABORT)
            aborted = f"aborted by {by}; {_aborted(rollout)}"
            return self._end(tx, rollout, RolloutState.ABORTED, aborted, now)

    def roll_back(self, key: str, by: str = USER) -> Rollout:
        """Give the old metadata to all members.

        Raises:
            Rejected: NotFound; StackLocked.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.ROLL_BACK)
            return self._roll_back(tx, rollout, f"rolled back by {by}", now)

    def _steered(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> Rollout:
        steered = replace(rollout, reason=reason)
        rollouts.save(tx, steered)
        self._note(tx, steered, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])
        return steered

    def _locked(self, tx: Connection, key: str, steering: Steering) -> tuple[Rollout, float]:
        """Return the rollout with its row locked, after its stack and its shard, and the time."""
        found = rollouts.of_group(tx, key)
        stack = None if found is None else locks.changeable(self._db, tx, found.stack_id)
        rollout = rollouts.lock(self._db, tx, key)
        if stack is None or rollout is None or RolloutState(rollout.state).ended:
            raise Rejected("NotFound", NO_ROLLOUT)
        verb = steering.replace("_", " ")
        if rollout.state not in steering.states:
            needed = " or ".join(steering.states)
            message = f"The rollout of {rollout.name} is {rollout.state}: to {verb} it, it has to be {needed}."
            raise Rejected("Conflict", message)
        if stack.suspended and steering.goes_forward:
            message = f"To {verb} a rollout when its stack is suspended is not supported"
            raise Rejected("NotSupported", f"{message}: resume the stack {stack.name} first.")
        return rollout, self._db.now_of(tx)


def _aborted(rollout: Rollout) -> str:
    return f"{having(rollout.active, 'keeps', 'keep')} the new metadata, the others the old"


def _obstacle(stack: Row[Any] | None, members: Row[Any] | None) -> str:
    """Return why a rollout may not go on now; "" where it may."""
    if stack is None or members is None:
        return "the group is gone"
    facts = stacks.facts(stack)
    if facts.held:
        return "the stack is locked or suspended"
    if members.status == Status.IN_PROGRESS and members.action not in NON_CHANGING_ACTIONS:
        return "the members of the group are being changed"
    return ""
