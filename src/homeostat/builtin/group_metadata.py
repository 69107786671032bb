"""Metadata of groups in the view of a member: at its virtual location, and merged into its own (RU2, RU5)."""

from dataclasses import dataclass
from typing import Any

from homeostat.model.world import Resource
from homeostat.resources.families.balanced import NAMES as BALANCERS
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.registry import type_of
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Transaction
from homeostat.store.stacks import rollouts
from homeostat.store.stacks.rollouts import Group

INSTANCES = ".Instances."
"""Separator between the names of a group and its member in a virtual location."""


@dataclass(frozen=True, slots=True)
class VirtualLocation:
    """Place of the metadata of a member: `Resources.<group>.Instances.<instance>.Metadata`."""

    group: str
    instance: str


def location(name: str) -> VirtualLocation | None:
    """Parse a virtual location from the name of a resource; None for an ordinary name."""
    group, separator, instance = name.partition(INSTANCES)
    return VirtualLocation(group, instance) if separator and group and instance else None


def instance_metadata(tx: Transaction, stack_id: str, at: VirtualLocation) -> dict[str, Any] | None:
    """Return the metadata of a group in the view of a member; None if the group or member does not exist.

    Members of groups with load balancers are also addressed by the ids of their servers.
    """
    row = rollouts.metadata_of(tx, stack_id, at.group, at.instance)
    kind = None if row is None else type_of(row.type)
    if row is None or not isinstance(kind, Membership):
        return None
    if row.instance_id is None and not row.is_member:
        member = None if row.handle is None else rollouts.member_with(tx, row.handle, at.instance)
        if member is None:
            return None
        # With load balancers, the id of the server for users differs from the id of the group's member.
        if row.new_metadata is not None and BALANCERS in kind.properties:
            row = rollouts.metadata_of(tx, stack_id, at.group, member)
    return None if row is None else dict(rollouts.seen_by(row) or {})


def groups_around(tx: Transaction, row: Resource | Owner, parent_key: str | None) -> list[tuple[Group, str]]:
    """Return the groups of a resource, from the inside out, with the instance id of the member.

    Args:
        parent_key: `parent_key` of the resource's stack; None for a root stack, whose resources are in no group.
    """
    if parent_key is None:
        return []
    around = rollouts.groups_around(tx, row.stack_id, row.handle)
    return [(group, member) for group, member in around if isinstance(type_of(group.type), Membership)]


def inherited_metadata(tx: Transaction, row: Resource | Owner, parent_key: str | None) -> dict[str, Any]:
    """Return the metadata of a resource from its groups; inner groups override outer groups.

    Only groups whose template defines how members get new metadata pass metadata on; other groups behave as in Heat.
    For the arguments see `groups_around`.
    """
    metadata: dict[str, Any] = {}
    for group, _ in groups_around(tx, row, parent_key):
        kind = type_of(group.type)
        if isinstance(kind, Membership) and group.properties.get(kind.pattern) is not None:
            metadata = {**(group.member_metadata or {}), **metadata}
    return metadata
