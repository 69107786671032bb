"""Rolling updates: once a batch of a group is at rest, the next revision is stored, here and nowhere else (ADR 0014).

The pause between two batches is a column with a due time (`stack.step_at`), not a timer. The next batch follows from
the newest revision alone (`planner.policies.rolling_update`), so after a crash the next worker goes on where the group
stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from homeostat.convergence import snapshot_end
from homeostat.desired.members import group_desired, touched_shards
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.world import StackFacts
from homeostat.planner.policies import rolling_update
from homeostat.store.database import Database
from homeostat.store.schema import Cell
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks import action_begin, action_end, revisions, snapshots
from homeostat.store.stacks.revisions import Desired


@dataclass(frozen=True, slots=True)
class Batch:
    """The next revision of a group in the middle of a rolling update.

    Attributes:
        pause_s: Seconds to wait before it.
        desired: Its content, already encoded for the database.
        touched: Shards that it changes, see `action_begin.begin_batch`.
    """

    pause_s: float
    desired: Desired
    touched: Mapping[int, ShardChange] | None


def next_batch(db: Database, tx: Connection, stack: StackFacts) -> Batch | None:
    """Return the batch after the newest revision of a stack; None where that is the last of its series, or in none."""
    goes_on = stack.parent_id is not None and stack.action not in NON_CHANGING_ACTIONS
    group = revisions.group_of(tx, stack.id, stack.revision) if goes_on else None
    following = rolling_update.next_revision(group) if group is not None else None
    if group is None or following is None:
        return None
    # The whole series is one act of the parent, so each batch carries its intent on. `again` copies the environment
    # and the files from the revision before instead of storing them once more.
    intent = revisions.intent_of(tx, stack.id, stack.revision)
    after = replace(group_desired(following), intent=intent, copied_from=stack.revision)
    touched = touched_shards(Desired("group", group), after)
    return Batch(group["rollout"]["pause_time"], revisions.encode(db, after), touched)


def settle(
    db: Database, tx: Connection, stack_id: str, number: int, now: float, batch: Batch | None, taken: Cell | None = None
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
    if batch is None:
        whole = snapshot_end.is_whole(row)
        if whole and taken is None:
            return now
        action_end.finish(db, tx, row, now)
        if whole and taken is not None:
            snapshots.complete(tx, row.snapshot["id"], taken, f"Stack {row.action} completed successfully")
        return None
    # Stored when the batch came to rest; a pass that comes by during the pause must not begin it anew.
    step_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    if step_at > now:
        action_begin.delay_batch(tx, row, step_at)
        return step_at
    action_begin.begin_batch(db, tx, row, batch.desired, now, batch.touched)
    return None
