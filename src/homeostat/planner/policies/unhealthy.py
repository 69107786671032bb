"""Marks of users and their programs that a resource is unhealthy, whatever is seen of it (MU1 to MU8). Pure.

A row keeps its mark under the key `unhealthy` of `marks`, with the fields of `Mark`. The mark holds until the resource
is replaced, the mark is taken away, or its time is over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from homeostat.model.plan import Event, Step, Verb
from homeostat.model.status import UNBEGUN, Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome

UNHEALTHY = "unhealthy"
"""Key of the mark."""
EXPIRED = "the time of its mark is over"


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on a row; times are in seconds since the epoch.

    Attributes:
        reason: Why the resource is unhealthy.
        since: When it was marked.
        by: User who made the request, None if not known.
        reporter: Name that the caller gives itself, if any.
        expires_at: When the mark ends; None for no end.
        before: Action that had failed when the mark came, and its reason. The resource fails with that again when the
            mark expires, or, if nothing was ever made, when it is taken away. None if nothing had failed.
    """

    reason: str
    since: float
    by: str | None = None
    reporter: str | None = None
    expires_at: float | None = None
    before: Sequence[str] | None = None

    def is_over(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


def mark_of(row: Resource) -> Mark | None:
    """Return the mark that a row carries."""
    found: Mapping[str, object] | None = (row.marks or {}).get(UNHEALTHY)
    return None if found is None else Mark(**found)  # type: ignore[arg-type]


def marked(row: Resource, mark: Mark) -> Event:
    """Put a mark on a row; return the event."""
    earlier = mark_of(row)
    if earlier is not None:
        # The failure in the row now is the earlier mark's own.
        mark = replace(mark, before=earlier.before)
    elif row.failed and (row.action in UNBEGUN - {Action.CHECK} or row.handle == ""):
        mark = replace(mark, before=(row.action, row.reason))
    row.marks = {**(row.marks or {}), UNHEALTHY: asdict(mark)}
    row.enter(Action.CHECK, Status.FAILED, mark.reason)
    row.updated_at = mark.since
    return outcome.event_of(row)


def unmarked(row: Resource, reason: str, settled_revision: int, now: float) -> Event:
    """Make a failed check of a row COMPLETE, whether it was marked or not; return the event.

    The row is judged again by what is seen of it. One whose thing was never made fails as it did before the mark:
    taking the mark away makes nothing.

    Args:
        settled_revision: Newest revision at which its shard came to rest. The row was never compared with a later one
            at which it merely failed.
    """
    if row.handle == "":
        return _failed_as_before(row, now)
    forget(row)
    row.enter(Action.CHECK, Status.COMPLETE, reason)
    row.updated_at = now
    row.revision = min(row.revision, settled_revision)
    row.judged = outcome.UNJUDGED
    return outcome.event_of(row)


def _failed_as_before(row: Resource, now: float) -> Event:
    mark = mark_of(row)
    forget(row)
    action, reason = mark.before if mark is not None and mark.before is not None else (row.action, row.reason)
    row.enter(action, Status.FAILED, reason)
    row.updated_at = now
    return outcome.event_of(row)


def forget(row: Resource) -> None:
    """Remove the mark: the thing that carried it is gone, or is judged again."""
    row.marks = {name: mark for name, mark in (row.marks or {}).items() if name != UNHEALTHY} or None


def expire(world: World, row: Resource, now: float) -> Step:
    """End a mark whose time is over."""
    if not (row.failed and row.action == Action.CHECK):
        forget(row)
        return Step(Verb.RECORD, row)
    mark = mark_of(row)
    if mark is not None and mark.before is not None:
        event = _failed_as_before(row, now)
    else:
        event = unmarked(row, EXPIRED, world.settled_revision, now)
    # Whatever reads it is examined again, as after any change of its state.
    row.changed = world.next_stamp()
    return Step(Verb.RECORD, row, events=[event])


def fails_again(row: Resource, mark: Mark, now: float) -> Step:
    """Fail the check of a marked row again, since an act in between has left its mark."""
    row.enter(Action.CHECK, Status.FAILED, mark.reason)
    row.updated_at = now
    return Step(Verb.RECORD, row, events=[outcome.event_of(row)])


def merely_marked(row: Resource) -> bool:
    """Return whether a row has failed by its mark alone, not by an act on it."""
    return row.failed and row.action == Action.CHECK and mark_of(row) is not None
