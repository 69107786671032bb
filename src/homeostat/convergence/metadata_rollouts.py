"""Rollouts of metadata: what makes them go on, and how users steer them (RU3 to RU8).

A rollout is rows and due times; nothing runs in between. A report of a member, the time, or a user makes it go on: each
locks its row, asks `planner.policies.metadata_rollout` for the next move, and stores it. The row of the
group waits for its end (`planner.lifecycle.metadata_updates`).
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.model.errors import Rejected
from homeostat.model.plan import Priority
from homeostat.model.rollout import OnFailure, Rollout, RolloutState
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Status
from homeostat.planner.policies import metadata_rollout
from homeostat.planner.policies.metadata_rollout import Advance, Checked, Finish, Refuse, Rest
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.stacks import rollouts, stacks

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


Ask = Callable[[str], str]
"""URL -> status code of its answer to GET, or why there is none; may take seconds, and raises nothing."""


def unasked(url: str) -> str:
    """Leave a URL to the workers, which have a client for it."""
    return "not asked yet"


class MetadataRollouts:
    """What makes the rollouts of one database go on."""

    def __init__(self, db: Database, ask: Ask = unasked, pool: Executor | None = None) -> None:
        """Take the parts.

        Args:
            db: The database.
            ask: Asks a URL that a user named.
            pool: Threads in which URLs are asked; None to ask them in the caller's.
        """
        self._db = db
        self._ask = ask
        self._pool = pool
        self._asking = threading.Lock()
        self._apart: set[str] = set()

    def round(self) -> int:
        """Make rollouts go on that time moves on; return how many."""
        with self._db.write() as tx:
            due = rollouts.claim_due(tx, self._db.now_of(tx), ROUND_MAX)
            asking = rollouts.asking(tx, due)
        for key in due:
            if key in asking and self._pool is not None:
                self._advance_apart(self._pool, key)
            else:
                self.advance(key)
        return len(due)

    def _advance_apart(self, pool: Executor, key: str) -> None:
        """Make a rollout go on in another thread, since URLs that users name may take their time to answer."""
        with self._asking:
            if key in self._apart:
                return
            self._apart.add(key)
        pool.submit(self._apart_advance, key)

    def _apart_advance(self, key: str) -> None:
        try:
            self.advance(key)
        except Exception:
            LOG.exception("the rollout of group %s failed to go on; it is tried again", key)
        finally:
            with self._asking:
                self._apart.discard(key)

    def advance(self, key: str, alarm: str = "") -> None:
        """Make a rollout go on as far as it may by now; nothing where it does not run.

        Args:
            key: Key of the row of the group.
            alarm: What an alarm says, for which it stops; "" for none.
        """
        checks = self._checked(key) if not alarm else Checked()
        with self._db.write() as tx:
            rollout = rollouts.lock(self._db, tx, key)
            if rollout is None or rollout.state != RolloutState.RUNNING:
                return
            now = self._db.now_of(tx)
            if alarm:
                self._refuse(tx, rollout, f"step {rollout.step}: {alarm}", now)
            else:
                self._go_on(tx, rollout, checks, now)

    def _checked(self, key: str) -> Checked:
        """Ask the URLs that a rollout has to be approved by, before anything is locked."""
        with self._db.read() as tx:
            rollout = rollouts.of_group(tx, key)
        if rollout is None or rollout.state != RolloutState.RUNNING or not rollout.step:
            return Checked()
        refused, waits = [], []
        for url in rollout.settings.checks:
            answer = self._ask(url)
            if answer.startswith("4"):
                refused.append(f"{url} answers {answer}")
            elif not answer.startswith("2"):
                waits.append(f"{url} answers {answer}")
        return Checked(rollout.step, "; ".join(refused), "; ".join(waits))

    # -- going on ----------------------------------------------------------------------------------------------------

    def _go_on(self, tx: Connection, rollout: Rollout, checks: Checked, now: float) -> None:
        stack, members = stacks.get(tx, rollout.stack_id), stacks.get(tx, rollout.members)
        obstacle = _obstacle(stack, members)
        if obstacle or members is None:
            rollouts.save(tx, replace(rollout, due_at=now + BUSY_S, reason=obstacle))
            return
        if rollout.active < rollout.target:
            self._fill(tx, rollout, members, now)
            return
        rollouts.drop_gone(tx, rollout, CHUNK)
        report, total = rollouts.report_of(tx, rollout), int(members.size)
        # What was asked for another step says nothing of this one.
        current = checks if checks.step == rollout.step else Checked(rollout.step, waits="its checks")
        match metadata_rollout.next_move(rollout, report, current, total, now):
            case Advance(target):
                step = replace(rollout, step=rollout.step + 1, total=total, target=target, step_at=now)
                self._fill(tx, replace(step, reported_at=None), members, now)
            case Rest(due_at, reason, reported):
                due = now + POLL_S if due_at is None else min(due_at, now + POLL_S)
                if rollout.settings.checks and self._ask is unasked:
                    due = now  # a worker asks
                at = (rollout.reported_at or now) if reported else None
                rollouts.save(tx, replace(rollout, due_at=due, reason=reason, reported_at=at))
            case Refuse(reason):
                self._refuse(tx, rollout, reason, now)
            case Finish():
                done = f"all {rollout.active} members have the new metadata"
                self._end(tx, rollout, RolloutState.SUCCEEDED, done, now)

    def _fill(self, tx: Connection, rollout: Rollout, members: Row[Any], now: float) -> None:
        """Give the new metadata to the members of a step, so many at a time that others need not wait."""
        wanted = min(rollout.target - rollout.active, CHUNK)
        found, place = rollouts.activate(tx, rollout, int(members.shards), wanted)
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

    def _refuse(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> None:
        if rollout.settings.on_failure == OnFailure.HOLD:
            held = f"{reason}; held until a user resumes, rolls back or aborts it"
            rollouts.save(tx, replace(rollout, state=RolloutState.HELD, due_at=None, reason=held))
            self._note(tx, rollout, held, now)
        elif rollout.settings.on_failure == OnFailure.ABORT:
            self._end(tx, rollout, RolloutState.ABORTED, f"{reason}; {_aborted(rollout)}", now)
        else:
            self._roll_back(tx, rollout, reason, now)

    def _roll_back(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> None:
        count = rollouts.deactivate(tx, rollout.key)
        back = f"{reason}; {count} members have the old metadata again"
        self._end(tx, replace(rollout, active=0), RolloutState.ROLLED_BACK, back, now)

    def _end(self, tx: Connection, rollout: Rollout, state: RolloutState, reason: str, now: float) -> None:
        """End a rollout, and have the pass of the group's shard conclude its row."""
        rollouts.save(tx, replace(rollout, state=state, due_at=None, reason=f"rollout {reason}"))
        self._note(tx, rollout, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])

    def _note(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> None:
        """Record an event of the group that leaves its status as it is."""
        owner = records.owners(tx, [rollout.key]).get(rollout.key)
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(ROLLOUT, f"Rollout: {reason}")], now)

    # -- steering ----------------------------------------------------------------------------------------------------

    def pause(self, key: str) -> Rollout:
        """Stop a rollout where it is, until it is resumed.

        Raises:
            Rejected: There is none that runs.
        """
        return self._steer(key, "pause", (RolloutState.RUNNING,), state=RolloutState.PAUSED, reason="paused by a user")

    def resume(self, key: str) -> Rollout:
        """Let a rollout that is paused or held go on.

        What has failed so far is accepted, and the members of the step get their time once more.

        Raises:
            Rejected: There is none that is paused or held.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, "resume", (RolloutState.PAUSED, RolloutState.HELD))
            forgiven = rollouts.report_of(tx, rollout).failed_in_all
            going = replace(rollout, state=RolloutState.RUNNING, step_at=now, due_at=now, forgiven=forgiven)
            return self._steered(tx, going, "resumed by a user", now)

    def approve(self, key: str) -> Rollout:
        """Approve the step of a rollout, so that the next one may begin.

        Raises:
            Rejected: There is none that runs.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, "approve", (RolloutState.RUNNING,))
            return self._steered(tx, replace(rollout, approved=rollout.step, due_at=now), "approved by a user", now)

    def promote(self, key: str) -> Rollout:
        """Give the new metadata to all members, whatever the gates say.

        Raises:
            Rejected: There is none that goes on.
        """
        return self._finish(
            key, "promote", RolloutState.SUCCEEDED, "promoted by a user: all members have the new metadata"
        )

    def abort(self, key: str) -> Rollout:
        """End a rollout where it is.

        Raises:
            Rejected: There is none that goes on.
        """
        return self._finish(key, "abort", RolloutState.ABORTED, "aborted by a user")

    def roll_back(self, key: str) -> Rollout:
        """Give the old metadata to all members.

        Raises:
            Rejected: There is none that goes on.
        """
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, "roll back", _GOING)
            self._roll_back(tx, rollout, "rolled back by a user", now)
            return rollouts.of_group(tx, key) or rollout

    def _steer(self, key: str, verb: str, states: tuple[RolloutState, ...], **changed: Any) -> Rollout:
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, verb, states)
            return self._steered(tx, replace(rollout, due_at=None, **changed), changed["reason"], now)

    def _steered(self, tx: Connection, rollout: Rollout, reason: str, now: float) -> Rollout:
        steered = replace(rollout, reason=reason)
        rollouts.save(tx, steered)
        self._note(tx, steered, reason, now)
        shards.wake(tx, rollout.stack_id, now, Priority.USER, [rollout.shard])
        return steered

    def _finish(self, key: str, verb: str, state: RolloutState, reason: str) -> Rollout:
        with self._db.write() as tx:
            rollout, now = self._locked(tx, key, verb, _GOING)
            ended = f"{reason}; {_aborted(rollout)}" if state == RolloutState.ABORTED else reason
            self._end(tx, rollout, state, ended, now)
            return rollouts.of_group(tx, key) or rollout

    def _locked(self, tx: Connection, key: str, verb: str, states: tuple[RolloutState, ...]) -> tuple[Rollout, float]:
        rollout = rollouts.lock(self._db, tx, key)
        if rollout is None or RolloutState(rollout.state).ended:
            raise Rejected("NotFound", "The group has no rollout in progress.")
        if rollout.state not in states:
            message = (
                f"The rollout of {rollout.name} is {rollout.state}: to {verb} it, it has to be {' or '.join(states)}."
            )
            raise Rejected("Conflict", message)
        return rollout, self._db.now_of(tx)


_GOING = (RolloutState.RUNNING, RolloutState.PAUSED, RolloutState.HELD)


def _aborted(rollout: Rollout) -> str:
    return f"{rollout.active} members keep the new metadata, the others the old"


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
