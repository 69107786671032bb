"""Limits on healing: doubt, policy, and a brake. Pure.

Healing acts on a share of a stack's things at a time (ADR 0046). If the policy says so, a user has to consent before a
thing is replaced. If all things of a kind in a project are absent, the look is doubted, not the things.

A single look may be wrong: a partial listing, a cloud that has just started, an unmounted directory. An observer's look
alone therefore begins nothing. Before the shard's owner replaces an absent thing, it looks for the thing once more, a
moment later, in the same pass. A thing that comes back before its row is removed is kept (ADR 0045).
"""

from dataclasses import replace

from homeostat.model.budget import Absence
from homeostat.model.desired import Definition
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Presence, Remedy
from homeostat.model.plan import OBSERVE, Decision, Step
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
"""Shortest and longest interval in seconds between examinations of a doubt.

Things that reappear are judged at once in any case.
"""
BLIND_PART = 0.25
"""The interval as a part of the time since a thing was first missed."""
BRAKE_S = 2.0
"""Seconds between two examinations of the number of healings in sibling shards."""


def postpone_healing(
    context: Context, row: Resource, reason: str, now: float, *, absent: bool = False, destroys: bool = True
) -> Decision | None:
    """Return the reason why a thing is not healed yet, or the step that requests consent; None if it may be healed.

    Args:
        absent: Whether the thing was not found.
        destroys: Whether healing replaces the thing.
    """
    if _is_unlimited(row):
        return None
    stopped = refused(context, row, reason, now, absent=absent, destroys=destroys)
    if stopped is not None:
        return stopped
    things, healed = context.things, _healing_siblings(context, row) + context.world.brake.elsewhere
    if healed < context.world.brake.allowed(things):
        return None
    text = f"{reason}; {healed} of its stack are being healed, and no more are at a time"
    # Within the shard the frontier examines the row again at the end of a healing; sibling shards do not report theirs.
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

    A user's request for this resource overrides all limits; a healing in progress is counted by the brake already; and
    the retry of a creation is no healing.
    """
    return (
        row.converge_requested_at is not None or (row.marks is not None and row.marks.healing) or is_being_created(row)
    )


def wait_for_budget(context: Context, row: Resource, reason: str, now: float) -> Waiting | None:
    """Return why a group member in service is not healed yet; None if it may be (ADR 0067).

    A drifted member waits for all absent members. A member marked unhealthy is away already, and its replacement is
    created first, so it waits only for members that are being healed or changed.
    """
    if not _is_one_more(context, row):
        return None
    brake, away = context.world.brake, _absent_siblings(context, row)
    if unhealthy.merely_marked(row):
        away = {name: why for name, why in away.items() if why in (Absence.HEALED, Absence.CHANGED)}
    others = brake.elsewhere + brake.changing
    reason_to_wait = _no_room(context, away, others)
    if not reason_to_wait:
        return None
    due_at = now + BRAKE_S if others else None
    return Waiting(row.name, Why.BUDGET, (), f"{reason}; {reason_to_wait}", row.updated_at, due_at, row.key)


def waits_for_reports(context: Context, row: Resource) -> str:
    """Return which members a drifted member waits for, as they have yet to report to an update; "" if for none.

    The drifted member counts as at rest meanwhile, since the update decides only about a group at rest.
    """
    brake = context.world.brake
    awaited = brake.awaited - {row.name}
    if not awaited or not _is_one_more(context, row):
        return ""
    away = dict.fromkeys(awaited, Absence.AWAITED) | _absent_siblings(context, row)
    # Members being changed in sibling shards have yet to report, too.
    others = brake.elsewhere + max(0, brake.changing - len(awaited - context.current.keys()))
    return _no_room(context, away, others)


def _is_one_more(context: Context, row: Resource) -> bool:
    """Return whether the budget limits the healing of a member that is in service, or merely marked unhealthy."""
    itself = budget.absence_of(row, context.world.seen.get(row.key))
    counts = itself is None or (itself is Absence.MARKED and unhealthy.merely_marked(row))
    return (
        context.world.brake.limit.binds and counts and row.converge_requested_at is None and not is_being_created(row)
    )


def _no_room(context: Context, away: dict[str, Absence], others: int) -> str:
    """Return which members to wait for if the limit of the group is reached; "" if there is room.

    Args:
        away: The absent members by name.
        others: Number of further absent members.
    """
    brake, count = context.world.brake, len(away) + others
    members = context.things if brake.members is None else brake.members
    # At least one member at a time may be healed, even with a limit of zero.
    if count == 0 or budget.room(brake.limit, members, count) > 0:
        return ""
    return budget.waits_for(away, members, brake.limit, others, what="it")


def _absent_siblings(context: Context, row: Resource) -> dict[str, Absence]:
    """Return the siblings of a member in its shard that are away, or are about to be changed."""
    # Cached until an act begins or ends, since many members may wait.
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


def _healing_siblings(context: Context, row: Resource) -> int:
    """Return the number of healings in the shard, except of dependants of this resource.

    A dependant cannot become healthy before this resource, and could block its healing for ever.
    """
    names = (context.world.rows[key].name for key in context.healing if key in context.world.rows)
    return sum(not _requires(context, name, row.name) for name in names)


def _requires(context: Context, name: str, other: str) -> bool:
    """Return whether a resource requires another, directly or indirectly."""
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
    """Count the row of a healing step as being healed."""
    row = step.row
    # The step failed before its act.
    if not (row.busy or row.action == Action.INIT):
        return
    row.marks = replace(row.marks or NO_MARKS, healing=True)
    context.healing.add(row.key)


def _blind_s(context: Context, row: Resource, now: float) -> float:
    """Return the seconds until the next examination of a doubted look."""
    missed_s = now - context.world.seen[row.key].observation.seen_at
    return min(max(BLIND_S, missed_s * BLIND_PART), BLIND_S_MAX)


def _consent_first(context: Context, row: Resource) -> bool:
    """Return whether a user has to consent before the replacement (CV13)."""
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
    """Fail the check of a resource with the command for the user's consent, or go on waiting for consent."""
    if needs_consent(row) and not context.is_newer(row):
        return Waiting(row.name, Why.NEEDS_CONSENT, (), row.reason, row.updated_at, key=row.key)
    stack = context.world.stack
    way_out = f"{CONSENT}: homeostat converge {stack.name} {row.name}"
    return context.acts.fail(row, f"{reason}. {way_out}", now, "" if row.busy else Action.CHECK)


