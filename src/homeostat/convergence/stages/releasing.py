"""The last stage: the stack's action ends if it is due, and the shard is given back."""

from dataclasses import dataclass, replace

from homeostat.convergence.limits import busy_interval
from homeostat.convergence.members import rolling_update
from homeostat.convergence.members.rolling_update import Batch
from homeostat.convergence.snapshots import completion
from homeostat.convergence.stages.passing import Pass
from homeostat.convergence.stages.storing import encode, write
from homeostat.model.plan import Event
from homeostat.model.stack_actions import ROLLED_BACK_ON_FAILURE
from homeostat.model.status import Action, Status
from homeostat.model.world import KeepPolicy, look_interval
from homeostat.planner.actions.check import look_first
from homeostat.planner.lifecycle import recovery_state
from homeostat.planner.policies.budget import away_of
from homeostat.planner.policies.unhealthy import merely_marked
from homeostat.planner.priority import urgency
from homeostat.resources.registry import is_outside
from homeostat.store.database import Transaction
from homeostat.store.schema import Cell
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import health, leases, orphans, shards
from homeostat.store.shards.shard_state import EncodedWrites
from homeostat.store.sql import lock_order
from homeostat.store.stacks import action_begin, action_end, stack_state, stacks, status_at_rest


@dataclass(frozen=True, slots=True)
class _Ending:
    """Facts for the last transaction of a pass, read and encoded before it.

    The transaction decides, with the stack's row locked, whether the stack is really at rest: a premature batch or
    description is not used.

    Attributes:
        encoded: The remaining writes.
        failure_events: Events to store if the stack fails with them.
        batch: The next move of a rolling update.
        snapshot: Description of the stack for its snapshot.
        failures: Number of failed resources.
        merely_marked: Whether all failed resources are merely marked unhealthy.
        corrects: Whether the status of a stack at rest may be wrong.
        ends: Whether the stack's action may end.
    """

    now: float
    encoded: EncodedWrites
    failure_events: list[Event]
    batch: Batch | None
    snapshot: Cell | None
    failures: int
    merely_marked: bool
    corrects: bool
    ends: bool


def release(current: Pass) -> None:
    """Store the remaining writes, end the stack's action if due, and give the shard back, in one transaction."""
    ending = _prepare(current)
    stack, lease, now = current.world.stack, current.ownership.lease, ending.now
    with current.db.write() as tx:
        row = _lock(current, tx, ending)
        failed_more = ending.failures - current.failures_before
        # A pass without changes must not count as progress (`shards.CRASHES_MAX`), nor look to the parent of a nested
        # stack like a change.
        same = ending.encoded.writes.empty and not failed_more and not (ending.ends or ending.corrects)
        write(current, tx, ending.encoded, changes=not same, settles_at=_settles_at(current))
        # Counted before the stack's end or status is decided, which reads the counts of all shards.
        if failed_more:
            shards.count_failures(tx, stack.id, lease.number, failed_more)
        # Rollouts change the stack's row.
        if row is not None and ending.encoded.writes.rollouts:
            row = stacks.for_update(tx, stack.id)
        wake_at = _end_action(current, tx, ending, row)
        if current.frontier.at_rest or failed_more:
            _notify_parent(current, tx, now)
        times = (_wake_at(current, now), wake_at)
        wake_at = min((at for at in times if at is not None), default=None)
        if current.world.health is not None and current.world.health.paused:
            health.pause(tx, (stack.id, lease.number), now, now)
        leases.release(tx, lease, lease.wakes, wake_at, _progress(current, now))


def hand_over(current: Pass) -> None:
    """Leave the shard to its new owner: watch every creation whose outcome is not stored, as an orphan (ADR 0012).

    The new owner looks for each stored intent by its token, but a request of this worker may arrive after that look:
    then the created thing belongs to no row. Observers remove such a thing by its token, unless a row has the token
    after all.
    """
    given_up = [orphan for step in current.unconfirmed for orphan in current.orphans_of(step.row, step.row.token)]
    if given_up:
        with current.db.write() as tx:
            stack = stacks.for_update(tx, current.world.stack.id)
            # Things of an abandoned stack are never deleted, whenever they were created.
            if stack is not None and stack.spares != KeepPolicy.ALL:
                orphans.add(tx, given_up, tx.now())


