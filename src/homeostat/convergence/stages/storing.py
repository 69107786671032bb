"""The storing stage: intents and outcomes, in one transaction that checks the ownership of the shard."""

from dataclasses import dataclass

from homeostat.convergence.stages.passing import Pass
from homeostat.model.errors import Superseded
from homeostat.model.status import Action, Status
from homeostat.model.world import KeepPolicy, Resource
from homeostat.observability import metrics
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import brakes, declared_hosts, health, shard_state
from homeostat.store.shards.shard_state import EncodedWrites, Writes
from homeostat.store.stacks import locks, rollouts, snapshots, stacks


@dataclass(frozen=True, slots=True)
class Stored:
    """Results of a transaction of a pass.

    Attributes:
        abandoned: Whether the stack has been abandoned since it was loaded; then none of its things may be touched.
    """

    abandoned: bool = False


def store(current: Pass, now: float) -> Stored:
    """Store everything that was decided and recorded since the last transaction.

    Raises:
        Superseded: A newer owner has the shard, a row was changed meanwhile, or the stack was locked.
    """
    encoded = encode(current, now)
    with current.db.write() as tx:
        if encoded.writes.rollouts:
            rollouts.lock_stacks(tx, current.world.stack.id)
        if current.begins_healing:
            # Sibling shards that heal more take turns, see `_count_healing`. A stack is locked before its shards
            # (invariant 5), and `write` locks the shard.
            _check_unlocked(current, stacks.for_update(tx, current.world.stack.id))
        write(current, tx, encoded)
        # Abandoning a stack wakes its shards, so the stack's row is read only if the shard was woken.
        stored = Stored(current.ownership.woken and _is_abandoned(current, tx))
    metrics.recovering(recovery.what for recovery in encoded.writes.recoveries)
    # The outcomes of these creations are stored now: the next owner knows of them.
    current.unconfirmed.clear()
    return stored


def _check_unlocked(current: Pass, stack: StackRow | None) -> None:
    """Check that the stack has not been locked since loading: nested stacks of a locked stack get no revisions.

    Raises:
        Superseded: The stack is locked; nothing is healed in it.
    """
    if stack is not None and stack.lock is not None and current.world.stack.lock is None:
        raise Superseded("the stack is locked by now")


def unlock_expired(current: Pass) -> None:
    """Unlock a stack whose lock has expired (LK7)."""
    stack, now = current.world.stack, current.clock.now()
    # Only the first shard unlocks, so that the shards of a large stack do not compete for its row.
    if not locks.is_over(stack, now) or current.ownership.lease.number != 0:
        return
    with current.db.write() as tx:
        # The row of the stack is locked before that of the shard (invariant 5). Unlocking is a new revision, whose
        # wake-up `fence` counts already: the pass ends after its first round.
        locks.unlock_expired(tx, stack.id, now, current.limits.stack_timeout_s)
        current.ownership.wakes = current.ownership.fence(tx)


def encode(current: Pass, now: float) -> EncodedWrites:
    """Return the collected writes encoded for the database; encoding takes time, so it precedes the transaction."""
    _redact(current)
    writes, current.writes = current.writes, Writes()
    stack = current.world.stack
    return shard_state.prepare(current.db, stack.id, writes, now, secret=stack.secret)


