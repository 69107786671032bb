"""Rolling updates: once a batch of a group is at rest, the next revision is stored, here and nowhere else (ADR 0014).

The pause between two batches is a column with a due time (`stack.step_at`), not a timer. The next batch follows from
the newest revision alone (`planner.policies.rolling_update`), so after a crash the next worker goes on where the group
stands.

Where members have to report, that column is the end of their time. What they have reported is decided about whenever
the group is at rest (`planner.policies.member_reports`). A report wakes it; nothing asks again and again (ADR 0065).

Members that are away make a batch smaller, or have it wait (ADR 0067). Nothing is asked again and again meanwhile: each
member that comes back has its shard brought to rest, and that pass tries the batch anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from homeostat.convergence import snapshot_end
from homeostat.convergence.absences import beside
from homeostat.desired.members import batch_shards, group_desired, leaves_alone, touched_by
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition, Reports, reports_of
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.world import StackFacts
from homeostat.planner.policies import member_reports as reporting
from homeostat.planner.policies import rolling_update
from homeostat.planner.policies.member_reports import Refuse, Rest, Tally
from homeostat.store.database import Database
from homeostat.store.schema import Cell
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.shards.away import NO_SHARD, Unrest
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks import action_begin, action_end, member_reports, revisions, snapshots
from homeostat.store.stacks.revisions import Desired


@dataclass(frozen=True, slots=True)
class Batch:
    """What follows a batch of a group that is at rest.

    Attributes:
        group: The revision of the group.
        pause_s: Seconds to wait before the next one; where members have to report, those that they have.
        desired: Content of the next revision, already encoded for the database; None where this was the last one, or
            where that one waits for members that are away.
        touched: Shards that it changes, see `action_begin.begin_batch`.
        tally: What members have reported; None where they need not.
        refusal: Reason of the failure of the action, should these reports lead to it. It quotes them: hide what users
            must not see in it.
        number: The shard whose pass prepared it.
        unrest: How much of the group beside that shard was not at rest then; None where that does not matter.
        waits: For whom the next revision waits.
    """

    group: GroupDefinition
    pause_s: float = 0.0
    desired: Desired | None = None
    touched: Mapping[int, ShardChange] | None = None
    tally: Tally | None = None
    refusal: str = ""
    number: int = NO_SHARD
    unrest: Unrest | None = None
    waits: str = ""


UNREAD = Tally(-1)
"""In the place of what members have reported, where other shards of their group have yet to come to rest."""


def next_batch(
    db: Database,
    tx: Connection,
    stack: StackFacts,
    number: int = NO_SHARD,
    own_absences: Mapping[str, Absence] = rolling_update.NOBODY,
) -> Batch | None:
    """Return what follows the newest revision of a stack; None where nothing does, or it is no group.

    Args:
        db: The database.
        tx: A consistent read.
        stack: The stack.
        number: The shard of it that has come to rest.
        own_absences: Its members that are away.
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
        batch, now = replace(batch, pause_s=asked.timeout, tally=tally, refusal=refusal), db.now_of(tx)
        going = group.with_series(replace(series, reports=reporting.after(asked, tally)))
    if rolling_update.is_over(group):
        return batch if batch.tally is not None or leaves_alone(group) else None
    if rolling_update.limit(group).binds:
        batch = replace(batch, unrest=standing.unrest)
    away = beside(own_absences, tx, stack, number, standing.unrest, group)
    following = rolling_update.next_revision(going, away, now)
    if following is None:
        return replace(batch, waits=rolling_update.waits(group, away))
    # The whole series is one act of the parent, so each batch carries its intent on. `again` copies the environment
    # and the files from the revision before instead of storing them once more.
    after = replace(group_desired(following), intent=standing.intent, copied_from=stack.revision)
    touched = touched_by(group, following)
    return replace(batch, desired=revisions.encode(db, after), touched=touched)


def asked_of(group: GroupDefinition) -> Reports | None:
    """Return the reports that members have to send once this revision of a group is at rest.

    Those of a group that is being made do so once all are there.
    """
    asked = reports_of(group)
    return asked if asked is not None and (asked.count is None or rolling_update.is_over(group)) else None