def _prepare(current: Pass) -> _Ending:
    frontier, stack, now = current.frontier, current.world.stack, current.clock.now()
    encoded, failure_events = encode(current, now), current.redactor.events(current.failure_events)
    batch, snapshot = _next_batch(current), _snapshot(current)
    in_action = stack.status == Status.IN_PROGRESS
    rows = current.world.rows.values()
    failed = [row for row in rows if recovery_state.counts_as_failure(row, in_action=in_action)]
    failures, marked = len(failed), all(merely_marked(row) for row in failed)
    corrects = status_at_rest.may_be_wrong(stack, failures, at_rest=frontier.at_rest)
    ends = in_action and bool(current.failure or frontier.at_rest)
    return _Ending(now, encoded, failure_events, batch, snapshot, failures, marked, corrects, ends)


def _lock(current: Pass, tx: Transaction, ending: _Ending) -> StackRow | None:
    """Lock the rows that the transaction needs besides the shard's, in the common order; return the stack's."""
    stack, locked = current.world.stack, None
    if ending.corrects or current.heals_more or ending.ends:
        # The stack's row is locked before the shard's (invariant 5). The lock also serialises two shards that come to
        # rest in the same instant, so that the later one knows to be the last.
        locked = stacks.for_update(tx, stack.id)
        if locked is not None and locked.revision == stack.revision:
            ending.encoded.writes.events.extend(ending.failure_events)
    if ending.ends and stack.action == Action.UNLOCK and stack.parent_id is None:
        # If this is the last shard to come to rest, the end of unlocking changes every stack of the tree and wakes
        # all their shards: lock all of them here, in the common order, before this pass's own shard.
        lock_order.take_tree(tx, stacks.tree_of(stack.id))
    return locked


def _end_action(current: Pass, tx: Transaction, ending: _Ending, row: StackRow | None) -> float | None:
    """FAIL the stack, or complete it with its last shard; return when to reconsider its status at rest."""
    if row is not None and ending.ends:
        if current.failure:
            _fail(current, tx, row, ending.now)
        else:
            _settle(current, tx, row, ending)
    if not ending.corrects:
        return None
    stack, number, at_rest = current.world.stack, current.ownership.lease.number, current.frontier.at_rest
    return status_at_rest.correct(
        tx,
        stack.id,
        number,
        ending.failures,
        ending.now,
        at_rest=at_rest,
        merely_marked=ending.merely_marked,
    )


def _fail(current: Pass, tx: Transaction, before: StackRow, now: float) -> None:
    """FAIL the stack, unless there is a newer revision; roll it back if the user wants so."""
    if not action_end.fail_locked(tx, before, current.world.stack.revision, current.failure, now):
        return
    # A check, a snapshot and the like repeat a revision that was complete: there is nothing to go back to.
    if before.complete_revision == before.revision:
        return
    if not before.disable_rollback and before.action in ROLLED_BACK_ON_FAILURE:
        action_begin.roll_back(tx, before, now, current.limits.stack_timeout_s)


def _settles_at(current: Pass) -> int | None:
    """Return the revision at which the shard comes to rest; None if it does not, or is at rest already."""
    stack = current.world.stack
    # While a stack is frozen, its rows are not compared with a revision that was never complete: the shard has not come
    # to rest at that revision.
    passed_over = stack.frozen and stack.status != Status.IN_PROGRESS and stack.complete_revision != stack.revision
    settles = not current.failure and current.frontier.at_rest and not passed_over
    return stack.revision if settles and current.world.settled_revision < stack.revision else None


