"""One budget for everything that takes members of a group out of service: who may go, who goes first. Pure (ADR 0067).

Healing, marks of users, scaling in and rolling updates draw on the same limit. What brings members back goes before
what takes them away:

1. A dead member is healed whatever else goes on: that takes nobody away.
2. One that is marked unhealthy, or differs from what it should be, but is there, waits for members that are being
   healed or changed; the latter also for those that have yet to report to an update.
3. An update removes members that are wanted no more as long as enough others are in service.
4. It changes members that are away already, and as many others as the limit leaves.

New metadata take nobody away.
"""

from collections.abc import Iterable, Mapping

from homeostat.model.budget import Absence, Limit
from homeostat.model.member_names import member_of_name
from homeostat.model.observed import Presence
from homeostat.model.status import Action
from homeostat.model.world import Resource, Seen
from homeostat.planner import outcome
from homeostat.planner.policies.unhealthy import merely_marked

NAMED_MAX = 5
"""Members that an explanation names; the others it counts."""
_WORDS = {
    Absence.HEALED: ("is being healed", "are being healed"),
    Absence.CHANGED: ("is being changed", "are being changed"),
    Absence.AWAITED: ("has yet to signal success", "have yet to signal success"),
    Absence.MARKED: ("is marked unhealthy", "are marked unhealthy"),
    Absence.FAILED: ("has failed", "have failed"),
    Absence.GONE: ("is gone", "are gone"),
}
"""What is said of one member, and of several, in this order."""


def limit_of(policy: Mapping[str, object]) -> Limit:
    """Return the limit that the update policy of a group gives, in the form of `rolling_update`."""
    rolling = policy.get("rolling_update")
    kept = rolling.get("min_in_service") if isinstance(rolling, Mapping) else None
    return Limit(int(kept or 0), str(policy.get("max_unavailable") or ""))


def room(limit: Limit, members: int, away: int) -> int:
    """Return how many more of so many members may be taken out of service, where some are away."""
    return max(0, limit.away_max(members) - away)


def absence_of(row: Resource, seen: Seen | None) -> Absence | None:
    """Return why the member is away for which a row stands; None where it is in service, or has never been.

    A new member is neither: there are as many in service beside it as before.
    """
    if row.deleting or row.replaced_by is not None:
        return None
    if outcome.is_being_healed(row):
        return Absence.HEALED
    if row.failed:
        return Absence.MARKED if merely_marked(row) else Absence.FAILED
    if _is_changed(row):
        return Absence.CHANGED
    return Absence.GONE if row.handle and seen is not None and seen.observation.presence is Presence.ABSENT else None


def _is_changed(row: Resource) -> bool:
    """Return whether an update changes the thing of a row, or makes it in the place of another one."""
    if row.replaces is not None and row.action == Action.INIT:
        return True
    return row.busy and (row.action == Action.UPDATE or (row.action == Action.CREATE and row.replaces is not None))


def away_of(rows: Iterable[Resource], seen: Mapping[str, Seen]) -> dict[str, Absence]:
    """Return the members that are away, by name, among those for which these rows stand.

    A member is away, too, if what stands beside it is.
    """
    absences = ((member_of_name(row.name), absence_of(row, seen.get(row.key))) for row in rows)
    return {name: why for name, why in absences if why is not None}


def waits_for(
    away: Mapping[str, Absence], members: int, limit: Limit, others: int = 0, what: str = "the update"
) -> str:
    """Return for whom something waits, and what it waits for, for users.

    Args:
        away: The members that are away.
        members: How many there are.
        limit: The limit of the group.
        others: How many more are away, or about to be.
        what: What waits.
    """
    groups = {why: [name for name, absence in away.items() if absence is why] for why in _WORDS}
    named = [f"{_names(names)} {_WORDS[why][len(names) > 1]}" for why, names in groups.items() if names]
    named += [f"{others} in other parts of the group"] if others else []
    count = len(away) + others
    are = "is" if count == 1 else "are"
    kept = members - limit.away_max(members)
    condition = f"with at least {kept} in service" if limit.binds else "once they are back"
    return f"{count} of {members} members {are} away: {', '.join(named)}; {what} goes on {condition}"


def _names(names: Iterable[str]) -> str:
    """Return `3, 7 and 9`, in the order of numbers; of many only the first."""
    ordered = sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
    listed, more = ordered[:NAMED_MAX], len(ordered) - NAMED_MAX
    parts = [*listed, f"{more} more"] if more > 0 else listed
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
