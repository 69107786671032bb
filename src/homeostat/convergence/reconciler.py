"""One run of the loop for one shard: load -> plan -> store intents -> perform -> record, until nothing can be done now.

Outcomes of one batch and intents of the next are one transaction, and the world stays in memory in between.
Every transaction checks the epoch: a stale owner writes nothing (law 4).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from homeostat.clock import Clock
from homeostat.clouds.port import Clouds
from homeostat.convergence import rollout, snapshot_end
from homeostat.convergence.executor import StepExecutor
from homeostat.convergence.jobs.lost_shards import LostShards
from homeostat.convergence.loader import load
from homeostat.convergence.nested_stacks import DEPTH_MAX, NestedStacks
from homeostat.convergence.rollout import Batch
from homeostat.convergence.tree_size import RESOURCES_MAX
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.redaction import Redaction, Redactions, veiled
from homeostat.model.errors import Superseded
from homeostat.model.plan import Event, Recorded, Step, Verb
from homeostat.model.status import ROLLED_BACK_ON_FAILURE, Action, Status
from homeostat.model.world import HEAL_SHARE, Resource, Spares, World, look_interval
from homeostat.observability import tracing
from homeostat.planner import Frontier, outcome
from homeostat.planner.actions.check import look_first
from homeostat.planner.policies.unhealthy import merely_marked
from homeostat.planner.priority import urgency
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import is_outside, kind_of, type_of
from homeostat.store.database import Database
from homeostat.store.operation.workers import FORGOTTEN_S
from homeostat.store.schema import Cell
from homeostat.store.shards import brakes, look_schedule, orphans, shard_state, shards
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.retained import Retained
from homeostat.store.shards.shard_state import EncodedWrites, Writes
from homeostat.store.shards.shards import Lease
from homeostat.store.sql import lock_order
from homeostat.store.stacks import locks, snapshots, stacks, status_at_rest

LOG = logging.getLogger(__name__)
ROUTINE = ("", outcome.CHANGED)
"""Reasons that quote nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """lease_s — how long a silent owner keeps a shard; slice_s, batch — bounds of one pass and of one batch of steps;
    hang_s — after so long without storing anything a pass counts as hung, in a call of a cloud that never answers
    say, and its shard goes to somebody else; heal_share — of a stack's things that is healed at a time; look_busy_s,
    look_steady_s — time between looks at things in progress and at rest; second_look_s — after something was not
    found, until it is looked for once more; stack_timeout_s — default deadline of a stack's action; depth_max —
    levels of nested stacks; resources_max — of a stack with all that is nested in it; forget_workers_s — a dead worker
    is shown for so long."""

    lease_s: float = 5.0
    slice_s: float = 2.0
    batch: int = 500
    hang_s: float = 120.0
    look_busy_s: float = 1.0
    look_steady_s: float = 60.0
    second_look_s: float = 0.3
    heal_share: float = HEAL_SHARE
    stack_timeout_s: float = 3600.0
    depth_max: int = DEPTH_MAX
    resources_max: int = RESOURCES_MAX
    forget_workers_s: float = FORGOTTEN_S


