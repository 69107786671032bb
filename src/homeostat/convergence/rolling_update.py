"""Rolling updates: once a batch of a group is at rest, the next revision is stored, here and nowhere else (ADR 0014).

The pause between two batches is a column with a due time (`stack.step_at`), not a timer. The next batch follows from
the newest revision alone (`planner.policies.rolling_update`), so after a crash the next worker goes on where the group
stands.

Where members have to report, that column is the end of their time. What they have reported is decided about whenever
the group is at rest (`planner.policies.member_reports`). A report wakes it; nothing asks again and again (ADR 0065).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.convergence import snapshot_end
from homeostat.desired.members import group_desired, leaves_alone, shards_between, touched_shards
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.world import StackFacts
from homeostat.planner.policies import member_reports as reporting
from homeostat.planner.policies import rolling_update
from homeostat.planner.policies.member_reports import Refuse, Rest, Tally
from homeostat.resources import groups
from homeostat.store.database import Database
from homeostat.store.schema import Cell
from homeostat.store.shards import shards
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks import action_begin, action_end, member_reports, revisions, snapshots
from homeostat.store.stacks.revisions import Desired


@dataclass(frozen=True, slots=True)
class Batch:
    """What follows a batch of a group that is at rest.

    Attributes:
        group: The revision of the group.
        pause_s: Seconds to wait before the next one; where members have to report, those that they have.
        desired: Content of the next revision, already encoded for the database; None where this was the last one.
        touched: Shards that it changes, see `action_begin.begin_batch`.
        tally: What members have reported; None where they need not.
        refusal: Reason of the failure of the action, should these reports lead to it. It quotes them: hide what users
            must not see in it.
    """

    group: groups.Group
    pause_s: float = 0.0
    desired: Desired | None = None
    touched: Mapping[int, ShardChange] | None = None
    tally: Tally | None = None
    refusal: str = ""


UNREAD = Tally(-1)
"""In the place of what members have reported, where other shards of their group have yet to come to rest."""


def next_batch(db: Database, tx: Connection, stack: StackFacts, shard: int = 0) -> Batch | None:
    """Return what follows the newest revision of a stack; None where nothing does, or it is no group.

    Args:
        db: The database.
        tx: A consistent read.
        stack: The stack.
        shard: The shard of it that has come to rest.
    """
    goes_on = stack.parent_id is not None and stack.action not in NON_CHANGING_ACTIONS
    group = revisions.group_of(tx, stack.id, stack.revision) if goes_on else None
    if group is None or "rollout" not in group:
        return None
    tally, going, refusal = None, group, ""
    if asks(group) and stack.complete_revision != stack.revision:
        if stack.shards > 1 and action_end.others_unsettled(tx, stack, shard):
            return Batch(group, tally=UNREAD)
        tally = member_reports.tally(tx, stack, group, shards_of(group))
        reports = reporting.after(group["rollout"]["reports"], tally)
        refusal = reporting.refusal(group["rollout"]["reports"], tally)
        going = {**group, "rollout": {**group["rollout"], "reports": reports}}
    now = db.now_of(tx) if tally is not None else 0.0
    following = rolling_update.next_revision(going, now)
    pause_s = group["rollout"]["pause_time"] if tally is None else group["rollout"]["reports"]["timeout"]
    if following is None:
        ends = tally is not None or leaves_alone(group)
        return Batch(group, pause_s, tally=tally, refusal=refusal) if ends else None
    # The whole series is one act of the parent, so each batch carries its intent on. `again` copies the environment
    # and the files from the revision before instead of storing them once more.
    intent = revisions.intent_of(tx, stack.id, stack.revision)
    after = replace(group_desired(following), intent=intent, copied_from=stack.revision)
    touched = touched_shards(Desired("group", group), after)
    return Batch(group, pause_s, revisions.encode(db, after), touched, tally, refusal)


def asks(group: groups.Group) -> bool:
    """Return whether members have to report once this revision of a group is at rest.

    Those of a group that is being made do so once all are there.
    """
    asked = (group.get("rollout") or {}).get("reports")
    if asked is None:
        return False
    return asked["count"] is None or rolling_update.next_revision(group) is None


def shards_of(group: groups.Group) -> set[int]:
    """Return the shards in which members of the batch under way are; of a group that is being made, all of them."""
    rollout = group["rollout"]
    everything = [(0, groups.names_end(group["count"], group["skip"]))]
    ranges = rollout["batch"] if rollout["reports"]["count"] is None else everything
    return {shard for low, high in ranges for shard in shards_between(low, high)}


def settle(
    db: Database,
    tx: Connection,
    stack_id: str,
    number: int,
    now: float,
    batch: Batch | None,
    taken: Cell | None = None,
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

    Returns:
        When the shard has to be visited again: at the end of the pause before the next batch, or `now` where the
        description of a snapshot has still to be read. None where nothing is left to do.
    """
    # Locks the stack's row: of two shards that come to rest in the same instant the second sees the first at rest.
    row = action_end.lock_settled(db, tx, stack_id, number)
    if row is None:
        return None
    if batch is not None and batch.tally is not None:
        stays = _reported(db, tx, row, batch, batch.tally, now)
        if stays is not None:
            return stays.at
    elif batch is not None and batch.desired is not None:
        # Stored when the batch came to rest; a pass that comes by during the pause must not begin it anew.
        step_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
        if step_at > now:
            action_begin.delay_batch(tx, row, step_at)
            return step_at
    if batch is not None and batch.desired is not None:
        action_begin.begin_batch(db, tx, row, batch.desired, now, batch.touched)
        return None
    return _finish(db, tx, row, now, taken, heals=batch is not None and leaves_alone(batch.group))


def _finish(
    db: Database, tx: Connection, row: Row[Any], now: float, taken: Cell | None, *, heals: bool
) -> float | None:
    """End the action of a stack; `heals` says whether what broke meanwhile has still to be healed."""
    whole = snapshot_end.is_whole(row)
    if whole and taken is None:
        return now
    action_end.finish(db, tx, row, now)
    if whole and taken is not None:
        snapshots.complete(tx, row.snapshot["id"], taken, f"Stack {row.action} completed successfully")
    if heals:
        shards.wake(tx, row.id, now, shards.HEAL)
    return None


@dataclass(frozen=True, slots=True)
class _Stays:
    """The batch is not followed by anything yet: the shard is visited again then; None for never."""

    at: float | None


def _reported(db: Database, tx: Connection, row: Row[Any], batch: Batch, tally: Tally, now: float) -> _Stays | None:
    """Decide about a batch whose members have to report; None where it may be followed by what comes next."""
    # What comes next was prepared for what had been reported by then.
    if member_reports.tally(tx, row, batch.group, shards_of(batch.group)) != tally:
        return _Stays(now)
    asked = batch.group["rollout"]["reports"]
    due_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    match reporting.verdict(asked, tally, due_at, now):
        case Rest(until):
            action_begin.delay_batch(tx, row, until)
            return _Stays(until)
        case Refuse():
            action_end.fail(db, tx, row.id, int(row.revision), batch.refusal, now)
            return _Stays(None)
    # They say nothing about later batches. What is still to be said of this one is too late.
    member_reports.drop(tx, row.parent_key, None if batch.desired is None else now)
    return None