def write(
    current: Pass, tx: Transaction, encoded: EncodedWrites, *, changes: bool = True, settles_at: int | None = None
) -> None:
    """Write the encoded changes, within a transaction.

    Args:
        tx: The transaction. If more is healed than before, it holds the stack's row.
        changes: Whether the transaction stores anything, see `ShardOwnership.fence`.
        settles_at: See `ShardOwnership.fence`.

    Raises:
        Superseded: A newer owner has the shard, other shards heal more meanwhile, or the stack has been abandoned.
    """
    stack, parts, rolling = current.world.stack, encoded.writes.parts, encoded.writes.rollouts
    locked = rollouts.lock_stacks(tx, stack.id) if rolling else ()
    # First, so that a stale owner finds out in time, and the shard is locked before its rows.
    current.ownership.wakes = current.ownership.fence(tx, stores=changes, settles_at=settles_at)
    _check_nested(current, tx, encoded)
    _count_healing(current, tx)
    shard_state.store(tx, encoded)
    if parts and stack.snapshot is not None:
        id, place = stack.snapshot.id, stack.snapshot.place
        snapshots.save_parts(tx, id, stack.project, place, parts, encoded.now)
    if encoded.writes.recoveries:
        _check_recoveries(current, tx, encoded)
        health.note_recoveries(tx, stack.id, encoded.writes.recoveries, encoded.now)
    if encoded.writes.declared:
        declared_hosts.note(tx, stack.id, encoded.writes.declared, encoded.now)
    if current.world.health is not None and any(_is_to_be_checked(row) for row in encoded.writes.rows()):
        health.request_look(tx, [(stack.id, current.world.shard)], encoded.now)
    if rolling:
        rollouts.apply(tx, locked, rolling, encoded.now, current.limits.stack_timeout_s)


def _check_recoveries(current: Pass, tx: Transaction, encoded: EncodedWrites) -> None:
    """Check that no sibling shard has begun recoveries meanwhile if a policy limits their rate.

    Recoveries begin as healing does: the caller has locked the stack, so the count is exact.

    Raises:
        Superseded: A sibling has begun one. The next pass decides with the new count.
    """
    known, begun = current.world.health, sum(recovery.begins for recovery in encoded.writes.recoveries)
    if known is None or not begun or not any(policy.per_hour for policy in known.policies.values()):
        return
    _, recovered = health.counts(tx, current.world.stack.id, encoded.now)
    if recovered > known.recovered - begun:
        raise Superseded("others of the group are being recovered by now")


def _is_to_be_checked(row: Resource) -> bool:
    """Return whether to check the row's health now: it was just created, or a recovery action ended."""
    recovered = row.marks is not None and row.marks.recovery is not None and not row.busy
    return recovered or (row.action == Action.CREATE and row.status == Status.COMPLETE)


def _redact(current: Pass) -> None:
    """Redact every reason that is about to be stored, since users see stored reasons."""
    redactor = current.redactor
    if not redactor.needed:
        return
    for row in current.writes.rows():
        row.reason = redactor.text(row.reason)
    current.writes.events = redactor.events(current.writes.events)
    declared = current.writes.declared
    current.writes.declared = [host._replace(reason=redactor.text(host.reason)) for host in declared]
    current.failure = redactor.text(current.failure)


def _check_nested(current: Pass, tx: Transaction, encoded: EncodedWrites) -> None:
    """Check that no nested stack is retained if the stack has been abandoned since: the nested one would never end.

    Raises:
        Superseded: The stack has been abandoned. The next pass abandons the nested stack, too.
    """
    leaving = any(kind_of(row.type) == STACK for row in encoded.writes.removed.values())
    if leaving and current.ownership.woken and _is_abandoned(current, tx):
        raise Superseded("the stack has been abandoned by now")


def _is_abandoned(current: Pass, tx: Transaction) -> bool:
    stack = current.world.stack
    row = None if stack.abandoned else stacks.get(tx, stack.id)
    return row is not None and row.spares == KeepPolicy.ALL


def _count_healing(current: Pass, tx: Transaction) -> None:
    """Store how many resources this shard heals, for the healing brake of sibling shards (ADR 0046).

    Raises:
        Superseded: A sibling shard began to heal or change more meanwhile, or there is a new revision, so the sum may
            be too large. Nothing is stored, and the next pass decides with the new sum.
    """
    healing, world = current.frontier.healing, current.world
    if healing == current.healing_before or not (current.counts_healing or current.healing_before):
        return
    # Only an increase needs a check. The caller has locked the stack for it, so the sum is exact.
    if current.heals_more:
        now, brake = brakes.sibling_counts(tx, world.stack.id, world.shard), world.brake
        if now.healing > brake.elsewhere or (brake.limit.binds and now.changing > brake.changing):
            raise Superseded("others of the stack are being healed or changed by now")
        if brake.limit.binds and now.revision != world.stack.revision:
            raise Superseded("the group is being changed by now")
    brakes.count(tx, world.stack.id, world.shard, healing)
    current.healing_before = healing
