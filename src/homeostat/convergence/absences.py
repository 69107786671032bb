"""Which members of a group are away, read only where something shows that any may be (ADR 0067)."""

from collections.abc import Mapping

from sqlalchemy import Connection

from homeostat.desired.members import batch_shards, leaves_alone, shards_between
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition, Reports, batch_of, reports_of
from homeostat.model.member_names import member_of_name
from homeostat.model.world import StackFacts
from homeostat.planner.policies import rolling_update
from homeostat.planner.policies.budget import absence_of
from homeostat.store.shards import away
from homeostat.store.shards.away import NO_SHARD, Unrest
from homeostat.store.stacks import member_reports


def absences(tx: Connection, stack: StackFacts, group: GroupDefinition) -> dict[str, Absence]:
    """Return the members of a group that are away, by name.

    Args:
        tx: A consistent read.
        stack: The stack of the group.
        group: Its newest revision.
    """
    found = beside({}, tx, stack, NO_SHARD, away.unrest_of(tx, stack.id), group)
    return dict.fromkeys(_late(tx, stack, group), Absence.AWAITED) | found


def beside(
    own_absences: Mapping[str, Absence],
    tx: Connection,
    stack: StackFacts,
    number: int,
    unrest: Unrest,
    group: GroupDefinition,
) -> dict[str, Absence]:
    """Return the members of a group that are away, where those in one of its shards are known.

    Those of the batch under way that merely have to report are not among them: it waits for them itself.

    Args:
        own_absences: The members of that shard that are away.
        tx: A consistent read.
        stack: The stack of the group.
        number: The number of that shard.
        unrest: How much is not at rest, that shard left out.
        group: The newest revision of the group.
    """
    found = dict(own_absences)
    # What nobody brings back shows nowhere else: a shard in which a lost thing is left alone is at rest.
    left_alone = not stack.converge or bool(stack.exceptions) or leaves_alone(group)
    if unrest.own or (left_alone and (number == NO_SHARD or stack.shards > 1)):
        unwell = away.possibly_away(tx, stack.id, number)
        states = ((member_of_name(each.row.name), absence_of(each.row, each.seen)) for each in unwell)
        found |= {name: why for name, why in states if why is not None}
    if unrest.inside:
        found = dict.fromkeys(away.restless_inside(tx, stack.id), Absence.HEALED) | found
    return dict.fromkeys(_unheard(tx, stack, group), Absence.AWAITED) | found


def awaited(tx: Connection, stack: StackFacts, group: GroupDefinition) -> list[str]:
    """Return the members that an update has changed or made, and that have yet to report success.

    Once an update is over it waits for no one. Where it was refused, those that did not report success stay away.
    """
    return [*_late(tx, stack, group), *_unheard(tx, stack, group)] if _awaited_reports(stack, group) else []


def marked(tx: Connection, stack: StackFacts, away_members: Mapping[str, Absence]) -> set[str]:
    """Return the members of a group that are marked unhealthy, or in whose place others are being made for a mark.

    Args:
        tx: A consistent read.
        stack: The stack of the group.
        away_members: Its members that are away.
    """
    found = {name for name, why in away_members.items() if why is Absence.MARKED}
    if away.unrest_of(tx, stack.id).own:
        found.update(map(member_of_name, away.replaced_for_marks(tx, stack.id)))
    return found


def _awaited_reports(stack: StackFacts, group: GroupDefinition) -> Reports | None:
    """Return the reports that an update waits for; None if it waits for none, or is over."""
    asked = reports_of(group)
    waits = asked is not None and asked.count is None and stack.complete_revision != stack.revision
    return asked if waits else None


def _late(tx: Connection, stack: StackFacts, group: GroupDefinition) -> list[str]:
    """Return the members of the batch under way that have yet to report success."""
    asked = _awaited_reports(stack, group)
    if asked is None:
        return []
    batch, shards = batch_of(group), batch_shards(group, asked)
    return member_reports.unreported(tx, stack, batch, asked.since, shards)


def _unheard(tx: Connection, stack: StackFacts, group: GroupDefinition) -> list[str]:
    """Return the members that had not reported when the update began, have not done so since, and come first in it."""
    found: list[str] = []
    left = rolling_update.unheard(group)
    for since in sorted({each[2] for each in left}):
        ranges = [(low, high) for low, high, at in left if at == since]
        shards = {shard for low, high in ranges for shard in shards_between(low, high)}
        found += member_reports.unreported(tx, stack, ranges, since, shards)
    return found
