"""Due rollouts, requests to their URLs, and users' commands (RU3 to RU8).

A rollout is rows and due times; nothing runs in between. A report of a member, the time, or a user moves the rollout:
each locks its row, and stores its next move (`moves`). The row of the group waits for the end of the rollout, see
`planner.lifecycle.rollouts`.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from homeostat.convergence.members import definitions
from homeostat.convergence.members.definitions import MembersNotLocked
from homeostat.convergence.members.member_change import BUSY_S, MemberChange, unchanged
from homeostat.convergence.members.moves import UNASKED, RolloutMoves
from homeostat.convergence.threads.fair_turns import FairTurns
from homeostat.model.errors import Rejected
from homeostat.model.plan import Priority
from homeostat.model.rollout import Rollout, RolloutState, Steering
from homeostat.planner.members.rollout_move import Checked
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import shards
from homeostat.store.stacks import locks, rollout_reports, rollouts, stacks

LOG = logging.getLogger(__name__)
ROUND_MAX = 50
"""Rollouts that one run of the periodic task advances."""
USER = "a user"
"""The user in events if the service does not know the names of users."""
NO_ROLLOUT = "The group has no rollout in progress."


DONE = object()
T = TypeVar("T")
Ask = Callable[[str], str]
"""URL -> status code of its answer to GET, or the reason of its absence; may take seconds, and raises nothing."""


class RolloutEngine(RolloutMoves):
    """Drives the rollouts of a database."""

    def __init__(
        self,
        db: Database,
        ask: Ask | None = None,
        turns: FairTurns | None = None,
        timeout_s: float = definitions.TIMEOUT_S,
    ) -> None:
        """Take the parts.

        Args:
            db: The database.
            ask: Requests a URL of a user; None to leave these requests to other processes.
            turns: Threads for these requests; None for the thread of the caller.
            timeout_s: Default seconds in which the members of a step get a new definition.
        """
        super().__init__(db, timeout_s)
        self._ask = ask
        self._turns = turns
        self._asking = threading.Lock()
        self._apart: set[str] = set()

    def round(self) -> int:
        """Advance the due rollouts; return their number."""
        with self._db.write() as tx:
            # The claim is a due time that lies a lease ahead: if this process dies meanwhile, the rollouts are due
            # again.
            due = rollouts.claim_due(tx, tx.now(), ROUND_MAX)
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
        """Advance a rollout in another thread, since users' URLs may answer slowly.

        Each URL is a separate turn, and a rollout requests its URLs one after another.
        """
        with self._asking:
            # Claimed again while a URL answers slowly: one series of requests for each rollout is enough.
            if key in self._apart:
                return
            self._apart.add(key)
        left = self._ask_and_advance(key)

        def turn() -> bool:
            more = False
            try:
                more = self._safely(lambda _: next(left, DONE) is not DONE, key) or False
            finally:
                # Whatever ended the turn: a key that stays here would never be asked for again by this process.
                if not more:
                    with self._asking:
                        self._apart.discard(key)
            return more

        turns.add(project, turn)

    def _safely(self, act: Callable[[str], T], key: str) -> T | None:
        """Advance a rollout; return None after an error, which delays no other rollout: this one is due again later."""
        try:
            return act(key)
        except Exception:
            LOG.exception("the rollout of group %s failed to go on; it is tried again", key)
            return None

    def advance(self, key: str) -> None:
        """Advance a running rollout as far as possible without requests to URLs."""
        self._advance(key, UNASKED)

    def _ask_and_advance(self, key: str) -> Iterator[None]:
        """Request the URLs of a rollout before anything is locked, and advance the rollout.

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
            # An error of the client is a verdict about the release. Anything else, such as no answer, may pass.
            if answer.startswith("4"):
                refused.append(f"{url} answers {answer}")
            elif not answer.startswith("2"):
                waits.append(f"{url} answers {answer}")
        urls = rollout.settings.checks
        self._advance(key, Checked(rollout.step, "; ".join(refused), "; ".join(waits), urls=urls))

    def _advance(self, key: str, checks: Checked) -> None:
        try:
            self._move(key, checks)
        except MembersNotLocked:  # rarely: without the lock the members' own work proceeds during a rollout
            self._move(key, checks, locks=True)

    def _move(self, key: str, checks: Checked, *, locks: bool = False) -> None:
        with self._db.write() as tx:
            locked = locks and definitions.lock_members(tx, key)
            rollout, now = rollouts.lock(tx, key), tx.now()
            if rollout is None:
                return
            change = self._change(tx, rollout, locked=locked)
            if rollout.state == RolloutState.RUNNING:
                self._go_on(tx, rollout, checks, now, change)
            elif RolloutState(rollout.state).ended and rollout.subject is not None:
                stack = stacks.get(tx, rollout.stack_id)
                held = stack is not None and stacks.facts(stack).frozen
                if not held:
                    change.end(rollout, now)
                rollouts.save(tx, replace(rollout, due_at=now + BUSY_S if held else None))

    # -- steering ----------------------------------------------------------------------------------------------------

    def pause(self, key: str, by: str = USER) -> Rollout:
        """Pause a rollout until a user resumes it.

        Args:
            key: Key of the row of the group.
            by: The user, for the event.

        Raises:
            Rejected: NotFound without a rollout in progress; Conflict unless it is running; StackLocked.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, Steering.PAUSE)
            paused = replace(rollout, state=RolloutState.PAUSED, due_at=None)
            return self._steered(tx, paused, f"paused by {by}", now)

    def resume(self, key: str, by: str = USER) -> Rollout:
        """Resume a paused or held rollout.

        Failures so far, and alarms, are accepted, and the time of the step starts again.

        Raises:
            Rejected: NotFound; Conflict if the rollout is neither paused nor held; StackLocked; NotSupported for a
                suspended stack.
        """
        with self._db.write() as tx:
            rollout, now, change = self._locked_with_members(tx, key, Steering.RESUME)
            forgiven = rollout_reports.report_of(tx, rollout).failed_in_all
            rollout = change.retry(rollout, now)
            going = replace(rollout, state=RolloutState.RUNNING, step_at=now, due_at=now, forgiven=forgiven, alarm="")
            return self._steered(tx, going, f"resumed by {by}", now)

    def approve(self, key: str, by: str = USER, step: int | None = None) -> Rollout:
        """Approve the step of a rollout, so that the next step may begin.

        Args:
            key: Key of the row of the group.
            by: The user, for the event.
            step: The step to approve; None for the present step.

        Raises:
            Rejected: NotFound; Conflict if the rollout is not running, needs no approval, or is at another step;
                StackLocked; NotSupported for a suspended stack.
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
            rollout, now, change = self._locked_with_members(tx, key, Steering.PROMOTE)
            promoted = f"promoted by {by}: all members have the new {rollout.what}"
            return self._end(tx, rollout, RolloutState.SUCCEEDED, promoted, now, change)

    def abort(self, key: str, by: str = USER) -> Rollout:
        """End a rollout in its present state.

        Raises:
            Rejected: NotFound; StackLocked.
        """
        with self._db.write() as tx:
            rollout, now, change = self._locked_with_members(tx, key, Steering.ABORT)
            aborted = f"aborted by {by}; {unchanged(rollout)}"
            return self._end(tx, rollout, RolloutState.ABORTED, aborted, now, change)

    def roll_back(self, key: str, by: str = USER) -> Rollout:
        """Give the old metadata to all members.

        Raises:
            Rejected: NotFound; StackLocked.
        """
        with self._db.write() as tx:
            rollout, now, change = self._locked_with_members(tx, key, Steering.ROLL_BACK)
            return self._roll_back(tx, rollout, f"rolled back by {by}", now, change)

    def _steered(self, tx: Transaction, rollout: Rollout, reason: str, now: float) -> Rollout:
        steered = replace(rollout, reason=reason)
        rollouts.save(tx, steered)
        self._note(tx, steered, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])
        return steered

    def _locked_with_members(
        self, tx: Transaction, key: str, steering: Steering
    ) -> tuple[Rollout, float, MemberChange]:
        """Lock the rollout, its group and its members; return the rollout, the time, and the change of its members.

        Raises:
            Rejected: As `_locked`; Conflict if a newer definition waits for its rollout.
        """
        locked = definitions.lock_members(tx, key)
        rollout, now = self._locked(tx, key, steering)
        change = self._change(tx, rollout, locked=locked)
        if not change.is_current:
            message = f"The members of {rollout.name} are about to get another definition: look at it again."
            raise Rejected("Conflict", message)
        return rollout, now, change

    def _locked(self, tx: Transaction, key: str, steering: Steering) -> tuple[Rollout, float]:
        """Lock the stack of a rollout, its shard, and then the rollout; return the rollout and the time."""
        unlocked = rollouts.of_group(tx, key)
        stack = None if unlocked is None else locks.changeable(tx, unlocked.stack_id)
        rollout = rollouts.lock(tx, key)
        if stack is None or rollout is None or RolloutState(rollout.state).ended:
            raise Rejected("NotFound", NO_ROLLOUT)
        verb = steering.replace("_", " ")
        if rollout.state not in steering.states:
            needed = " or ".join(steering.states)
            message = f"The rollout of {rollout.name} is {rollout.state}: to {verb} it, it has to be {needed}."
            raise Rejected("Conflict", message)
        # Suspended members cannot take any definition, neither the new nor the old.
        changes = rollout.subject is not None and steering is not Steering.PAUSE
        if stack.suspended and (steering.goes_forward or changes):
            message = f"To {verb} a rollout when its stack is suspended is not supported"
            raise Rejected("NotSupported", f"{message}: resume the stack {stack.name} first.")
        return rollout, tx.now()