def settle(
    db: Database,
    tx: Connection,
    stack_id: str,
    number: int,
    now: float,
    batch: Batch | None,
    taken: Cell | None = None,
    *,
    heals: bool = False,
) -> float | None:
    """Finish the action of a stack that came to rest at revision `number`, or begin the next batch of its series.

    Does nothing while other shards of the stack are not at rest.

    Args:
        db: The database.
        tx: Transaction of the pass that brought its shard to rest.
        stack_id: The stack.
        number: Revision at which the shard is at rest.
        now: The time.
        batch: The next batch, if there is one.
        taken: Description of a stack of which a snapshot was taken; None where it has not been read yet.
        heals: Whether something was left alone that is to be healed once the action has ended.

    Returns:
        When the shard has to be visited again: at the end of the pause before the next batch; at the deadline where the
        batch waits for members that are away; `now` where it has to be prepared anew, or where the description of a
        snapshot has still to be read. None where nothing is left to do.
    """
    # Locks the stack's row: of two shards that come to rest in the same instant the second sees the first at rest.
    row, unrest = action_end.lock_settled_beside(db, tx, stack_id, number, NO_SHARD if batch is None else batch.number)
    if row is None:
        return None
    if batch is None:
        return _finish(db, tx, row, now, taken, heals=heals)
    stays = _paused(tx, row, batch, now) if batch.tally is None else _reported(db, tx, row, batch, batch.tally, now)
    if stays is not None:
        return stays.at
    if batch.desired is None and not batch.waits:
        return _last(db, tx, row, now, batch, taken, heals=heals)
    return _follow(db, tx, row, batch, unrest, now)


def _follow(db: Database, tx: Connection, row: StackRow, batch: Batch, unrest: Unrest, now: float) -> float | None:
    """Begin the next batch of a series, or have it wait for members that are away; return as `settle`."""
    # A pass that heals more has locked the stack as well: what shows here is what the batch has to be within.
    if batch.unrest is not None and (unrest.own > batch.unrest.own or unrest.inside > batch.unrest.inside):
        return now
    if batch.desired is None:
        if action_begin.hold_batch(tx, row, batch.waits, now) and leaves_alone(batch.group):
            # Members that the update keeps from being healed are healed now: it waits for them.
            shards.wake(tx, row.id, now, shards.HEAL)
        return None if row.deadline is None else float(row.deadline)
    if batch.tally is not None:
        # What was reported says nothing about later batches.
        member_reports.drop(tx, str(row.parent_key), now)
    action_begin.begin_batch(db, tx, row, batch.desired, now, batch.touched)
    return None


def _last(
    db: Database, tx: Connection, row: StackRow, now: float, batch: Batch, taken: Cell | None, *, heals: bool
) -> float | None:
    """End the action of a group after its last batch."""
    if batch.tally is not None:
        # What is still to be said is too late.
        member_reports.drop(tx, str(row.parent_key))
    # What broke meanwhile was left alone, or has waited for the members that had to report.
    waited = batch.tally is not None and rolling_update.limit(batch.group).binds
    return _finish(db, tx, row, now, taken, heals=heals or waited or leaves_alone(batch.group))


def _finish(
    db: Database, tx: Connection, row: StackRow, now: float, taken: Cell | None, *, heals: bool = False
) -> float | None:
    """End the action of a stack; `heals` says whether what broke meanwhile has still to be healed."""
    whole = snapshot_end.is_whole(row)
    if whole and taken is None:
        return now
    action_end.finish(db, tx, row, now)
    if whole and taken is not None and row.snapshot is not None:
        snapshots.complete(tx, row.snapshot["id"], taken, f"Stack {row.action} completed successfully")
    if heals:
        shards.wake(tx, row.id, now, shards.HEAL)
    return None


@dataclass(frozen=True, slots=True)
class _Stays:
    """The batch is not followed by anything yet: the shard is visited again then; None for never."""

    at: float | None


def _paused(tx: Connection, row: StackRow, batch: Batch, now: float) -> _Stays | None:
    """Have the next batch wait for the end of the pause before it; None where it is over, or no batch follows."""
    # Stored when the batch came to rest; a pass that comes by during the pause must not begin it anew.
    step_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    if step_at <= now or (batch.desired is None and not batch.waits):
        return None
    action_begin.delay_batch(tx, row, step_at)
    return _Stays(step_at)


def _reported(db: Database, tx: Connection, row: StackRow, batch: Batch, tally: Tally, now: float) -> _Stays | None:
    """Decide about a batch whose members have to report; None where it may be followed by what comes next."""
    series, asked = batch.group.series, reports_of(batch.group)
    assert series is not None, "a batch is one of a series"
    assert asked is not None, "reports were counted"
    # What comes next was prepared for what had been reported by then.
    if member_reports.tally(tx, row, series, asked, batch_shards(batch.group, asked)) != tally:
        return _Stays(now)
    due_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    match reporting.verdict(asked, tally, due_at, now):
        case Rest(until):
            action_begin.delay_batch(tx, row, until)
            return _Stays(until)
        case Refuse():
            action_end.fail(db, tx, row.id, int(row.revision), batch.refusal, now)
            return _Stays(None)
    return None
