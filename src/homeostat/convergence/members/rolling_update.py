"""Rolling updates: store the next revision of a group once a batch is at rest, here and nowhere else (ADR 0014).

The pause between two batches is a column with a due time (`stack.step_at`), not a timer. The next batch follows from
the newest revision alone (`planner.members.rolling_update`), so after a crash the next worker continues at the present
state of the group.

If members have to report, `step_at` is the end of their time. `planner.members.member_reports` decides by the reports
whenever the group is at rest. A report wakes the group; nothing polls (ADR 0065).

Unavailable members make a batch smaller, or have it wait (ADR 0067). Nothing polls meanwhile, either: a member that
comes back has its shard brought to rest, and that pass tries the batch again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from homeostat.convergence.facts.absences import absences_with
from homeostat.convergence.snapshots import completion
from homeostat.desired.members import batch_shards, leaves_alone, regrouped, touched_by
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition, Reports, reports_of
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.world import StackFacts
from homeostat.planner.members import member_reports as reporting
from homeostat.planner.members import rolling_update
from homeostat.planner.members.member_reports import Refuse, Rest, Tally
from homeostat.store.database import Transaction
from homeostat.store.schema import Cell
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.shards.away import NO_SHARD, Unrest
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks import action_begin, action_end, member_reports, revisions, snapshots
from homeostat.store.stacks.revisions import NewRevision


@dataclass(frozen=True, slots=True)
class Batch:
    """The end of a batch, and the next batch of a group at rest.

    Attributes:
        group: The present revision of the group.
        pause_s: Seconds before the next batch; if members have to report, the seconds for reports.
        revision: The next revision; None after the last batch, or while the next
            batch waits for unavailable members.
        touched: Shards that the next revision changes, see `action_begin.begin_batch`.
        tally: The reports of members; None if they need not report.
        refusal: Reason of the action's failure, if these reports lead to failure. The reason quotes reports: redact it.
        number: The shard whose pass prepared the batch.
        unrest: How much of the group outside this shard was not at rest then; None if irrelevant.
        waits: The members that the next revision waits for.
    """

    group: GroupDefinition
    pause_s: float = 0.0
    revision: NewRevision | None = None
    touched: Mapping[int, ShardChange] | None = None
    tally: Tally | None = None
    refusal: str = ""
    number: int = NO_SHARD
    unrest: Unrest | None = None
    waits: str = ""


UNREAD = Tally(-1)
"""Stands for unread reports while sibling shards of the group are not at rest yet."""


def next_batch(
    tx: Transaction,
    stack: StackFacts,
    number: int = NO_SHARD,
    own_absences: Mapping[str, Absence] = rolling_update.NOBODY,
) -> Batch | None:
    """Prepare the next batch of a stack; None without a series of batches.

    Args:
        tx: A consistent read.
        stack: The stack.
        number: The shard that has come to rest.
        own_absences: Unavailable members of this shard.
    """
    if stack.parent_id is None or stack.action in NON_CHANGING_ACTIONS:
        return None
    standing = revisions.standing_of(tx, stack.id, stack.revision, number)
    series = standing.group.series if standing is not None else None
    if standing is None or series is None:
        return None
    group = going = standing.group
    batch, now = Batch(group, series.pause_time, number=number), 0.0
    asked = asked_of(group)
    if asked is not None and stack.complete_revision != stack.revision:
        if stack.shards > 1 and action_end.others_unsettled(tx, stack, number):
            return replace(batch, tally=UNREAD)
        tally = member_reports.tally(tx, stack, series, asked, batch_shards(group, asked))
        refusal = reporting.refusal(asked, tally)
        batch, now = replace(batch, pause_s=asked.timeout, tally=tally, refusal=refusal), tx.now()
        going = group.with_series(replace(series, reports=reporting.after(asked, tally)))
    if rolling_update.is_over(group):
        return batch if batch.tally is not None or leaves_alone(group) else None
    if rolling_update.limit(group).binds:
        batch = replace(batch, unrest=standing.unrest)
    away = absences_with(own_absences, tx, stack, number, standing.unrest, group)
    following = rolling_update.next_revision(going, away, now)
    if following is None:
        return replace(batch, waits=rolling_update.waits(group, away))
    # The whole series is a single act of the parent, so each batch keeps the parent's intent.
    revision = regrouped(tx.database, following, stack.revision, standing.intent)
    return replace(batch, revision=revision, touched=touched_by(group, following))


def asked_of(group: GroupDefinition) -> Reports | None:
    """Return the reports that members have to send once this revision of a group is at rest.

    Members of a new group report once all of them exist.
    """
    asked = reports_of(group)
    return asked if asked is not None and (asked.count is None or rolling_update.is_over(group)) else None


def settle(
    tx: Transaction,
    stack: StackRow,
    number: int,
    now: float,
    batch: Batch | None,
    taken: Cell | None = None,
    *,
    heals: bool = False,
    alone: bool = False,
) -> float | None:
    """Finish the action of a stack that came to rest at revision `number`, or begin the next batch of its series.

    Does nothing while sibling shards of the stack are not at rest.

    Args:
        tx: Transaction of the pass that brought its shard to rest.
        stack: The stack's row, locked: of two shards that come to rest in the same instant the second sees the first at
            rest.
        number: Revision at which the shard is at rest.
        now: The time.
        batch: The next batch, if any.
        taken: Description of a stack after its snapshot; None before it was read.
        heals: Whether something was left alone that has to be healed after the action.
        alone: Whether the shard is known to be the only one, at rest, and without a failure.

    Returns:
        When the shard has to be visited again: at the end of the pause before the next batch; at the deadline if the
        batch waits for unavailable members; `now` if the batch has to be prepared again, or the description of a
        snapshot has still to be read. None if nothing is left to do.
    """
    if batch is None and alone and action_end.is_in_progress(stack, number):
        return _finish(tx, stack, now, taken, heals=heals)
    row, unrest = action_end.settled_beside(tx, stack, number, NO_SHARD if batch is None else batch.number)
    if row is None:
        return None
    if batch is None:
        return _finish(tx, row, now, taken, heals=heals)
    stays = _paused(tx, row, batch, now) if batch.tally is None else _reported(tx, row, batch, batch.tally, now)
    if stays is not None:
        return stays.at
    if batch.revision is None and not batch.waits:
        return _last(tx, row, now, batch, taken, heals=heals)
    return _follow(tx, row, batch, unrest, now)


def _follow(tx: Transaction, row: StackRow, batch: Batch, unrest: Unrest, now: float) -> float | None:
    """Begin the next batch of a series, or have it wait for members that are away; return as `settle`."""
    # A pass that heals more members has locked the stack as well, so the counts here are final: a batch prepared for
    # less unrest would exceed the limit.
    if batch.unrest is not None and (unrest.own > batch.unrest.own or unrest.inside > batch.unrest.inside):
        return now
    if batch.revision is None:
        if action_begin.hold_batch(tx, row, batch.waits, now) and leaves_alone(batch.group):
            # The batch waits for members whose healing the update prevents: heal them now.
            shards.wake(tx, row.id, now, shards.HEAL)
        return None if row.deadline is None else float(row.deadline)
    if batch.tally is not None:
        # These reports do not count for later batches.
        member_reports.drop(tx, str(row.parent_key), now)
    action_begin.begin_batch(tx, row, batch.revision, now, batch.touched)
    return None


def _last(tx: Transaction, row: StackRow, now: float, batch: Batch, taken: Cell | None, *, heals: bool) -> float | None:
    """End the action of a group after its last batch."""
    if batch.tally is not None:
        # Later reports are too late.
        member_reports.drop(tx, str(row.parent_key))
    # Members that broke meanwhile were left alone, or waited for the members that had to report.
    waited = batch.tally is not None and rolling_update.limit(batch.group).binds
    return _finish(tx, row, now, taken, heals=heals or waited or leaves_alone(batch.group))


def _finish(tx: Transaction, row: StackRow, now: float, taken: Cell | None, *, heals: bool = False) -> float | None:
    """End the action of a stack; `heals` wakes it for members that broke meanwhile."""
    whole = completion.is_whole(row)
    if whole and taken is None:
        return now
    action_end.finish(tx, row, now)
    if whole and taken is not None and row.snapshot is not None:
        snapshots.complete(tx, row.snapshot.id, taken, f"Stack {row.action} completed successfully")
    if heals:
        shards.wake(tx, row.id, now, shards.HEAL)
    return None


@dataclass(frozen=True, slots=True)
class _Stays:
    """The next batch may not begin yet: visit the shard again at this time; None for never."""

    at: float | None


def _paused(tx: Transaction, row: StackRow, batch: Batch, now: float) -> _Stays | None:
    """Have the next batch wait for the end of the pause; None if the pause is over, or no batch follows."""
    # Stored when the batch came to rest: a pass during the pause must not restart the pause.
    step_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    if step_at <= now or (batch.revision is None and not batch.waits):
        return None
    action_begin.delay_batch(tx, row, step_at)
    return _Stays(step_at)


def _reported(tx: Transaction, row: StackRow, batch: Batch, tally: Tally, now: float) -> _Stays | None:
    """Decide about a batch whose members have to report; None if the next step may follow."""
    series, asked = batch.group.series, reports_of(batch.group)
    assert series is not None, "a batch is one of a series"
    assert asked is not None, "reports were counted"
    # The next batch was prepared for an older tally.
    if member_reports.tally(tx, row, series, asked, batch_shards(batch.group, asked)) != tally:
        return _Stays(now)
    due_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    match reporting.verdict(asked, tally, due_at, now):
        case Rest(until):
            action_begin.delay_batch(tx, row, until)
            return _Stays(until)
        case Refuse():
            action_end.fail(tx, row.id, int(row.revision), batch.refusal, now)
            return _Stays(None)
    return None
