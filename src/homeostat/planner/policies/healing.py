"""Limits on healing: doubt, policy, and a brake. Pure.

Healing acts on a share of a stack's things at a time (ADR 0046). Where the policy says so, it waits for a user's
consent before it replaces a thing. When every thing of a kind in a project is absent, the look is doubted, not the
things.

A single look may be a mistake: of a list, of a cloud that has just started, of a directory that was away. So an
observer's look alone begins nothing. Before the shard's owner replaces a thing for being absent, it looks for that
thing once more, a moment later, in the same pass. While a replacement is under way, and until the row of the old thing
is removed, a thing that has come back stays (ADR 0045).
"""

from dataclasses import replace

from homeostat.model.budget import Absence
from homeostat.model.desired import Definition
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Presence, Remedy
from homeostat.model.plan import Decision, Step, Verb
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import HealingPolicy, Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context
from homeostat.planner.policies import budget, healing_policy, unhealthy
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import kind_of, type_of

MISSED = "it was not found, and is looked for once more before another one is made"
CAME_BACK = "it came back"
ALL_GONE = "everything of its kind in the project seems to be gone at once, which is more likely a mistake of the look"
CONSENT = "Another one is made when you agree"
BLIND_S, BLIND_S_MAX = 5.0, 120.0
"""Shortest and longest interval in seconds at which it is examined whether a doubt has ended.

Things that are seen again are judged at once in any case.
"""
BLIND_PART = 0.25
"""The interval as a part of the time for which a thing has been missed."""
BRAKE_S = 2.0
"""Seconds between two examinations of how many things are being healed in other shards."""


def postpone_healing(
    context: Context, row: Resource, reason: str, now: float, *, absent: bool = False, destroys: bool = True
) -> Decision | None:
    """Return the reason why a thing is not healed yet, or the step that requests consent; None if it may be healed.

    Args:
        gone: Whether the thing is absent.
        destroys: Whether another thing would be made in its place.
    """
    if _is_unlimited(row):
        return None
    stopped = refused(context, row, reason, now, absent=absent, destroys=destroys)
    if stopped is not None:
        return stopped
    things, healed = context.things, _healed_beside(context, row) + context.world.brake.elsewhere
    if healed < context.world.brake.allowed(things):
        return None
    text = f"{reason}; {healed} of its stack are being healed, and no more are at a time"
    # Within the shard the frontier examines it again when a place is free; other shards do not report theirs.
    due_at = now + BRAKE_S if context.world.brake.elsewhere else None
    return Waiting(row.name, Why.BRAKE, (), text, row.updated_at, due_at, row.key)


def refused(
    context: Context, row: Resource, reason: str, now: float, *, absent: bool = False, destroys: bool = True
) -> Decision | None:
    """Return why a resource is not healed, the brake aside; arguments and values as `postpone_healing`."""
    if _is_unlimited(row):
        return None
    if absent and kind_of(row.type) in context.world.brake.blind and not _is_agreed(context):
        text = f"{reason}; {ALL_GONE}"
        return Waiting(row.name, Why.BLIND, (), text, row.updated_at, now + _blind_s(context, row, now), row.key)
    if destroys and _consent_first(context, row) and not _is_agreed(context):
        return _request_consent(context, row, reason, now)
    return None


def _is_unlimited(row: Resource) -> bool:
    """Return whether no limit holds for the healing of a thing.

    A user's request for this one resource overrides all limits; what is being healed has its place under the brake; and
    to retry a creation is not healing.
    """
    return row.converge_requested_at is not None or (row.marks is not None and row.marks.healing) or was_never_well(row)


def waits_for_others(context: Context, row: Resource, reason: str, now: float) -> Waiting | None:
    """Return why a member of a group that is in service is not healed yet; None where it may be (ADR 0067).

    One that has merely drifted waits for all that are away. One that is marked unhealthy is away already, and another
    one is made before it goes: it waits for those only that are being healed or changed.
    """
    if not _is_one_more(context, row):
        return None
    brake, away = context.world.brake, _away_beside(context, row)
    if unhealthy.merely_marked(row):
        away = {name: why for name, why in away.items() if why in (Absence.HEALED, Absence.CHANGED)}
    others = brake.elsewhere + brake.changing
    waits = _no_room(context, away, others)
    if not waits:
        return None
    due_at = now + BRAKE_S if others else None
    return Waiting(row.name, Why.BUDGET, (), f"{reason}; {waits}", row.updated_at, due_at, row.key)


