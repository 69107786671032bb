"""Budget of unavailable members of a group: how many may be away, and which acts have priority. Pure (ADR 0067).

Healing, marks of users, scaling in and rolling updates share one limit. Acts that bring members back have priority over
acts that take members out of service:

1. Healing a dead member is never limited: it takes no member away.
2. Healing a member that is marked unhealthy or has drifted, but exists, waits for members that are being healed or
   changed; for a drifted member also until the members of an update have reported.
3. An update removes superfluous members while enough members are in service.
4. An update changes members that are away already, and further members within the limit.

New metadata takes no member away.
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
"""Maximum number of members that an explanation names; it counts the rest."""
_WORDS = {
    Absence.HEALED: ("is being healed", "are being healed"),
    Absence.CHANGED: ("is being changed", "are being changed"),
    Absence.AWAITED: ("has yet to signal success", "have yet to signal success"),
    Absence.MARKED: ("is marked unhealthy", "are marked unhealthy"),
    Absence.FAILED: ("has failed", "have failed"),
    Absence.GONE: ("is gone", "are gone"),
}
"""Words for a single member and for several members, in the order of the explanation."""


def limit_of(policy: Mapping[str, object]) -> Limit:
    """Return the limit in the update policy of a group."""
    rolling = policy.get("rolling_update")
    kept = rolling.get("min_in_service") if isinstance(rolling, Mapping) else None
    return Limit(int(kept or 0), str(policy.get("max_unavailable") or ""))


def room(limit: Limit, members: int, away: int) -> int:
    """Return how many more members may be taken out of service, if `away` of `members` already are."""
    return max(0, limit.away_max(members) - away)


def absence_of(row: Resource, seen: Seen | None) -> Absence | None:
    """Return why the member of a row is away; None if it is in service.

    A new member does not count as away, since its creation takes no member out of service.
    """
    # Its replacement counts instead, or the member leaves the group.
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
    """Return whether an update changes the thing of a row, or creates it as a replacement."""
    if row.replaces is not None and row.action == Action.INIT:
        return True
    return row.busy and (row.action == Action.UPDATE or (row.action == Action.CREATE and row.replaces is not None))


def away_of(rows: Iterable[Resource], seen: Mapping[str, Seen]) -> dict[str, Absence]:
    """Return the absent members among these rows, by name.

    A member is also away if one of its companion resources is.
    """
    absences = ((member_of_name(row.name), absence_of(row, seen.get(row.key))) for row in rows)
    return {name: why for name, why in absences if why is not None}


def waits_for(
    away: Mapping[str, Absence], members: int, limit: Limit, others: int = 0, what: str = "the update"
) -> str:
    """Return the reason of a wait for members to come back, for users.

    Args:
        away: The absent members.
        members: Size of the group.
        others: Number of further members that are away, or about to be.
        what: The waiting subject.
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
    """Return `3, 7 and 9`, in numeric order, abbreviated if there are many."""
    ordered = sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
    listed, more = ordered[:NAMED_MAX], len(ordered) - NAMED_MAX
    parts = [*listed, f"{more} more"] if more > 0 else listed
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