class Reconciler:
    """Runs passes over one database. One instance serves any number of threads."""

    def __init__(
        self,
        db: Database,
        clouds: Clouds,
        performer: StepExecutor,
        children: NestedStacks,
        clock: Clock,
        keys: Iterator[str],
        limits: Limits,
    ) -> None:
        self.db = db
        self.clouds = clouds
        self.performer = performer
        self.children = children
        self.clock = clock
        self.keys = keys
        self.limits = limits
        self.definitions = DesiredGraphs()
        self.veils = Redactions()
        self.lost = LostShards()
        self._running: dict[Lease, float] = {}

    @property
    def leases(self) -> list[Lease]:
        """Those of the passes that run now, and do not hang: what a heartbeat has to keep."""
        since = self.clock.monotonic() - self.limits.hang_s
        alive = [lease for lease, moved_at in self._running.copy().items() if moved_at >= since]
        return sorted(alive, key=lambda lease: (lease.stack_id, lease.number))

    def moves(self, lease: Lease) -> None:
        """The pass under this lease gets on."""
        self._running[lease] = self.clock.monotonic()

    def run(self, lease: Lease) -> None:
        """One pass over a claimed shard; gives the shard back at the end.

        Fails: Superseded when a newer owner has the shard or a row was changed meanwhile; Transient when the database
        or cloud cannot be reached. In either case nothing is lost: the rows say how to go on.
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
            shown = veiled(error, under_way.told)
            if shown is error:
                raise
            raise shown from None


class Pass:
    """State of one pass."""

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
        self._veil: Redaction | None = None
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
        for child, look in loaded.looks:
            self._writes.seen[child.key] = (child, look)
        return world

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        p, frontier = self._p, self._frontier
        started = p.clock.monotonic()
        self._time_out()
        self._expire()
        for row in self._world.rows.values():
            self._notice_failure(row)
        while not self._failed:
            now = p.clock.now()
            steps = frontier.steps(now, p.limits.batch)
            acts = [step for step in steps if step.verb is not Verb.RECORD]
            self._collect(steps)
            if not steps:
                break
            outside = [step for step in acts if kind_of(step.row.type)]
            self._act([step for step in acts if not kind_of(step.row.type)])
            if outside or len(self._writes) >= p.limits.batch:
                self._commit(now)
            if self._let_go:
                break
            self._act(outside)
            if self._wakes != self._lease.wakes or p.clock.monotonic() - started > p.limits.slice_s:
                break
        self._finish()

    def _time_out(self) -> None:
        stack = self._world.stack
        if stack.abandoned:
            return  # there is nothing to wait for
        now = self._p.clock.now()
        if stack.status == Status.IN_PROGRESS and stack.deadline is not None and now >= stack.deadline:
            self._collect(self._frontier.time_out(now))
            self._failed = "Timed out"

    def _expire(self) -> None:
        """The time of a lock is over: the service takes it away itself (LK7)."""
        p, stack, now = self._p, self._world.stack, self._p.clock.now()
        if not locks.is_over(stack, now) or self._lease.number != 0:
            return
        with p.db.write() as tx:
            locks.take_away(p.db, tx, stack.id, now, p.limits.stack_timeout_s)
            self._wakes = self.fence(tx)

    def _collect(self, steps: list[Step]) -> None:
        """Put what is decided into the next transaction; what needs no act is done with that."""
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
            if step.forsaken:
                writes.forsaken += self._forsaken(step.row, step.forsaken)
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
        """It is told in the transaction that fails the stack, if that is of the same mind: once a revision."""
        self._last_words += step.events
        self._failed = self._failed or step.fails

    def _act(self, acts: list[Step]) -> None:
        """Perform, and put the outcomes into the next transaction. What no cloud hears of needs no stored intent."""
        now_of = self._p.clock.now
        writes = self._writes
        self._made += [step for step in acts if step.verb is Verb.CREATE]
        for step, answer in self._p.performer.perform(self._world, acts, self, self.told):
            record = outcome.conclude(self._world, step, answer, now_of())
            writes.events.extend(record.events)
            if record.removed:
                writes.remove(record.row)
            else:
                if record.whole or record.forsaken:  # a token that is given up belongs to the intent
                    writes.intend(record.row)
                else:
                    writes.conclude(record.row)
                if record.observation is not None:
                    self._observed(record.row)
                self._notice_failure(record.row)
            if record.forsaken:
                writes.forsaken += self._forsaken(record.row, record.forsaken)
            self._frontier.apply(step, record)

    def _forsaken(self, row: Resource, token: str) -> list[Orphan]:
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
        """The first failure of this revision fails the stack at once, unless everything is to have its turn; what runs
        is finished and judged later.

        Asked of every row at the start too: a crash may have come between storing the row and failing the stack."""
        stack = self._world.stack
        mine = row.hinders and row.revision == stack.revision and not merely_marked(row)
        if mine and not stack.thorough and stack.status == Status.IN_PROGRESS and not self._failed:
            self._failed = outcome.stack_failure(self._world, row)

    def check(self) -> None:
        """A worker that was frozen after its last write must not act: somebody else may have gone on already."""
        if self._p.clock.monotonic() >= self._mine_until:
            with self._p.db.write() as tx:
                self.fence(tx)

    def fence(self, tx: Connection, *, stores: bool = True) -> int:
        """Check the epoch in the database, and renew the lease. stores — something is stored with that. Gives the count
        of wake-ups."""
        asked_at = self._p.clock.monotonic()
        wakes = shards.renew(tx, self._lease, self._p.db.now_of(tx), self._p.limits.lease_s, stores=stores)
        self._mine_until = asked_at + self._p.limits.lease_s
        self._p.moves(self._lease)
        return wakes

    def told(self, text: str) -> str:
        """A reason or an error without values of hidden parameters, those of revisions before included."""
        stack, rows = self._world.stack, self._world.rows.values()
        if stack.secret is False or text in ROUTINE:
            return text
        if self._veil is None:
            numbers = {stack.revision - 1, stack.complete_revision, stack.rollback_to, *(row.revision for row in rows)}
            with self._p.db.read() as tx:
                self._veil = self._p.veils.over(tx, stack, numbers)
        return self._veil.text(text)

    def _hide(self) -> None:
        """No reason that is stored, and so told to anybody, has the value of a hidden parameter in it."""
        if self._world.stack.secret is False:
            return
        for row in self._writes.rows():
            row.reason = self.told(row.reason)
        self._writes.events = self._shown(self._writes.events)
        self._failed = self.told(self._failed)

    def _shown(self, events: list[Event]) -> list[Event]:
        return [each if each.reason in ROUTINE else replace(each, reason=self.told(each.reason)) for each in events]

    def _commit(self, now: float) -> None:
        prepared = self._prepared(now)
        with self._p.db.write() as tx:
            if self._heals_more:
                stacks.for_update(self._p.db, tx, self._world.stack.id)  # before the shard
            self._store(tx, prepared)
            self._let_go = self._wakes != self._lease.wakes and self._is_abandoned(tx)
        self._made.clear()

    def _is_abandoned(self, tx: Connection) -> bool:
        """Has the stack been abandoned since it was loaded? What its document names is not touched any more."""
        row = None if self._world.stack.abandoned else stacks.get(tx, self._world.stack.id)
        return row is not None and row.spares == Spares.ALL

    def _prepared(self, now: float) -> EncodedWrites:
        """What is to be stored now: whatever takes time is done before the transaction."""
        self._hide()
        writes, self._writes = self._writes, Writes()
        stack = self._world.stack
        return shard_state.prepare(self._p.db, stack.id, writes, now, secret=stack.secret)

    def _store(self, tx: Connection, prepared: EncodedWrites, *, changes: bool = True) -> None:
        self._wakes = self.fence(tx, stores=changes)
        stack, parts = self._world.stack, prepared.writes.parts
        self._count_healing(tx)
        shard_state.store(self._p.db, tx, prepared)
        if parts and stack.snapshot is not None:
            place, now = stack.snapshot["place"], prepared.now
            snapshots.keep(self._p.db, tx, stack.snapshot["id"], stack.project, place, parts, now)

    @property
    def _heals_more(self) -> bool:
        """Is more of a stack of several shards being healed than was counted?"""
        return self._world.stack.shards > 1 and self._frontier.healing > self._healing_before

    def _count_healing(self, tx: Connection) -> None:
        """Tell other shards of the stack how many are being healed here. Fails: Superseded when one of them was faster,
        and there would be too many: nothing is stored, and this is decided anew."""
        healing, world = self._frontier.healing, self._world
        if world.stack.shards == 1 or healing == self._healing_before:
            return
        if self._heals_more and brakes.elsewhere(tx, world.stack.id, world.shard) > world.brake.elsewhere:
            raise Superseded("others of the stack are being healed by now")
        brakes.count(tx, world.stack.id, world.shard, healing)
        self._healing_before = healing

    def disown(self) -> None:
        """Somebody else owns the shard now: what this pass has made since its last transaction may be nobody's."""
        given_up = [each for step in self._made for each in self._forsaken(step.row, step.row.token)]
        if given_up:
            with self._p.db.write() as tx:
                stack = stacks.for_update(self._p.db, tx, self._world.stack.id)
                if stack is not None and stack.spares != Spares.ALL:
                    orphans.add(self._p.db, tx, given_up, self._p.db.now_of(tx))

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        p, frontier, stack = self._p, self._frontier, self._world.stack
        now = p.clock.now()
        prepared, last_words = self._prepared(now), self._shown(self._last_words)
        batch, taken = self._next_batch(), self._taken()
        failures = sum(row.hinders for row in self._world.rows.values())
        disagrees = status_at_rest.disagrees(stack, failures, at_rest=frontier.at_rest)
        with p.db.write() as tx:
            ends = stack.status == Status.IN_PROGRESS and (self._failed or frontier.at_rest)
            if disagrees or self._heals_more or ends:
                locked = stacks.for_update(p.db, tx, stack.id)  # before the shard, as everybody who takes both does
                if locked is not None and locked.revision == stack.revision:
                    prepared.writes.events.extend(last_words)
            if ends and stack.action == Action.UNLOCK and stack.parent_id is None:
                lock_order.take_tree(tx, stacks.below(stack.id))  # this shard is the last of them
            same = prepared.writes.empty and failures == self._failures_before and not (ends or disagrees)
            self._store(tx, prepared, changes=not same)
            if failures != self._failures_before:
                shards.count_failures(tx, stack.id, self._lease.number, failures - self._failures_before)
            if self._failed:
                self._fail(tx, now)
            elif frontier.at_rest:
                self._settle(tx, now, batch, taken)
            again_at = None
            if disagrees:
                at_rest, number = frontier.at_rest, self._lease.number
                again_at = status_at_rest.tell(p.db, tx, stack.id, number, failures, now, at_rest=at_rest)
            if frontier.at_rest or failures != self._failures_before:
                self._tell_parent(tx, now)
            wake_at = min((at for at in (self._wake_at(now), again_at) if at is not None), default=None)
            observe_at = self._observe_at(now)
            look_schedule.observe_at(tx, stack.id, self._lease.number, observe_at)
            kept = len(self._world.definitions)
            reached = shards.PassProgress(
                stack.revision, frontier.size, frontier.unfinished, kept, urgency(self._world)
            )
            shards.release(tx, self._lease, self._lease.wakes, wake_at, reached)

    def _fail(self, tx: Connection, now: float) -> None:
        p, stack = self._p, self._world.stack
        before = stacks.fail(p.db, tx, stack.id, stack.revision, self._failed, now)
        if before is None:
            return
        if before.complete_revision == before.revision:
            return  # it asked for nothing new: there is nothing to go back to
        if not before.disable_rollback and before.action in ROLLED_BACK_ON_FAILURE:
            stacks.roll_back(p.db, tx, before, now, p.limits.stack_timeout_s)

    def _next_batch(self) -> Batch | None:
        """What a group becomes once this revision of it is at rest."""
        stack = self._world.stack
        if self._failed or not self._frontier.at_rest or stack.status != Status.IN_PROGRESS or stack.parent_id is None:
            return None
        with self._p.db.read() as tx:
            return rollout.next_batch(self._p.db, tx, stack)

    def _taken(self) -> Cell | None:
        """What is remembered of a stack of which a snapshot was taken, once nothing of it is left to do."""
        stack, settled = self._world.stack, self._world.settled_revision
        ends = stack.status == Status.IN_PROGRESS and self._frontier.at_rest and settled == stack.revision
        if self._failed or not ends or not snapshot_end.is_whole(stack):
            return None
        with self._p.db.read() as tx:
            return snapshot_end.described(self._p.db, tx, stack)

    def _settle(self, tx: Connection, now: float, batch: Batch | None, taken: Cell | None) -> None:
        p, stack = self._p, self._world.stack
        if self._world.settled_revision < stack.revision:
            shards.settle(tx, stack.id, self._lease.number, stack.revision)
        if stack.status == Status.IN_PROGRESS:
            stack.step_at = rollout.settle(p.db, tx, stack.id, stack.revision, now, batch, taken)

    def _tell_parent(self, tx: Connection, now: float) -> None:
        """A nested stack that is not in progress has changed all the same."""
        row = stacks.get(tx, self._world.stack.id) if self._world.stack.parent_id is not None else None
        if row is not None and row.status != Status.IN_PROGRESS:
            stacks.wake_parent(tx, row, now)

    def _wake_at(self, now: float) -> float | None:
        """When this shard wants its next pass if nothing happens before: at once if there is more to do."""
        frontier, stack = self._frontier, self._world.stack
        if self._failed or not frontier.exhausted:
            return now
        times = [frontier.due_at()]
        if stack.status == Status.IN_PROGRESS and not frontier.at_rest:
            times.append(None if stack.abandoned else stack.deadline)
        elif stack.step_at is not None:
            times += [stack.step_at, stack.deadline]
        if self._lease.number == 0 and not stack.maintained:
            times.append(stack.lock_ends_at)
        return min((at for at in times if at is not None), default=None)

    def _observe_at(self, now: float) -> float | None:
        """When observers are to look at it: at once if a decision waits for that."""
        limits, stack = self._p.limits, self._world.stack
        rows = [row for row in self._world.rows.values() if row.handle and is_outside(row.type)]
        if any(look_first(self._world, row) is not None for row in rows):
            return now
        if any(row.busy for row in rows):
            return now + limits.look_busy_s
        interval = look_interval(stack.observe_s, stack.exceptions, limits.look_steady_s)
        return now + interval if rows and interval is not None else None