def waits_for_reports(context: Context, row: Resource) -> str:
    """Return for whom a member that has drifted waits while others have yet to report to an update; "" if for nobody.

    It is at rest meanwhile: the update, which waits for the others, decides only about a group at rest.
    """
    brake = context.world.brake
    awaited = brake.awaited - {row.name}
    if not awaited or not _is_one_more(context, row):
        return ""
    away = dict.fromkeys(awaited, Absence.AWAITED) | _away_beside(context, row)
    # Those that are being changed in other shards have yet to report, too.
    others = brake.elsewhere + max(0, brake.changing - len(awaited - context.current.keys()))
    return _no_room(context, away, others)


def _is_one_more(context: Context, row: Resource) -> bool:
    """Return whether healing a member of a group with a limit would take it away, or is to wait as if it did."""
    itself = budget.absence_of(row, context.world.seen.get(row.key))
    counts = itself is None or (itself is Absence.MARKED and unhealthy.merely_marked(row))
    return context.world.brake.limit.binds and counts and row.converge_requested_at is None and not was_never_well(row)


def _no_room(context: Context, away: dict[str, Absence], others: int) -> str:
    """Return for whom to wait where these leave no room in the limit of the group; "" where there is room.

    Args:
        context: The context.
        away: The members that are away, by name.
        others: How many more are away.
    """
    brake, count = context.world.brake, len(away) + others
    members = context.things if brake.members is None else brake.members
    # At least one at a time, however few may be away.
    if count == 0 or budget.room(brake.limit, members, count) > 0:
        return ""
    return budget.waits_for(away, members, brake.limit, others, what="it")


def _away_beside(context: Context, row: Resource) -> dict[str, Absence]:
    """Return the members of the shard that are away, or are about to be changed, without one of them."""
    # As long as nothing was begun or completed they are the same, however many members wait.
    mark = (context.world.stamp, len(context.healing))
    if context.away is None or context.away[0] != mark:
        context.away = (mark, _away(context))
    return {name: why for name, why in context.away[1].items() if name != row.name}


def _away(context: Context) -> dict[str, Absence]:
    away = budget.away_of(context.current.values(), context.world.seen)
    stack = context.world.stack
    if not context.unsettled or context.failed_early or stack.status != Status.IN_PROGRESS:
        return away
    for row in context.current.values():
        definition = context.world.definitions.get(row.name)
        still = row.name not in away and row.status == Status.COMPLETE and row.action != Action.INIT
        if still and definition is not None and context.is_newer(row) and context.differs(definition, row):
            away[row.name] = Absence.CHANGED
    return away


def _healed_beside(context: Context, row: Resource) -> int:
    """Return how many things of the shard are being healed, not counting those that require this one.

    They cannot become well before this one: counted, they could keep it from being healed for ever.
    """
    names = (context.world.rows[key].name for key in context.healing if key in context.world.rows)
    return sum(not _requires(context, name, row.name) for name in names)


def _requires(context: Context, name: str, other: str) -> bool:
    """Return whether one resource requires another, directly or by others."""
    pending, followers = [name], {name}
    while pending:
        definition = context.world.definitions.get(pending.pop())
        more = set(definition.requires) - followers if definition is not None else set()
        if other in more:
            return True
        followers |= more
        pending += more
    return False


def begin_healing(context: Context, step: Step) -> None:
    """Mark the row of a step that heals: from now on it counts as being healed."""
    row = step.row
    # The step has failed before it began: nothing is being healed.
    if not (row.busy or row.action == Action.INIT):
        return
    row.marks = replace(row.marks or NO_MARKS, healing=True)
    context.healing.add(row.key)


def _blind_s(context: Context, row: Resource, now: float) -> float:
    """Return the seconds until it is examined again whether a look is to be believed."""
    missed_s = now - context.world.seen[row.key].observation.seen_at
    return min(max(BLIND_S, missed_s * BLIND_PART), BLIND_S_MAX)


def _consent_first(context: Context, row: Resource) -> bool:
    """Return whether a user has to agree before another thing is made (CV13)."""
    definition = context.world.definitions.get(row.name)
    metadata = row.metadata if definition is None else definition.metadata
    policy = healing_policy.of_resource(context.world.stack, row.name, metadata, context.world.brake.policy)
    return policy == HealingPolicy.ASK


def _is_agreed(
    context: Context,
) -> bool:
    """Return whether a user has requested to converge the whole stack, without limits."""
    return context.unsettled and context.world.stack.look_from is not None


