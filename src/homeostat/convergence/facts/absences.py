"""The absent members of a group, read only if something shows that any may be away (ADR 0067)."""

from collections.abc import Mapping

from homeostat.desired.members import batch_shards, leaves_alone, shards_between
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition, Reports, batch_of, reports_of
from homeostat.model.member_names import member_of_name
from homeostat.model.world import StackFacts
from homeostat.planner.members import rolling_update
from homeostat.planner.policies.budget import absence_of
from homeostat.store.database import Transaction
from homeostat.store.shards import away
from homeostat.store.shards.away import NO_SHARD, Unrest
from homeostat.store.stacks import member_reports


def absences(tx: Transaction, stack: StackFacts, group: GroupDefinition) -> dict[str, Absence]:
    """Return the members of a group that are away, by name.

    Args:
        tx: A consistent read.
        stack: The stack of the group.
        group: Newest revision of the group.
    """
    members = absences_with({}, tx, stack, NO_SHARD, away.unrest_of(tx, stack.id), group)
    return dict.fromkeys(_late(tx, stack, group), Absence.AWAITED) | members


def absences_with(
    own_absences: Mapping[str, Absence],
    tx: Transaction,
    stack: StackFacts,
    number: int,
    unrest: Unrest,
    group: GroupDefinition,
) -> dict[str, Absence]:
    """Return the members of a group that are away, including the known absences in one of its shards.

    Members of the current batch that merely owe a report are left out, since the batch waits for them itself.

    Args:
        own_absences: The absent members of the known shard.
        tx: A consistent read.
        stack: The stack of the group.
        number: The number of the known shard.
        unrest: Counts of resources not at rest in the rest of the stack.
        group: The newest revision of the group.
    """
    members = dict(own_absences)
    # A lost thing that is left alone shows nowhere else: its shard is at rest.
    left_alone = not stack.converge or bool(stack.exceptions) or leaves_alone(group)
    if unrest.own or (left_alone and (number == NO_SHARD or stack.shards > 1)):
        unwell = away.possibly_away(tx, stack.id, number)
        states = ((member_of_name(member.row.name), absence_of(member.row, member.seen)) for member in unwell)
        members |= {name: why for name, why in states if why is not None}
    if unrest.inside:
        members = dict.fromkeys(away.restless_inside(tx, stack.id), Absence.HEALED) | members
    return dict.fromkeys(_unheard(tx, stack, group), Absence.AWAITED) | members


def awaited(tx: Transaction, stack: StackFacts, group: GroupDefinition) -> list[str]:
    """Return the members that an update has changed or created, and that have yet to report success.

    A finished update waits for no member. After a refused update, members without a report of success stay away.
    """
    return [*_late(tx, stack, group), *_unheard(tx, stack, group)] if _awaited_reports(stack, group) else []


def marked(tx: Transaction, stack: StackFacts, away_members: Mapping[str, Absence]) -> set[str]:
    """Return the members of a group that are marked unhealthy, or being replaced because of a mark.

    Args:
        tx: A consistent read.
        stack: The stack of the group.
        away_members: The absent members.
    """
    names = {name for name, why in away_members.items() if why is Absence.MARKED}
    if away.unrest_of(tx, stack.id).own:
        names.update(map(member_of_name, away.replaced_for_marks(tx, stack.id)))
    return names


def _awaited_reports(stack: StackFacts, group: GroupDefinition) -> Reports | None:
    """Return the reports that an update waits for; None if it waits for none, or is finished."""
    asked = reports_of(group)
    waits = asked is not None and asked.count is None and stack.complete_revision != stack.revision
    return asked if waits else None


def _late(tx: Transaction, stack: StackFacts, group: GroupDefinition) -> list[str]:
    """Return the members of the current batch that have yet to report success."""
    asked = _awaited_reports(stack, group)
    if asked is None:
        return []
    batch, shards = batch_of(group), batch_shards(group, asked)
    return member_reports.unreported(tx, stack, batch, asked.since, shards)


def _unheard(tx: Transaction, stack: StackFacts, group: GroupDefinition) -> list[str]:
    """Return the members that owed a report when the update began, still owe the report, and are updated first."""
    names: list[str] = []
    left = rolling_update.unheard(group)
    for since in sorted({item[2] for item in left}):
        ranges = [(low, high) for low, high, at in left if at == since]
        shards = {shard for low, high in ranges for shard in shards_between(low, high)}
        names += member_reports.unreported(tx, stack, ranges, since, shards)
    return names
