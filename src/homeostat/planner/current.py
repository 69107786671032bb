"""Choice of the row that stands for a resource when replacements have left several of its name."""

from collections.abc import Iterable

from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, StackFacts


def current_row(rows: Iterable[Resource], stack: StackFacts) -> Resource | None:
    """Return the current row of a name, or None; the rest are leftovers.

    A row acted on for the newest revision wins. A rollback prefers the row that was COMPLETE at the revision to return
    to, so that an interrupted replacement is undone rather than redone; but a row marked unhealthy would be replaced
    again, so its successor stays. Otherwise the newest row whose creation succeeded wins: a later failure, by a check
    or a mark, does not bring back its predecessor. A replaced row does not win over its successor, even if acted on for
    a newer revision.
    """
    candidates = [row for row in rows if not row.deleting and not gave_way(row)]
    if len(candidates) == 1:
        return candidates[0]
    keys = {row.key for row in candidates}
    return max(candidates, key=lambda row: _rank(row, stack, replaced=row.replaced_by in keys), default=None)


def gave_way(row: Resource) -> bool:
    """Return whether the row replaced an absent thing that has come back.

    Healing then sets `replaced_by` to the predecessor (see `policies.healing.came_back`).
    """
    return row.replaces is not None and row.replaced_by == row.replaces


def _rank(row: Resource, stack: StackFacts, *, replaced: bool) -> tuple[bool, bool, bool, int]:
    """Return the sort key of a candidate; `replaced` says whether its successor is a candidate, too."""
    goal = stack.rollback_to
    marked = row.marks is not None and row.marks.unhealthy is not None
    before = goal is not None and row.revision <= goal and row.status == Status.COMPLETE and not marked
    exists = not row.failed or (row.action not in (Action.CREATE, Action.ADOPT) and not replaced)
    return (row.revision == stack.revision and not replaced, before, exists, row.born)
