"""Groups that change batch by batch: when one batch is at rest the next revision is made, here and nowhere else.

The pause between two batches is a row with a due time (law 7). What the next batch is follows from the newest revision
alone (`planner.policies.rolling_update`), so whoever comes after a crash goes on where the group stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from homeostat.convergence import snapshot_end
from homeostat.desired.graphs import group_desired, touched_shards
from homeostat.model.world import StackFacts
from homeostat.planner.policies import rolling_update
from homeostat.store.database import Database
from homeostat.store.schema import Cell
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks import snapshots, stacks
from homeostat.store.stacks.stacks import Desired


@dataclass(frozen=True, slots=True)
class Batch:
    """What a group becomes next. pause_s — before that; desired — written out; touched — see `stacks.go_on`."""

    pause_s: float
    desired: Desired
    touched: Mapping[int, ShardChange] | None


def next_batch(db: Database, tx: Connection, stack: StackFacts) -> Batch | None:
    """The batch after the newest revision of a stack, where that is one of a series."""
    goes_on = stack.parent_id is not None and stack.action not in stacks.CHANGING_NOTHING
    group = stacks.group_of(tx, stack.id, stack.revision) if goes_on else None
    following = rolling_update.following(group) if group is not None else None
    if group is None or following is None:
        return None
    intent = stacks.intent_of(tx, stack.id, stack.revision)
    after = replace(group_desired(following), intent=intent, again=stack.revision)
    touched = touched_shards(Desired("group", group), after)
    return Batch(group["rollout"]["pause_time"], stacks.write_out(db, after), touched)


def settle(
    db: Database, tx: Connection, stack_id: str, number: int, now: float, batch: Batch | None, taken: Cell | None = None
) -> float | None:
    """Finish the action of a stack that came to rest at revision `number`, unless that is only one batch of a series.

    batch — the next one, if there is one; taken — what is remembered of it, if that was read since all of it is at
    rest. Gives the time when it goes on, where that has to be waited for: at once where it was not read yet.
    """
    row = stacks.settled(db, tx, stack_id, number)
    if row is None:
        return None
    if batch is None:
        whole = snapshot_end.is_whole(row)
        if whole and taken is None:
            return now
        stacks.finish(db, tx, row, now)
        if whole and taken is not None:
            snapshots.complete(tx, row.snapshot["id"], taken, f"Stack {row.action} completed successfully")
        return None
    step_at = now + batch.pause_s if row.step_at is None else float(row.step_at)
    if step_at > now:
        stacks.put_off(tx, row, step_at)
        return step_at
    stacks.go_on(db, tx, row, batch.desired, now, batch.touched)
    return None
