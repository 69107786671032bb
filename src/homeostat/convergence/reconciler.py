"""One pass over one shard: load, plan, store intents, perform, record, until nothing more can be done now.

The outcomes of one batch and the intents of the next are stored in one transaction, and the world stays in memory in
between. Every transaction checks the epoch of the lease, so a stale owner writes nothing (invariant 4,
CONTRIBUTING.md).
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import Connection

from homeostat.clock import Clock
from homeostat.clouds.port import Clouds
from homeostat.convergence import rollout, snapshot_end
from homeostat.convergence.executor import StepExecutor
from homeostat.convergence.jobs.lost_shards import LostShards
from homeostat.convergence.limits import Limits
from homeostat.convergence.loader import load
from homeostat.convergence.rollout import Batch
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.redaction import Redaction, Redactions, redacted
from homeostat.model.errors import Superseded
from homeostat.model.plan import Event, Recorded, Step, Verb
from homeostat.model.status import ROLLED_BACK_ON_FAILURE, Action, Status
from homeostat.model.world import Resource, Spares, World, look_interval
from homeostat.observability import tracing
from homeostat.planner import Frontier, outcome
from homeostat.planner.actions.check import look_first
from homeostat.planner.policies.unhealthy import merely_marked
from homeostat.planner.priority import urgency
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import is_outside, kind_of, type_of
from homeostat.store.database import Database
from homeostat.store.schema import Cell
from homeostat.store.shards import brakes, look_schedule, orphans, shard_state, shards
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.retained import Retained
from homeostat.store.shards.shard_state import EncodedWrites, Writes
from homeostat.store.shards.shards import Lease
from homeostat.store.sql import lock_order
from homeostat.store.stacks import action_begin, action_end, locks, snapshots, stack_state, stacks, status_at_rest

LOG = logging.getLogger(__name__)
ROUTINE = ("", outcome.CHANGED)
"""Reasons that quote no value, and so need no redaction."""


class Reconciler:
    """Runner of passes over one database. One instance serves any number of threads."""

    def __init__(
        self,
        db: Database,
        clouds: Clouds,
        executor: StepExecutor,
        clock: Clock,
        keys: Iterator[str],
        limits: Limits,
    ) -> None:
        self.db = db
        self.clouds = clouds
        self.executor = executor
        self.clock = clock
        self.keys = keys
        self.limits = limits
        self.definitions = DesiredGraphs()
        self.redactions = Redactions()
        self.lost = LostShards()
        self._running: dict[Lease, float] = {}

    @property
    def leases(self) -> list[Lease]:
        """Leases of the passes that run now and do not hang: those that the heartbeat renews."""
        since = self.clock.monotonic() - self.limits.hang_s
        alive = [lease for lease, moved_at in self._running.copy().items() if moved_at >= since]
        return sorted(alive, key=lambda lease: (lease.stack_id, lease.number))

    def moves(self, lease: Lease) -> None:
        """Note that the pass under this lease has made progress, so that it does not count as hung."""
        self._running[lease] = self.clock.monotonic()

    def run(self, lease: Lease) -> None:
        """Run one pass over a claimed shard, and give the shard back at the end.

        Where it raises, nothing is lost: the rows say how to go on.

        Raises:
            Superseded: A newer owner has the shard, or a row was changed meanwhile.
            Transient: The database or the cloud cannot be reached.
        """
        self.moves(lease)
        try:
            self._run(Pass(self, lease))
        finally:
            del self._running[lease]

    def _run(self, under_way: "Pass") -> None:
        try:
            under_way.run()
        except Superseded:
            under_way.disown()
            raise
        except Exception as error:
            # The error ends up in logs, events and the shard's row: it must not quote a hidden parameter there, not
            # even in a chained traceback (hence `from None`).
            shown = redacted(error, under_way.told)
            if shown is error:
                raise
            raise shown from None


class Pass:
    """State of one pass over one shard: its world, its frontier, and what the next transaction will store.

    A pass is also the guard (`nested_stacks.ShardGuard`) of the steps that it has performed.
    """

    def __init__(self, passes: Reconciler, lease: Lease) -> None:
        self._p = passes
        self._lease = lease
        self._writes = Writes()
        self._failed = ""
        self._last_words: list[Event] = []
        self._wakes = lease.wakes
        self._mine_until = 0.0
        self._made: list[Step] = []
        self._let_go = False
        self._redaction: Redaction | None = None
        self._world = self._load()
        self._frontier = Frontier(self._world, passes.keys)

    # -- loading -----------------------------------------------------------------------------------------------------

    def _load(self) -> World:
        p, lease = self._p, self._lease
        with p.db.read() as tx:
            shares = (p.limits.heal_share, p.limits.stack_timeout_s)
            loaded = load(tx, p.definitions, lease.stack_id, lease.number, p.clock.now(), *shares)
        world = loaded.world
        world.listing_lag_s = p.clouds(world.stack.project).listing_lag_s
        world.second_look_s = p.limits.second_look_s
        self._failures_before = loaded.shard.failures
        self._healing_before: int = loaded.shard.healing
        tracing.note(revision=world.stack.revision, stack=world.stack.name, resources=len(world.rows))
        # `load` has read how the nested stacks are now; what is news is stored with the first transaction.
        for child, look in loaded.looks:
            self._writes.seen[child.key] = (child, look)
        return world

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Take steps until none is left, the stack fails, the shard is woken, or the time slice is used up."""
        p, frontier = self._p, self._frontier
        started = p.clock.monotonic()
        self._time_out()
        self._expire()
        # A worker may have died after it stored a failed row and before it failed the stack.
        for row in self._world.rows.values():
            self._notice_failure(row)
        while not self._failed:
            now = p.clock.now()
            steps = frontier.steps(now, p.limits.batch)
            acts = [step for step in steps if step.verb is not Verb.RECORD]
            self._collect(steps)
            if not steps:
                break
            # Steps that no cloud hears of are performed before their intent is stored: nothing outside could be lost,
            # and intent and outcome go into one transaction. Steps for a cloud need the stored intent first
            # (invariant 3), so that the next owner finds what a lost request has made.
            outside = [step for step in acts if kind_of(step.row.type)]
            self._act([step for step in acts if not kind_of(step.row.type)])
            if outside or len(self._writes) >= p.limits.batch:
                self._commit(now)
            if self._let_go:
                break
            self._act(outside)
            # A wake-up since the claim means that the world in memory is out of date (a new revision, an observation):
            # the pass ends, and the next one loads afresh. That is how an update takes effect in the middle of another.
            if self._wakes != self._lease.wakes:
                break
            # A look is remembered by this pass alone. It decides what follows from it, however long the look took: the
            # next pass would have to look again, and so would every pass after it.
            looked = any(step.verb is Verb.OBSERVE for step in outside)
            if p.clock.monotonic() - started > p.limits.slice_s and not looked:
                break
        self._finish()

    def _time_out(self) -> None:
        stack = self._world.stack
        if stack.abandoned:
            return  # its shards merely let go of their rows: no cloud can delay that
        now = self._p.clock.now()
        if stack.status == Status.IN_PROGRESS and stack.deadline is not None and now >= stack.deadline:
            self._collect(self._frontier.time_out(now))
            self._failed = "Timed out"

    def _expire(self) -> None:
        """Unlock a stack whose lock has expired (LK7)."""
        p, stack, now = self._p, self._world.stack, self._p.clock.now()
        # Only the first shard does it, so that the shards of a large stack do not compete for its row.
        if not locks.is_over(stack, now) or self._lease.number != 0:
            return
        with p.db.write() as tx:
            # The row of the stack is locked before that of the shard (invariant 5). Unlocking is a new revision, whose
            # wake-up `fence` counts already: the pass ends after its first round.
            locks.unlock_expired(p.db, tx, stack.id, now, p.limits.stack_timeout_s)
            self._wakes = self.fence(tx)

    def _collect(self, steps: list[Step]) -> None:
        """Put the intents of steps into the next transaction; a step that only records is applied at once."""
        writes = self._writes
        for step in steps:
            if step.fails:
                self._refuse(step)
                continue
            writes.events.extend(step.events)
            if step.removed:
                writes.remove(step.row)
            elif step.inserted:
                writes.insert(step.row)
            else:
                writes.intend(step.row)
            for row in step.also:
                writes.intend(row)
            if step.orphan_token:
                writes.orphans += self._orphans(step.row, step.orphan_token)
            if step.spared:
                writes.spared.append(step.spared)
            if step.retained and is_outside(step.row.type):
                writes.retained.append(self._retained(step))
            if step.part is not None:
                writes.parts.append(step.part)
            if step.verb is Verb.RECORD:
                self._notice_failure(step.row)
                self._frontier.apply(step, Recorded(step.row, removed=step.removed))

    def _refuse(self, step: Step) -> None:
        """Note that a step fails the stack, though its row has not failed.

        Its events wait for the transaction that fails the stack, which stores them only while this revision is still
        the newest: so they are stored once for each revision, however many passes decide the same.
        """
        self._last_words += step.events
        self._failed = self._failed or step.fails

    def _act(self, acts: list[Step]) -> None:
        """Perform steps, and put their outcomes into the next transaction."""
        now_of = self._p.clock.now
        writes = self._writes
        # Noted before the requests are sent: should this pass turn out to be superseded, `disown` has to know of every
        # creation that may have been sent and is not stored.
        self._made += [step for step in acts if step.verb is Verb.CREATE]
        for step, answer in self._p.executor.execute(self._world, acts, self, self.told):
            record = outcome.conclude(self._world, step, answer, now_of())
            writes.events.extend(record.events)
            if record.removed:
                writes.remove(record.row)
            else:
                # `conclude` stores only the columns that an outcome usually changes; the token is not among them.
                if record.whole or record.orphan_token:
                    writes.intend(record.row)
                else:
                    writes.conclude(record.row)
                if record.observation is not None:
                    self._observed(record.row)
                self._notice_failure(record.row)
            if record.orphan_token:
                writes.orphans += self._orphans(record.row, record.orphan_token)
            self._frontier.apply(step, record)

    def _orphans(self, row: Resource, token: str) -> list[Orphan]:
        """Return the orphan to watch for a token that was given up; none for what lives in the database alone."""
        return [Orphan(token, kind_of(row.type), self._world.stack.project)] if is_outside(row.type) else []

    def _retained(self, step: Step) -> Retained:
        row, stack = step.row, self._world.stack
        return Retained(stack.project, kind_of(row.type), step.retained, stack.id, stack.name, row.name, step.reason)

    def _observed(self, row: Resource) -> None:
        kind = type_of(row.type)
        self._writes.seen[row.key] = (row, self._world.seen[row.key])
        properties = kind.observed_properties(thing_of(self._world, row, kind))
        if properties:
            self._writes.properties.append((row, properties))

    def _notice_failure(self, row: Resource) -> None:
        """Fail the stack at the first failure of its newest revision.

        What runs already is finished, and judged by a later pass. A `thorough` action (a check, a lock) gives every
        resource its turn first, and fails at the end. A row that a user has merely marked unhealthy fails nothing.
        """
        stack = self._world.stack
        mine = row.fails_stack and row.revision == stack.revision and not merely_marked(row)
        if mine and not stack.thorough and stack.status == Status.IN_PROGRESS and not self._failed:
            self._failed = outcome.stack_failure(self._world, row)

    def check(self) -> None:
        """Make sure that this worker still owns the shard, right before a call that acts on a cloud.

        A worker that was frozen after its last write must not act: another one may have taken over. While the lease
        lasts by this worker's own clock, the database need not be asked.

        Raises:
            Superseded: A newer owner has the shard.
        """
        if self._p.clock.monotonic() >= self._mine_until:
            with self._p.db.write() as tx:
                self.fence(tx)

    def fence(self, tx: Connection, *, stores: bool = True) -> int:
        """Check the epoch in the database, and renew the lease.

        Args:
            tx: A transaction of this pass. It holds the shard's row from now on.
            stores: Whether the transaction stores anything. A pass that stored something has come further than the
                one before, which matters when crashes of its owners are counted (`shards.CRASHES_MAX`).

        Returns:
            The shard's count of wake-ups.

        Raises:
            Superseded: A newer owner has the shard.
        """
        # Read before the database is asked, so that this worker believes in its lease for no longer than the database.
        asked_at = self._p.clock.monotonic()
        wakes = shards.renew(tx, self._lease, self._p.db.now_of(tx), self._p.limits.lease_s, stores=stores)
        self._mine_until = asked_at + self._p.limits.lease_s
        self._p.moves(self._lease)
        return wakes

    def told(self, text: str) -> str:
        """Return a reason or an error without values of hidden parameters, those of earlier revisions included."""
        stack, rows = self._world.stack, self._world.rows.values()
        if stack.secret is False or text in ROUTINE:
            return text
        # Built only when a text has to be checked: most passes have none. Rows still carry values of the revisions at
        # which they were last acted on, and an error may quote those.
        if self._redaction is None:
            numbers = {stack.revision - 1, stack.complete_revision, stack.rollback_to, *(row.revision for row in rows)}
            with self._p.db.read() as tx:
                self._redaction = self._p.redactions.over(tx, stack, numbers)
        return self._redaction.text(text)

    def _hide(self) -> None:
        """Redact every reason that is about to be stored: whatever is stored is shown to users."""
        if self._world.stack.secret is False:
            return
        for row in self._writes.rows():
            row.reason = self.told(row.reason)
        self._writes.events = self._shown(self._writes.events)
        self._failed = self.told(self._failed)

    def _shown(self, events: list[Event]) -> list[Event]:
        return [each if each.reason in ROUTINE else replace(each, reason=self.told(each.reason)) for each in events]

    def _commit(self, now: float) -> None:
        """Store everything collected so far, in one transaction."""
        prepared = self._prepared(now)
        with self._p.db.write() as tx:
            if self._heals_more:
                # Shards of one stack that heal more take turns, see `_count_healing`. A stack is locked before its
                # shards (invariant 5), and `_store` locks the shard.
                stacks.for_update(self._p.db, tx, self._world.stack.id)
            self._store(tx, prepared)
            # Abandoning a stack wakes its shards, so nothing has to be read unless the shard was woken.
            self._let_go = self._wakes != self._lease.wakes and self._is_abandoned(tx)
        # The outcomes of these creations are stored now: the next owner knows of them.
        self._made.clear()

    def _is_abandoned(self, tx: Connection) -> bool:
        """Whether the stack has been abandoned since it was loaded: then none of its things may be touched any more."""
        row = None if self._world.stack.abandoned else stacks.get(tx, self._world.stack.id)
        return row is not None and row.spares == Spares.ALL

    def _prepared(self, now: float) -> EncodedWrites:
        """Return the collected writes encoded for the database; encoding takes time, so it precedes the transaction."""
        self._hide()
        writes, self._writes = self._writes, Writes()
        stack = self._world.stack
        return shard_state.prepare(self._p.db, stack.id, writes, now, secret=stack.secret)

    def _store(self, tx: Connection, prepared: EncodedWrites, *, changes: bool = True) -> None:
        # First of all, so that a stale owner finds out before it writes, and the shard is locked before its rows.
        self._wakes = self.fence(tx, stores=changes)
        stack, parts = self._world.stack, prepared.writes.parts
        self._count_healing(tx)
        shard_state.store(self._p.db, tx, prepared)
        if parts and stack.snapshot is not None:
            place, now = stack.snapshot["place"], prepared.now
            snapshots.save_parts(self._p.db, tx, stack.snapshot["id"], stack.project, place, parts, now)

    @property
    def _heals_more(self) -> bool:
        """Whether a shard of a stack of several is healing more resources than its row says."""
        return self._world.stack.shards > 1 and self._frontier.healing > self._healing_before

    def _count_healing(self, tx: Connection) -> None:
        """Store how many resources this shard heals, for the healing brake of the other shards (ADR 0046).

        Raises:
            Superseded: Another shard began to heal more meanwhile, so together it may be too many. Nothing is stored,
                and the next pass decides with the new sum.
        """
        healing, world = self._frontier.healing, self._world
        if world.stack.shards == 1 or healing == self._healing_before:
            return
        # Healing less needs no check. Healing more does: the caller has locked the stack, so the sum is exact.
        if self._heals_more and brakes.elsewhere(tx, world.stack.id, world.shard) > world.brake.elsewhere:
            raise Superseded("others of the stack are being healed by now")
        brakes.count(tx, world.stack.id, world.shard, healing)
        self._healing_before = healing

    def disown(self) -> None:
        """Hand over to the new owner of the shard: have everything watched that was made and not stored (ADR 0012).

        The new owner looks for each stored intent by its token. But a request of this worker may arrive after that
        look; then the thing belongs to no row. Observers remove what turns up under these tokens, unless a row has
        the token after all.
        """
        given_up = [each for step in self._made for each in self._orphans(step.row, step.row.token)]
        if given_up:
            with self._p.db.write() as tx:
                stack = stacks.for_update(self._p.db, tx, self._world.stack.id)
                # Nothing of an abandoned stack is deleted, whenever it was made.
                if stack is not None and stack.spares != Spares.ALL:
                    orphans.add(self._p.db, tx, given_up, self._p.db.now_of(tx))

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Store what is left, end the stack's action where that is due, and give the shard back, in one transaction."""
        p, frontier, stack = self._p, self._frontier, self._world.stack
        now = p.clock.now()
        # Reading and encoding come before the transaction. Whether the stack is really at rest is decided inside it,
        # with its row locked: a batch or a description that proves premature is not used.
        prepared, last_words = self._prepared(now), self._shown(self._last_words)
        batch, taken = self._next_batch(), self._taken()
        failures = sum(row.fails_stack for row in self._world.rows.values())
        disagrees = status_at_rest.may_be_wrong(stack, failures, at_rest=frontier.at_rest)
        with p.db.write() as tx:
            ends = stack.status == Status.IN_PROGRESS and (self._failed or frontier.at_rest)
            if disagrees or self._heals_more or ends:
                # The stack's row is locked before the shard's (invariant 5). It also makes two shards that come to
                # rest in the same instant take turns, so that one of them sees that it is the last.
                locked = stacks.for_update(p.db, tx, stack.id)
                if locked is not None and locked.revision == stack.revision:
                    prepared.writes.events.extend(last_words)
            if ends and stack.action == Action.UNLOCK and stack.parent_id is None:
                # Should this be the last shard to come to rest, the end of unlocking changes every stack of the tree
                # and wakes all their shards: all are locked here, in the common order, before this pass's own shard.
                lock_order.take_tree(tx, stacks.tree_of(stack.id))
            # A pass that changed nothing must not count as one that got further (`shards.CRASHES_MAX`), nor look like a
            # change to the parent of a nested stack.
            same = prepared.writes.empty and failures == self._failures_before and not (ends or disagrees)
            self._store(tx, prepared, changes=not same)
            # Counted before the stack is judged, which reads the counts of all its shards.
            if failures != self._failures_before:
                shards.count_failures(tx, stack.id, self._lease.number, failures - self._failures_before)
            if self._failed:
                self._fail(tx, now)
            elif frontier.at_rest:
                self._settle(tx, now, batch, taken)
            again_at = None
            if disagrees:
                at_rest, number = frontier.at_rest, self._lease.number
                again_at = status_at_rest.correct(p.db, tx, stack.id, number, failures, now, at_rest=at_rest)
            if frontier.at_rest or failures != self._failures_before:
                self._tell_parent(tx, now)
            wake_at = min((at for at in (self._wake_at(now), again_at) if at is not None), default=None)
            observe_at = self._observe_at(now)
            look_schedule.schedule_look(tx, stack.id, self._lease.number, observe_at)
            kept = len(self._world.definitions)
            reached = shards.PassProgress(
                stack.revision, frontier.size, frontier.unfinished, kept, urgency(self._world)
            )
            shards.release(tx, self._lease, self._lease.wakes, wake_at, reached)

    def _fail(self, tx: Connection, now: float) -> None:
        """FAIL the stack, unless there is a newer revision; roll it back where that is wanted."""
        p, stack = self._p, self._world.stack
        before = action_end.fail(p.db, tx, stack.id, stack.revision, self._failed, now)
        if before is None:
            return
        # A check, a snapshot and the like repeat a revision that was complete: there is nothing to go back to.
        if before.complete_revision == before.revision:
            return
        if not before.disable_rollback and before.action in ROLLED_BACK_ON_FAILURE:
            action_begin.roll_back(p.db, tx, before, now, p.limits.stack_timeout_s)

    def _next_batch(self) -> Batch | None:
        """Return the next batch of a rolling update, where this shard of the group's stack has come to rest."""
        stack = self._world.stack
        if self._failed or not self._frontier.at_rest or stack.status != Status.IN_PROGRESS or stack.parent_id is None:
            return None
        with self._p.db.read() as tx:
            return rollout.next_batch(self._p.db, tx, stack)

    def _taken(self) -> Cell | None:
        """Return the description of a stack whose snapshot is complete, encoded; None while anything is left to do.

        It can be long, so it is made only by a pass that finds this shard at rest already (`settled`). The pass that
        brings the last shard to rest gets None, and `rollout.settle` asks for another one at once.
        """
        stack, settled = self._world.stack, self._world.settled_revision
        ends = stack.status == Status.IN_PROGRESS and self._frontier.at_rest and settled == stack.revision
        if self._failed or not ends or not snapshot_end.is_whole(stack):
            return None
        with self._p.db.read() as tx:
            return snapshot_end.described(self._p.db, tx, stack)

    def _settle(self, tx: Connection, now: float, batch: Batch | None, taken: Cell | None) -> None:
        """Record that the shard is at rest; the last shard of the stack ends its action, or begins the next batch."""
        p, stack = self._p, self._world.stack
        if self._world.settled_revision < stack.revision:
            shards.settle(tx, stack.id, self._lease.number, stack.revision)
        if stack.status == Status.IN_PROGRESS:
            stack.step_at = rollout.settle(p.db, tx, stack.id, stack.revision, now, batch, taken)

    def _tell_parent(self, tx: Connection, now: float) -> None:
        """Wake the parent of a nested stack that has changed while at rest; the end of an action wakes it anyway."""
        row = stacks.get(tx, self._world.stack.id) if self._world.stack.parent_id is not None else None
        if row is not None and row.status != Status.IN_PROGRESS:
            stack_state.wake_parent(tx, row, now)

    def _wake_at(self, now: float) -> float | None:
        """Return when this shard needs its next pass if nothing wakes it before; `now` if there is more to do."""
        frontier, stack = self._frontier, self._world.stack
        # After a failure there is still work: what runs is judged, and what was made for nothing is rolled back.
        if self._failed or not frontier.exhausted:
            return now
        times = [frontier.due_at()]
        if stack.status == Status.IN_PROGRESS and not frontier.at_rest:
            times.append(None if stack.abandoned else stack.deadline)
        elif stack.step_at is not None:
            times += [stack.step_at, stack.deadline]
        # The first shard takes an expired lock away (see `_expire`), once maintenance of the stack has ended.
        if self._lease.number == 0 and not stack.maintained:
            times.append(stack.lock_ends_at)
        return min((at for at in times if at is not None), default=None)

    def _observe_at(self, now: float) -> float | None:
        """Return when observers look at this shard's things next: `now` if a decision waits for it, None for never."""
        limits, stack = self._p.limits, self._world.stack
        rows = [row for row in self._world.rows.values() if row.handle and is_outside(row.type)]
        if any(look_first(self._world, row) is not None for row in rows):
            return now
        if any(row.busy for row in rows):
            return now + limits.look_busy_s
        interval = look_interval(stack.observe_s, stack.exceptions, limits.look_steady_s)
        return now + interval if rows and interval is not None else None
