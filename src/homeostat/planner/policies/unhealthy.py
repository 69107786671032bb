"""Marks of users and their programs that a resource is unhealthy, whatever its observations (MU1 to MU8). Pure.

A mark holds until the resource is replaced, the mark is removed, or its time is over.
"""

from dataclasses import replace

from homeostat.model.marks import NO_MARKS, UnhealthyMark
from homeostat.model.plan import Event, Step, event_of
from homeostat.model.status import UNBEGUN, Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome

EXPIRED = "the time of its mark is over"


def mark_of(row: Resource) -> UnhealthyMark | None:
    """Return the mark of a row, if any."""
    return None if row.marks is None else row.marks.unhealthy


def marked(row: Resource, mark: UnhealthyMark) -> Event:
    """Put a mark on a row; return the event."""
    earlier = mark_of(row)
    if earlier is not None:
        # The failure in the row now is the earlier mark's own.
        mark = replace(mark, before=earlier.before)
    elif row.failed and (row.action in UNBEGUN - {Action.CHECK} or row.handle == ""):
        mark = replace(mark, before=(row.action, row.reason))
    row.marks = replace(row.marks or NO_MARKS, unhealthy=mark)
    row.enter(Action.CHECK, Status.FAILED, mark.reason)
    row.updated_at = mark.since
    return event_of(row)


def unmarked(row: Resource, reason: str, settled_revision: int, now: float) -> Event:
    """Make a failed check of a row COMPLETE, whether it was marked or not; return the event.

    The row is judged again by its observation. Without a thing the row gets its former failure back, since removing a
    mark creates nothing.

    Args:
        settled_revision: Newest revision at which the shard came to rest: the row was never compared with a later
            revision at which it merely failed.
    """
    if row.handle == "":
        return _failed_as_before(row, now)
    forget(row)
    row.enter(Action.CHECK, Status.COMPLETE, reason)
    row.updated_at = now
    row.revision = min(row.revision, settled_revision)
    row.judged_observation = outcome.UNJUDGED
    return event_of(row)


def _failed_as_before(row: Resource, now: float) -> Event:
    mark = mark_of(row)
    forget(row)
    action, reason = mark.before if mark is not None and mark.before is not None else (row.action, row.reason)
    row.enter(action, Status.FAILED, reason)
    row.updated_at = now
    return event_of(row)


def forget(row: Resource) -> None:
    """Remove the mark, since its thing is gone or will be judged again."""
    if row.marks is not None:
        row.marks = replace(row.marks, unhealthy=None) or None


def expire(world: World, row: Resource, now: float) -> Step:
    """End an expired mark."""
    if not (row.failed and row.action == Action.CHECK):
        forget(row)
        return Step(row)
    mark = mark_of(row)
    if mark is not None and mark.before is not None:
        event = _failed_as_before(row, now)
    else:
        event = unmarked(row, EXPIRED, world.settled_revision, now)
    # Have the dependants examined again, as after any change of state.
    row.changed = world.next_stamp()
    return Step(row, events=[event])


def fails_again(row: Resource, mark: UnhealthyMark, now: float) -> Step:
    """Fail the check of a marked row again after an act in between."""
    row.enter(Action.CHECK, Status.FAILED, mark.reason)
    row.updated_at = now
    return Step(row, events=[event_of(row)])


def merely_marked(row: Resource) -> bool:
    """Return whether a row has failed by its mark alone, not by an act."""
    return row.failed and row.action == Action.CHECK and mark_of(row) is not None