def look_once_more(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Have the owner look for a missing thing, some time after the first look; None if this was done."""
    if row.key in context.world.looked or not outcome.is_looked_for(row):
        return None
    if row.due_at is not None and row.due_at > now:
        return Waiting(row.name, Why.UNSEEN, (), MISSED, row.updated_at, row.due_at, row.key)
    missed_at = context.world.seen[row.key].observation.seen_at
    due_at = missed_at + max(context.world.second_look_s, context.world.listing_lag_s)
    # A first look in the future comes from another machine's clock: do not wait then.
    if missed_at <= now < due_at:
        return Waiting(row.name, Why.UNSEEN, (), MISSED, missed_at, due_at, row.key)
    return Step(row, OBSERVE)


def mark_lost(row: Resource, now: float) -> None:
    """Mark a row as replaced because its thing is absent."""
    if outcome.is_looked_for(row):
        row.marks = replace(row.marks or NO_MARKS, lost_at=now)


def came_back(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | None:
    """Reinstate the predecessor of a row if it was replaced for its absence and has come back; else None.

    This row becomes a leftover.
    """
    old = context.world.rows.get(row.replaces or "") if row is not None else None
    if row is None or old is None or not is_lost(old) or old.deleting or old.replaced_by != row.key:
        return None
    if row.status == Status.COMPLETE and row.action != Action.INIT:
        # The replacement may hold data by now, so it stays.
        return None
    if row.handle == old.handle:
        # A thing identified by its name, or by the things it joins: the look saw the replacement.
        return None
    if old.type != definition.type or not _is_usable(context, old, now):
        return None
    # Makes `current_row` choose the old row, also in the next pass: see `current.gave_way`.
    row.replaced_by, old.replaced_by = old.key, None
    # A leftover may have to stay, and must not use up the limit on healing.
    outcome.end_healing(row)
    old.marks = replace(old.marks or NO_MARKS, lost_at=None) or None
    old.judged_observation = outcome.UNJUDGED
    # The old row may have failed at a revision without being compared with it: set the revision back.
    old.revision = min(old.revision, context.world.settled_revision)
    # If a user has already removed the mark, the state stays the same and there is no event.
    known = old.status == Status.COMPLETE
    completed = outcome.complete(context.world, old, now)
    events = [] if known else completed.events
    for event in events:
        event.reason = CAME_BACK
    return Step(old, events=events, also=[row])


def _is_usable(context: Context, old: Resource, now: float) -> bool:
    seen = context.world.seen.get(old.key)
    if seen is None or seen.observation.presence is not Presence.PRESENT:
        return False
    health = context.world.health
    policy = health.policy_of(old.name) if health is not None else None
    if policy is not None and policy.fencing:
        return True  # it may run, and its policy asks for a fence before the replacement
    verdict = type_of(old.type).judge(thing_of(context.world, old), now)
    useless = verdict.condition is Condition.BROKEN and verdict.remedy in (Remedy.RECREATE, Remedy.REPLACE)
    return not useless and verdict.condition is not Condition.PENDING


def needs_consent(row: Resource) -> bool:
    """Return whether a resource waits for a user's consent to its replacement."""
    return row.failed and row.action == Action.CHECK and CONSENT in row.reason


def is_being_created(row: Resource) -> bool:
    """Return whether a resource is still being created or adopted, so that a repair is no healing."""
    return row.busy and row.action in (Action.CREATE, Action.ADOPT)


def unmark_lost(row: Resource) -> None:
    """Forget the absence of a thing that has come back and is current: later it may be deleted like any thing."""
    if row.marks is not None and row.marks.lost_at is not None:
        row.marks = replace(row.marks, lost_at=None) or None


def is_lost(row: Resource) -> bool:
    """Return whether the row was replaced because its thing was absent."""
    return row.marks is not None and row.marks.lost_at is not None