def _settle(current: Pass, tx: Transaction, row: StackRow, ending: _Ending) -> None:
    """End the action of a stack if its last shard is at rest, or begin the next batch."""
    stack = current.world.stack
    # The wake-up may stem from the loss of a member: the next pass sees the loss, and takes the next batch.
    if ending.batch is not None and ending.batch.unrest is not None and current.ownership.woken:
        stack.step_at = ending.now
    else:
        stack.step_at = rolling_update.settle(
            tx,
            row,
            stack.revision,
            ending.now,
            ending.batch,
            ending.snapshot,
            heals=current.world.health is not None,
            # Whatever else counts failures of the shard, or adds shards, wakes it.
            alone=row.shards == 1 and not ending.failures and not current.ownership.woken,
        )


def _next_batch(current: Pass) -> Batch | None:
    """Return the next batch of a rolling update if this shard of the group's stack has come to rest."""
    stack = current.world.stack
    ends = not current.failure and current.frontier.at_rest and stack.status == Status.IN_PROGRESS
    if not ends or stack.parent_id is None:
        return None
    own_absences = away_of(current.frontier.current.values(), current.world.seen)
    with current.db.read() as tx:
        batch = rolling_update.next_batch(tx, stack, current.ownership.lease.number, own_absences)
    # Redacted here: redaction may read the database, which must not delay the last transaction of the pass.
    return replace(batch, refusal=current.redactor.text(batch.refusal)) if batch is not None else None


def _snapshot(current: Pass) -> Cell | None:
    """Return the encoded description of a stack whose snapshot is complete; None while work is left.

    A description can be long, so only a pass that finds this shard at rest already (`settled`) makes it. The pass that
    brings the last shard to rest gets None, and `rolling_update.settle` requests another pass at once.
    """
    stack, settled = current.world.stack, current.world.settled_revision
    ends = stack.status == Status.IN_PROGRESS and current.frontier.at_rest and settled == stack.revision
    if current.failure or not ends or not completion.is_whole(stack):
        return None
    with current.db.read() as tx:
        return completion.described(tx, stack)


def _notify_parent(current: Pass, tx: Transaction, now: float) -> None:
    """Wake the parent of a nested stack that has changed while at rest; the end of an action wakes it anyway."""
    stack = current.world.stack
    row = stacks.get(tx, stack.id) if stack.parent_id is not None else None
    if row is not None and row.status != Status.IN_PROGRESS:
        stack_state.wake_parent(tx, row, now)


def _progress(current: Pass, now: float) -> leases.PassProgress:
    frontier, world = current.frontier, current.world
    size, look_at = len(world.definitions), _observe_at(current, now)
    return leases.PassProgress(world.stack.revision, frontier.size, frontier.unfinished, size, urgency(world), look_at)


def _wake_at(current: Pass, now: float) -> float | None:
    """Return when this shard needs its next pass if nothing wakes it before; `now` if there is more to do."""
    frontier, stack = current.frontier, current.world.stack
    # A failure leaves work: running requests are judged, and useless creations are rolled back.
    if current.failure or not frontier.exhausted:
        return now
    times = [frontier.due_at()]
    if stack.status == Status.IN_PROGRESS and not frontier.at_rest:
        times.append(None if stack.abandoned else stack.deadline)
    elif stack.step_at is not None:
        times += [stack.step_at, stack.deadline]
    # The first shard takes an expired lock away (`storing.unlock_expired`), once maintenance of the stack has ended.
    if current.ownership.lease.number == 0 and not stack.maintained:
        times.append(stack.lock_ends_at)
    return min((at for at in times if at is not None), default=None)


def _observe_at(current: Pass, now: float) -> float | None:
    """Return when observers look at this shard's things next: `now` if a decision waits for it, None for never."""
    limits, stack = current.limits, current.world.stack
    rows = [row for row in current.world.rows.values() if row.handle and is_outside(row.type)]
    if any(look_first(current.world, row) is not None for row in rows):
        return now
    if current.looks_soon:
        return now + limits.look_busy_s
    waited_s = [now - (row.acted_at or now) for row in rows if row.busy]
    if waited_s:
        return now + busy_interval(limits.look_busy_s, current.look_max_s, waited_s, len(rows))
    interval = look_interval(stack.observe_s, stack.exceptions, limits.look_steady_s)
    return now + interval if rows and interval is not None else None
