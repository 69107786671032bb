"""Marks of people (and of their programs) that say: this resource is unhealthy, whatever is seen of it (MU). Pure.

A row keeps one under the key `unhealthy` of its marks: `{"by": user or None, "reporter": text or None, "reason": text,
"since": time, "expires_at": time or None, "before": [action, reason] or None}`, times in seconds since the epoch. It
holds until the resource is replaced, the mark is taken away, or its time is over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from homeostat.model.plan import Event, Step, Verb
from homeostat.model.status import UNBEGUN, Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome

UNHEALTHY = "unhealthy"
EXPIRED = "the time of its mark is over"


@dataclass(frozen=True, slots=True)
class Mark:
    """Who says so (the caller, and what the caller calls itself), why, since when and until when; None: no end.

    before — which action had failed when the mark came, and why: when the time of the mark is over, it still has. So it
    has when the mark is taken away, where nothing was ever made."""

    reason: str
    since: float
    by: str | None = None
    reporter: str | None = None
    expires_at: float | None = None
    before: Sequence[str] | None = None

    def is_over(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


def mark_of(row: Resource) -> Mark | None:
    """The mark that a row carries."""
    found: Mapping[str, object] | None = (row.marks or {}).get(UNHEALTHY)
    return None if found is None else Mark(**found)  # type: ignore[arg-type]


def marked(row: Resource, mark: Mark) -> Event:
    """Put a mark on a row; gives what happened."""
    earlier = mark_of(row)
    if earlier is not None:
        mark = replace(mark, before=earlier.before)
    elif row.failed and (row.action in UNBEGUN - {Action.CHECK} or row.handle == ""):
        mark = replace(mark, before=(row.action, row.reason))
    row.marks = {**(row.marks or {}), UNHEALTHY: asdict(mark)}
    row.action, row.status, row.reason, row.updated_at = Action.CHECK, Status.FAILED, mark.reason, mark.since
    return outcome.event_of(row, row.status, row.reason)


def unmarked(row: Resource, reason: str, settled_revision: int, now: float) -> Event:
    """Take away that it failed its check, marked or not; gives what happened. It is judged anew by what is seen of it.
    What was never made is not well because somebody says so: it has failed as before.

    settled_revision — of its shard: it was never compared with a later revision at which it merely failed.
    """
    if row.handle == "":
        return _failed_as_before(row, now)
    forget(row)
    row.action, row.status, row.reason, row.updated_at = Action.CHECK, Status.COMPLETE, reason, now
    row.revision = min(row.revision, settled_revision)
    row.judged = outcome.UNJUDGED
    return outcome.event_of(row, row.status, row.reason)


def _failed_as_before(row: Resource, now: float) -> Event:
    mark = mark_of(row)
    forget(row)
    if mark is not None and mark.before is not None:
        row.action, row.reason = mark.before
    row.status, row.updated_at = Status.FAILED, now
    return outcome.event_of(row, row.status, row.reason)


def forget(row: Resource) -> None:
    """What carried the mark is not there any more, or is looked at anew."""
    row.marks = {name: mark for name, mark in (row.marks or {}).items() if name != UNHEALTHY} or None


def expire(world: World, row: Resource, now: float) -> Step:
    """Nobody has acted on the mark in time."""
    if not (row.failed and row.action == Action.CHECK):
        forget(row)
        return Step(Verb.RECORD, row)
    mark = mark_of(row)
    if mark is not None and mark.before is not None:
        event = _failed_as_before(row, now)
    else:
        event = unmarked(row, EXPIRED, world.settled_revision, now)
    row.changed = world.next_stamp()
    return Step(Verb.RECORD, row, events=[event])


def fails_again(row: Resource, mark: Mark, now: float) -> Step:
    """Something was done about it that left the mark as it is: while it waits, it has failed its check as before."""
    row.action, row.status, row.reason, row.updated_at = Action.CHECK, Status.FAILED, mark.reason, now
    return Step(Verb.RECORD, row, events=[outcome.event_of(row, row.status, row.reason)])


def merely_marked(row: Resource) -> bool:
    """Has it failed because somebody says so, and not of what was done about it?"""
    return row.failed and row.action == Action.CHECK and mark_of(row) is not None
