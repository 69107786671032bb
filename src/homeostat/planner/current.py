"""Which row is the resource of a name, when replacements have left several."""

from collections.abc import Iterable

from homeostat.model.status import Status
from homeostat.model.world import Resource, StackFacts


def current_row(rows: Iterable[Resource], stack: StackFacts) -> Resource | None:
    """The row that stands for the name; the others are leftovers.

    A row acted on for the newest revision wins. A rollback prefers what was COMPLETE at the revision it goes back to,
    so that an interrupted replacement is undone rather than redone. Otherwise the newest that did not fail.
    """
    candidates = [row for row in rows if not row.leaving and not gave_way(row)]
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda row: _rank(row, stack), default=None)


def gave_way(row: Resource) -> bool:
    """Was it made in the place of one that was absent, and came back?"""
    return row.replaces is not None and row.replaced_by == row.replaces


def _rank(row: Resource, stack: StackFacts) -> tuple[bool, bool, bool, int]:
    goal = stack.rollback_to
    before = goal is not None and row.revision <= goal and row.status == Status.COMPLETE
    return (row.revision == stack.revision, before, not row.failed, row.born)
