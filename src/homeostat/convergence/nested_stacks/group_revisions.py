"""The next revision of a group's nested stack: its members, in batches if its update policy says so."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from homeostat.convergence.facts.absences import absences, marked
from homeostat.convergence.nested_stacks import removal_requests
from homeostat.convergence.nested_stacks.removal_requests import RemovalRequests
from homeostat.model.budget import Absence
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.group import GroupDefinition
from homeostat.model.rollout import AppliesTo
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner.members import rolling_update, staged_group
from homeostat.planner.scope import thing_of
from homeostat.resources import groups, listed_members
from homeostat.resources.base import ResourceType
from homeostat.resources.families.balanced import SERVER
from homeostat.resources.families.launch_configurations import COPIED, LaunchConfiguration, LikeServer
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.resources.families.resource_groups import Launched, Membership
from homeostat.resources.families.scaling import ScalingGroup
from homeostat.resources.registry import type_of
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks
from homeostat.store.stacks.contents import Content
from homeostat.templates.weights import TooHeavy, weight

MEMBERS_MAX = 32 * 1024 * 1024
"""Weight (`templates.weights`) of the definitions of the members of a group or chain that are loaded together."""


def group_revision(
    tx: Transaction,
    world: World,
    row: Resource,
    nested: StackRow | None,
    nested_id: str,
    before: Content,
    now: float,
    requests: RemovalRequests,
    model: Mapping[str, Any] | None = None,
    *,
    adopts: bool = False,
) -> GroupDefinition:
    """Return the next revision of a group's stack: the wanted one, or the first batch on the way to it.

    Args:
        tx: A consistent read.
        world: World of the parent's shard.
        row: Row of the group.
        nested: Row of the group's stack; None if it does not exist yet.
        nested_id: Id of the group's stack.
        before: Newest revision of the group's stack.
        requests: Earlier removal requests, besides the group's properties.
        model: Settings that a new group copies from the server that is the model of its members.
        adopts: Whether its members are adopted, and so do not have to report.

    Raises:
        Terminal: The members cannot be as the group describes them.
    """
    kind = type_of(row.type)
    values = kind.complete(row.properties)
    standing = before.group
    away = away_members(tx, nested, standing)
    failed, first = failed_of(away), first_to_leave(tx, nested, away)
    launched: Launched = (lambda _: model) if model is not None else lambda name: launched_in(world, name)
    wanted = wanted_group(tx, kind, values, nested, before, launched, nested_id, failed, first, requests)
    policy = kind.batches(values) if isinstance(kind, Membership) else {}
    if adopts:
        policy = {name: settings for name, settings in policy.items() if name != "creation"}
    new, pending = nested is None or nested.complete_revision is None, is_pending(nested)
    if isinstance(kind, Membership) and kind.rolls_out(values, AppliesTo.DEFINITION):
        if nested is not None and standing is not None and not new and not adopts and not _goes_back(world):
            return staged_group.begin(standing, wanted, int(nested.revision) + 1)
        policy = {name: settings for name, settings in policy.items() if name != "rolling_update"}
    return rolling_update.begin(standing, wanted, policy, failed, new, away, pending=pending, now=now)


def _goes_back(world: World) -> bool:
    """Return whether a stack returns to an earlier, working definition, which its members then get at once."""
    return world.stack.restoring or world.stack.action in (Action.ROLLBACK, Action.RESTORE)


def is_pending(nested: StackRow | None) -> bool:
    """Return whether the stack of a group has yet to complete its newest revision."""
    under_way = nested is not None and nested.status == Status.IN_PROGRESS
    return nested is not None and under_way and nested.complete_revision != nested.revision


def away_members(tx: Transaction, nested: StackRow | None, group: GroupDefinition | None) -> Mapping[str, Absence]:
    """Return the members of a group that are away.

    Args:
        tx: A consistent read.
        nested: Row of the group's stack; None if absent.
        group: Its newest revision.
    """
    return absences(tx, stacks.facts(nested), group) if nested is not None and group is not None else {}


def failed_of(away: Mapping[str, Absence]) -> Collection[str]:
    """Return the names of the FAILED or marked members among the absent ones."""
    return {name for name, why in away.items() if why in (Absence.FAILED, Absence.MARKED)}


def first_to_leave(tx: Transaction, nested: StackRow | None, away: Mapping[str, Absence]) -> Collection[str]:
    """Return the members that leave first when a group shrinks: marked unhealthy, or being replaced because of a mark.

    Args:
        tx: A consistent read.
        nested: Row of the group's stack; None if absent.
        away: The absent members.
    """
    return marked(tx, stacks.facts(nested), away) if nested is not None else ()


def launched_in(world: World, reference: str) -> Mapping[str, Any] | None:
    """Return the properties of the launch configuration in this shard with this reference."""
    for row in world.rows.values():
        kind = type_of(row.type)
        if isinstance(kind, LaunchConfiguration) and kind.reference(thing_of(world, row, kind)) == reference:
            return kind.settings(thing_of(world, row, kind))
    return None


def model_of(group: GroupDefinition | None) -> Mapping[str, Any] | None:
    """Return the settings that a group of servers has copied from its model server; None if it is new."""
    properties: Mapping[str, Any] = {} if group is None else group.resource_def.get("properties") or {}
    properties = properties.get(SERVER, properties)
    return {name: properties[name] for name in COPIED.values() if name in properties} or None


def wanted_group(
    tx: Transaction,
    kind: ResourceType,
    values: Mapping[str, Any],
    nested: StackRow | None,
    before: Content,
    launched: Launched,
    nested_id: str,
    failed: Collection[str],
    first: Collection[str] = (),
    requests: RemovalRequests = RemovalRequests(math.inf),
) -> GroupDefinition:
    """Return the revision of a group's stack at which its batches aim.

    Members removed by name stay out as long as the skip list names them; members that left because of a mark stay out
    for good.

    Args:
        tx: A consistent read.
        values: Properties of the group, with defaults.
        nested: Row of the group's stack; None if it does not exist yet.
        before: Newest revision of the group's stack.
        launched: Returns the properties of members by the reference of their launch configuration, or of their model
            server; None if absent.
        nested_id: Id of the group's stack.
        failed: Names of its FAILED members.
        first: Names of the members that leave first, see `first_to_leave`.
        requests: Earlier removal requests, besides the group's properties.

    Raises:
        Terminal: The members cannot be as the group describes them.
    """
    standing = before.group
    if isinstance(kind, ScalingGroup):
        # Settings copied from a model server stay, whatever happens to that server.
        taken = model_of(standing) if isinstance(kind, LikeServer) and kind.model(values) else None
        member = kind.member(values, launched if taken is None else lambda _: taken, nested_id)
        scaled = _scaled(kind, values, member, standing, failed, first)
        return listed_members.kept_own(standing, scaled)
    skip = removal_requests.skip_list(tx, nested, standing, values, requests)
    group = GroupDefinition(values["resource_def"], values["index_var"], values["count"], tuple(skip))
    if isinstance(kind, NodeGroup):  # its cluster decides which of its nodes leave
        own, companions = kind.own(values), kind.companions(values)
        return replace(group, nodes=kind.names(values), own=own, companions=companions)
    leaving = groups.leaving_first(standing, values["count"], skip, first)
    left = (*(() if standing is None else standing.left), *leaving)
    return listed_members.kept_own(standing, replace(group, skip=(*skip, *leaving), left=left))


def _scaled(
    kind: ScalingGroup,
    values: Mapping[str, Any],
    member: Any,
    before: GroupDefinition | None,
    failed: Collection[str],
    first: Collection[str],
) -> GroupDefinition:
    """Return a scaling group in its wanted size, which is the present size unless the template gives one.

    Args:
        values: Properties of the group, with defaults.
        member: Definition of each member; None if its launch configuration is missing.
        before: The group in its newest revision; None if it does not exist yet.
        failed: Names of its FAILED members.
        first: Names of further members that leave first.

    Raises:
        Terminal: There is no such launch configuration.
    """
    if member is None:
        name = values.get("LaunchConfigurationName")
        raise Terminal(f"There is no launch configuration {name} in this stack: refer to one with get_resource or Ref")
    healthy = None
    if before is not None:
        healthy = groups.size_of(before) - sum(groups.is_member(name, before) for name in failed)
    return groups.resized(before, member, kind.wanted_size(values, healthy), {*failed, *first})


def listed_group(
    tx: Transaction,
    row: Resource,
    nested: StackRow,
    before: GroupDefinition,
    listed: listed_members.Listed,
    now: float,
) -> GroupDefinition:
    """Return the next revision of a group's stack whose user has listed its members, or the first batch on the way.

    Args:
        tx: A consistent read.
        row: Row of the group.
        nested: Row of the group's stack.
        before: Newest revision of the group's stack.
        listed: All its members, see `listed_members`.

    Raises:
        Rejected: The group cannot have these members.
    """
    kind = type_of(row.type)
    values = kind.complete(row.properties)
    if before.staged is not None or (isinstance(kind, Membership) and kind.rolls_out(values, AppliesTo.DEFINITION)):
        message = "The members of this group get their definition in a rollout: update the group instead."
        raise Rejected("NotSupported", message)
    wanted = listed_members.as_listed(before, listed)
    policy = kind.batches(values) if isinstance(kind, Membership) else {}
    away, new = away_members(tx, nested, before), nested.complete_revision is None
    pending = is_pending(nested)
    return rolling_update.begin(before, wanted, policy, failed_of(away), new, away, pending=pending, now=now)


def check_weight(row: Resource, member: Any, count: int) -> None:
    """Check that a number of equal members of a group is light enough to be loaded together.

    Raises:
        Terminal: The members are too heavy.
    """
    try:
        weight(member, MEMBERS_MAX // max(count, 1))
    except TooHeavy as error:
        message = f"{row.name}: {count} members at once, of each of which the {error}: make them lighter, or fewer"
        raise Terminal(message) from error


def check_time(group: GroupDefinition, time_left_s: float) -> None:
    """Check that the pauses between batches fit into the remaining time.

    Raises:
        Terminal: The pauses alone take longer.
    """
    total_s = 0.0
    for pause_s in rolling_update.pauses_s(group):
        total_s += pause_s
        if total_s >= time_left_s:
            raise Terminal("The current update policy will result in stack update timeout.")
        # All pauses of a series are equal: a long series without pauses need not be walked to its end.
        if not pause_s:
            return


def check_policy(
    kind: ResourceType,
    values: Mapping[str, Any],
    nested: StackRow | None,
    before: Content,
    wanted: GroupDefinition,
    away: Mapping[str, Absence],
    time_left_s: float,
) -> None:
    """Check that a group can reach its wanted revision in the batches of its update policy.

    Args:
        values: Properties of the group, with defaults.
        nested: Row of the group's stack; None if it does not exist yet.
        before: Newest revision of the group's stack.
        wanted: The group after all batches.
        away: Its absent members.
        time_left_s: Seconds that an action of its stack may take.

    Raises:
        Terminal: The pauses alone take longer.
    """
    if not isinstance(kind, Membership) or kind.rolls_out(values, AppliesTo.DEFINITION):
        return
    new, failed = nested is None or nested.complete_revision is None, failed_of(away)
    pending = is_pending(nested)
    first = rolling_update.begin(
        before.group, wanted, kind.batches(values), failed, new, away, pending=pending, now=0.0
    )
    check_time(first, time_left_s)
