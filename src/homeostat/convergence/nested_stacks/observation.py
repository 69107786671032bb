"""A parent's view of its nested stacks."""

from typing import Any

from homeostat.builtin.addresses import stack_arn
from homeostat.convergence.facts.inside_stacks import unwell
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status
from homeostat.model.world import Resource, Seen, World, next_look
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store.database import Transaction
from homeostat.store.stacks import nested_status
from homeostat.store.stacks.nested_status import NestedStatus


def refresh(tx: Transaction, world: World, now: float) -> list[tuple[Resource, Seen]]:
    """Bring the observations of nested stacks in a world up to date; return the changed ones, to be stored.

    The rows of the nested stack are read, not a message from it, so a lost wake-up costs only time (invariant 1,
    CONTRIBUTING.md).
    """
    changed = []
    rows = [row for row in world.rows.values() if row.handle and kind_of(row.type) == STACK]
    statuses = nested_status.of(tx, [row.handle for row in rows])
    asked = [row.handle for row in rows if row.marks is not None and row.marks.requested]
    inside = unwell(tx, asked, now)
    for row in rows:
        before = world.seen.get(row.key)
        observation = _observation(row.handle, statuses.get(row.handle), now, inside.get(row.handle, ""))
        if before is not None and _same(before.observation, observation):
            continue
        seen = Seen(observation, next_look(before.number if before is not None else 0))
        world.seen[row.key] = seen
        changed.append((row, seen))
    return changed


def observe(tx: Transaction, stack_id: str, now: float) -> Observation:
    """Observe a nested stack."""
    return _observation(stack_id, nested_status.of(tx, [stack_id]).get(stack_id), now)


def _observation(stack_id: str, nested: NestedStatus | None, now: float, inside: str = "") -> Observation:
    if nested is None:
        return Observation(Presence.ABSENT, stack_id, seen_at=now, reason="its stack is gone")
    properties: dict[str, Any] = {
        "status": nested.status.lower(),
        "action": nested.action,
        # Differs whenever the nested stack has changed, so that the parent judges the new observation.
        "changes": nested.changes,
        "skip": nested.skip,
        "failures": nested.failures,
        "arn": stack_arn(nested.project, nested.name, stack_id),
    }
    if nested.status == Status.FAILED:
        properties["fault"] = nested.reason
    if inside:
        properties["unwell"] = inside
    if nested.suspended:
        properties["suspended"] = True
    if nested.staged is not None:
        properties["staged"] = nested.staged
    return Observation(Presence.PRESENT, stack_id, properties, now)


def _same(one: Observation, other: Observation) -> bool:
    return one.presence is other.presence and dict(one.properties) == dict(other.properties)
