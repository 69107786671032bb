"""The status of nested stacks, as the resources of their parent stacks see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, select

from homeostat.store import schema
from homeostat.store.shards import brakes
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import stacks


@dataclass(frozen=True, slots=True)
class NestedStatus:
    """The status of a nested stack.

    Attributes:
        skip: If it is a group, names that no member may have.
        changes: A number that changes whenever its shards were woken or have stored anything.
        failures: How many of its resources are FAILED.
        staged: If it is a group whose members get a new definition in a rollout, the revision that brought it.
    """

    name: str
    project: str
    action: str
    status: str
    reason: str
    skip: Sequence[str]
    changes: int
    failures: int
    suspended: bool
    staged: int | None = None


def is_nested(tx: Connection, stack: Row[Any]) -> bool:
    """Return whether it belongs to a resource; one that a deletion policy has retained does not any more."""
    return stack.parent_key is not None and brakes.owner_of(tx, stack.parent_key) is not None


def of(tx: Connection, stack_ids: Sequence[str]) -> dict[str, NestedStatus]:
    """Return the status of each of these stacks that is live, in few queries however many stacks there are."""
    return {
        stack_id: each
        for start in range(0, len(stack_ids), stacks.STACKS_PER_QUERY)
        for stack_id, each in _statuses(tx, stack_ids[start : start + stacks.STACKS_PER_QUERY]).items()
    }


def _statuses(tx: Connection, stack_ids: Sequence[str]) -> dict[str, NestedStatus]:
    counts = {stack_id: (int(changes), int(failures)) for stack_id, changes, failures in _counts(tx, stack_ids)}
    found = {}
    for stack_id, name, project, action, status, reason, suspended, template in _reported(tx, stack_ids):
        skip = (template or {}).get("skip", [])
        counted = counts.get(stack_id, (0, 0))
        staged = ((template or {}).get("staged") or {}).get("since")
        found[stack_id] = NestedStatus(name, project, action, status, reason, skip, *counted, suspended, staged)
    return found


@prepared
def _counts(stack_ids: Sequence[str]) -> Select[Any]:
    """Select the number that changes with each change, and the number of FAILED resources, by stack."""
    shard = schema.shard
    # A pass that stores nothing, as one that only checks whether something has ended, moves neither column. An
    # observation that differs wakes the shard, so it does.
    changes = func.sum(shard.c.stored + shard.c.wakes)
    counts = select(shard.c.stack_id, changes, func.sum(shard.c.failures))
    return counts.where(shard.c.stack_id.in_(stack_ids)).group_by(shard.c.stack_id)


@prepared
def _reported(stack_ids: Sequence[str]) -> Select[Any]:
    """Select the status that live stacks report, with the definition of their group, if they are one."""
    stack, revision = schema.stack, schema.revision
    group = and_(revision.c.stack_id == stack.c.id, revision.c.number == stack.c.revision, revision.c.kind == "group")
    columns = (stack.c.id, stack.c.name, stack.c.project, stack.c.action, stack.c.status, stack.c.reason)
    chosen = select(*columns, stack.c.suspended, revision.c.template).outerjoin(revision, group)
    return chosen.where(stack.c.id.in_(stack_ids), stack.c.deleted_at.is_(None))