def _request_consent(context: Context, row: Resource, reason: str, now: float) -> Decision:
    """Fail the check of a resource with the command by which the user agrees, or go on waiting for it."""
    if needs_consent(row) and not context.is_newer(row):
        return Waiting(row.name, Why.NEEDS_CONSENT, (), row.reason, row.updated_at, key=row.key)
    stack = context.world.stack
    way_out = f"{CONSENT}: homeostat converge {stack.name} {row.name}"
    return context.acts.fail(row, f"{reason}. {way_out}", now, "" if row.busy else Action.CHECK)


def look_once_more(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Have the owner look for a missing thing, some time after the first look; None once that was done."""
    if row.key in context.world.looked or not outcome.is_looked_for(row):
        return None
    if row.due_at is not None and row.due_at > now:
        return Waiting(row.name, Why.UNSEEN, (), MISSED, row.updated_at, row.due_at, row.key)
    missed_at = context.world.seen[row.key].observation.seen_at
    due_at = missed_at + max(context.world.second_look_s, context.world.listing_lag_s)
    # A first look in the future comes from another machine's clock; then there is no waiting.
    if missed_at <= now < due_at:
        return Waiting(row.name, Why.UNSEEN, (), MISSED, missed_at, due_at, row.key)
    return Step(Verb.OBSERVE, row, MISSED)


def replaced_for_absence(row: Resource, now: float) -> None:
    """Mark the old row: another thing is made since its own is absent."""
    if outcome.is_looked_for(row):
        row.marks = replace(row.marks or NO_MARKS, lost_at=now)


def came_back(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | None:
    """Reinstate the predecessor of a row if it was replaced for being absent and is there again; else None.

    The predecessor stays, and this row becomes a leftover.
    """
    old = context.world.rows.get(row.replaces or "") if row is not None else None
    if row is None or old is None or not is_lost(old) or old.deleting or old.replaced_by != row.key:
        return None
    if row.status == Status.COMPLETE and row.action != Action.INIT:
        # The replacement may hold data by now, so it stays.
        return None
    if row.handle == old.handle:
        # What is known by its name, or by what it joins, has the same handle again: seen is the replacement.
        return None
    if old.type != definition.type or not _is_usable(context, old, now):
        return None
    # With this `current_row` chooses the old one, also in the next pass: see `current.gave_way`.
    row.replaced_by, old.replaced_by = old.key, None
    # It is a leftover now, which may have to stay: it must not hold back what is to be healed.
    outcome.no_longer_healed(row)
    old.marks = replace(old.marks or NO_MARKS, lost_at=None) or None
    old.judged_observation = outcome.UNJUDGED
    # Its revision may be one at which it was merely absent; set back, it is compared with that.
    old.revision = min(old.revision, context.world.settled_revision)
    # A user may have said already that it is well: then its state stays the same, and nothing happens to it.
    known = old.status == Status.COMPLETE
    completed = outcome.complete(context.world, old, now)
    events = [] if known else completed.events
    for event in events:
        event.reason = CAME_BACK
    return Step(Verb.RECORD, old, CAME_BACK, events=events, also=[row])


def _is_usable(context: Context, old: Resource, now: float) -> bool:
    seen = context.world.seen.get(old.key)
    if seen is None or seen.observation.presence is not Presence.PRESENT:
        return False
    health = context.world.health
    policy = health.policy_of(old.name) if health is not None else None
    if policy is not None and policy.fencing:
        return True  # what may run is cut off before another one is made, as its policy asks
    verdict = type_of(old.type).judge(thing_of(context.world, old), now)
    useless = verdict.condition is Condition.BROKEN and verdict.remedy in (Remedy.RECREATE, Remedy.REPLACE)
    return not useless and verdict.condition is not Condition.PENDING


def needs_consent(row: Resource) -> bool:
    """Return whether a resource waits for a user to agree before another thing is made."""
    return row.failed and row.action == Action.CHECK and CONSENT in row.reason


def was_never_well(row: Resource) -> bool:
    """Return whether a resource is still being made, so that repairing it is no healing."""
    return row.busy and row.action in (Action.CREATE, Action.ADOPT)


def found_again(row: Resource) -> None:
    """Forget that a thing was absent which is there again and stands for its resource: it may be deleted one day."""
    if row.marks is not None and row.marks.lost_at is not None:
        row.marks = replace(row.marks, lost_at=None) or None


def is_lost(row: Resource) -> bool:
    """Return whether another thing was made in the row's place since its own was absent."""
    return row.marks is not None and row.marks.lost_at is not None
