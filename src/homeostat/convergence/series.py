"""Groups that change batch by batch: when one batch is at rest the next revision is made, here and nowhere else.

The pause between two batches is a row with a due time (law 7). What the next batch is follows from the newest revision
alone (`planner.rolling`), so whoever comes after a crash goes on where the group stands.
"""

from dataclasses import replace

from sqlalchemy import Connection

from homeostat.convergence import taking
from homeostat.convergence.definitions import group_desired, touched_shards
from homeostat.model.status import Action
from homeostat.planner import rolling
from homeostat.store import stacks
from homeostat.store.database import Database


def settle(db: Database, tx: Connection, stack_id: str, number: int, now: float) -> float | None:
    """Finish the action of a stack that came to rest at revision `number`, unless that is only one batch of a series.

    Gives the time of the next batch when that has to be waited for.
    """
    row = stacks.settled(db, tx, stack_id, number)
    if row is None:
        return None
    goes_on = row.parent_id is not None and row.action not in stacks.CHANGING_NOTHING
    group = stacks.group_of(tx, stack_id, number) if goes_on else None
    following = rolling.following(group) if group is not None else None
    if group is None or following is None:
        stacks.finish(db, tx, row, now)
        if row.action == Action.SNAPSHOT:
            taking.finish(tx, row)
        return None
    step_at = now + group["rollout"]["pause_time"] if row.step_at is None else float(row.step_at)
    if step_at > now:
        stacks.put_off(tx, row, step_at)
        return step_at
    before = stacks.desired_of(tx, stack_id, number)
    after = replace(group_desired(following), environment=before.environment, files=before.files, intent=before.intent)
    stacks.go_on(db, tx, row, after, now, touched_shards(before, after))
    return None
