"""Metadata of groups as their members have them: at the virtual location of a member, and with its own (RU2, RU5)."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from homeostat.model.world import Resource
from homeostat.resources.families.balanced import NAMES as BALANCERS
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.registry import type_of
from homeostat.store.builtin.records import Owner
from homeostat.store.stacks import rollouts
from homeostat.store.stacks.rollouts import Group

INSTANCES = ".Instances."
"""What stands between the names of a group and of its member in a virtual location."""


@dataclass(frozen=True, slots=True)
class VirtualLocation:
    """Place of the metadata of one member: `Resources.<group>.Instances.<instance>.Metadata`."""

    group: str
    instance: str


def location(name: str) -> VirtualLocation | None:
    """Return the virtual location that the name of a resource stands for; None for an ordinary name."""
    group, found, instance = name.partition(INSTANCES)
    return VirtualLocation(group, instance) if found and group and instance else None


def instance_metadata(tx: Connection, stack_id: str, at: VirtualLocation) -> dict[str, Any] | None:
    """Return the metadata of a group as a member has them; None where there is no such group or member.

    Members of groups behind load balancers are known by the ids of their servers, too.
    """
    row = rollouts.metadata_of(tx, stack_id, at.group, at.instance)
    kind = None if row is None else type_of(row.type)
    if row is None or not isinstance(kind, Membership):
        return None
    if row.instance_id is None and not row.is_member:
        member = None if row.handle is None else rollouts.member_with(tx, row.handle, at.instance)
        if member is None:
            return None
        # The id that users know of a server behind load balancers is not that of its member of the group.
        if row.new_metadata is not None and BALANCERS in kind.properties:
            row = rollouts.metadata_of(tx, stack_id, at.group, member)
    return None if row is None else dict(rollouts.seen_by(row) or {})


def groups_around(tx: Connection, row: Resource | Owner, parent_key: str | None) -> list[tuple[Group, str]]:
    """Return the groups that a resource is a member of, from the inside out, each with the instance id of the member.

    Args:
        tx: The transaction.
        row: The resource.
        parent_key: `parent_key` of its stack; None for a root stack, where nothing is asked.
    """
    if parent_key is None:
        return []
    around = rollouts.groups_around(tx, row.stack_id, row.handle)
    return [(group, member) for group, member in around if isinstance(type_of(group.type), Membership)]


def inherited_metadata(tx: Connection, row: Resource | Owner, parent_key: str | None) -> dict[str, Any]:
    """Return the metadata that a resource has from the groups around it; those of inner groups come first.

    Only groups whose template says how members get new metadata pass theirs on: others behave as in Heat. For the
    arguments see `groups_around`.
    """
    metadata: dict[str, Any] = {}
    for group, _ in groups_around(tx, row, parent_key):
        kind = type_of(group.type)
        if isinstance(kind, Membership) and group.properties.get(kind.pattern) is not None:
            metadata = {**(group.member_metadata or {}), **metadata}
    return metadata
