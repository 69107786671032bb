"""Which row is the resource of a name, when replacements have left several."""

from collections.abc import Iterable

from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, StackFacts


def current_row(rows: Iterable[Resource], stack: StackFacts) -> Resource | None:
    """The row that stands for the name; the others are leftovers.

    A row acted on for the newest revision wins. A rollback prefers what was COMPLETE at the revision it goes back to,
    so that an interrupted replacement is undone rather than redone. Otherwise the newest that could be made: one that
    failed later, a check or a mark, does not give way to what it has replaced. What was replaced does not win over its
    successor for having been acted on later than that was judged.
    """
    candidates = [row for row in rows if not row.leaving and not gave_way(row)]
    if len(candidates) == 1:
        return candidates[0]
    there = {row.key for row in candidates}
    return max(candidates, key=lambda row: _rank(row, stack, replaced=row.replaced_by in there), default=None)


def gave_way(row: Resource) -> bool:
    """Was it made in the place of one that was absent, and came back?"""
    return row.replaces is not None and row.replaced_by == row.replaces


def _rank(row: Resource, stack: StackFacts, *, replaced: bool) -> tuple[bool, bool, bool, int]:
    goal = stack.rollback_to
    before = goal is not None and row.revision <= goal and row.status == Status.COMPLETE
    made = not row.failed or (row.action not in (Action.CREATE, Action.ADOPT) and not replaced)
    return (row.revision == stack.revision and not replaced, before, made, row.born)
