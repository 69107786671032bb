"""Which members of groups are away, as the rows of a world have it: for the invariants of one budget (ADR 0067)."""

from collections import defaultdict
from typing import Any

from homeostat.model.group import GroupDefinition
from homeostat.resources import groups

PREPARED_WITHIN = 100
"""Commits within which a first batch is worked out and stored."""
RELEASED_WITHIN = 10
"""Commits within which a later one is, while a pass gives its shard back."""
AWAY = """SELECT r.stack_id, r.name FROM resource r LEFT JOIN resource_observed o ON o.key = r.key
    WHERE r.action <> 'DELETE' AND r.replaced_by IS NULL AND (
        r.status = 'FAILED' OR (r.status = 'IN_PROGRESS' AND r.action = 'UPDATE') OR (r.handle <> '' AND
        o.presence = 'absent') OR (r.replaces IS NOT NULL AND (r.action = 'INIT' OR (r.action = 'CREATE' AND
        r.status = 'IN_PROGRESS'))))"""


def away_now(db: Any) -> dict[str, set[str]]:
    """Return the names of the members that are away, by their stacks."""
    away: dict[str, set[str]] = defaultdict(set)
    for stack_id, name in db.raw.execute(AWAY).fetchall():
        away[stack_id].add(name)
    return away


def members_of(group: GroupDefinition) -> dict[str, Any]:
    """Return the definition of each member of a group by its name."""
    return dict(groups.definitions_between(group, 0, groups.end_of(group)))
