"""What rows say of recoveries by health policies, and the case by which the next act is decided. Pure (ADR 0072)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from homeostat.model.desired import Definition
from homeostat.model.health_policy import HealthPolicy, Preserved
from homeostat.model.intent import FENCE, arguments_of, operation_of
from homeostat.model.marks import HEALTH_POLICY, NO_MARKS, RecoveryMark
from homeostat.model.node_health import NodeHealth
from homeostat.model.observed import Presence
from homeostat.model.requested import RECREATE
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner.context import Context
from homeostat.resources.registry import type_of

ATTACHMENT = "OS::Cinder::VolumeAttachment"
REPORTER = HEALTH_POLICY


@dataclass(frozen=True, slots=True)
class Case:
    """A member that is unhealthy, and all by which its recovery is decided.

    Attributes:
        context: Of the shard.
        definition: Of the member.
        row: Of the member.
        node: What was found of it.
        policy: The policy that holds for it.
        now: The time.
    """

    context: Context
    definition: Definition
    row: Resource
    node: NodeHealth
    policy: HealthPolicy
    now: float


def is_marked(row: Resource) -> bool:
    """Return whether a health policy has marked a row unhealthy."""
    return row.marks is not None and row.marks.unhealthy is not None and row.marks.unhealthy.reporter == REPORTER


def fails_nothing(row: Resource) -> bool:
    """Return whether the failure of a row concerns its health policy alone, and no action of its stack."""
    return (is_marked(row) or was_recovered(row)) and row.handle != ""


def counts_as_failure(row: Resource, *, in_action: bool) -> bool:
    """Return whether a row is one of the failures of its shard.

    While an action of the stack is in progress, what only its health policy is concerned with is none.
    """
    return row.fails_stack and not (in_action and fails_nothing(row))


def was_recovered(row: Resource) -> bool:
    """Return whether a recovery of a row has begun, and its traces are still there."""
    return recovery_of(row) is not None


def is_acting(row: Resource) -> bool:
    """Return whether an action of a recovery, other than making another one, is in progress on a row."""
    marked = row.marks is not None and row.marks.unhealthy is not None
    return row.busy and row.action != Action.CREATE and marked and was_recovered(row)


def is_cut_off(row: Resource) -> bool:
    """Return whether something of a row is cut off."""
    recovery = recovery_of(row)
    return recovery is not None and bool(recovery.fenced or recovery.unsure)


def is_fencing(row: Resource) -> bool:
    """Return whether a row in progress is being cut off."""
    return operation_of(row.intent) == FENCE


def recovery_of(row: Resource) -> RecoveryMark | None:
    return row.marks.recovery if row.marks is not None else None


def keep(row: Resource, recovery: RecoveryMark) -> None:
    row.marks = replace(row.marks or NO_MARKS, recovery=recovery)


@overload
def fitting(recovery: RecoveryMark, policy: HealthPolicy) -> RecoveryMark: ...
@overload
def fitting(recovery: RecoveryMark | None, policy: HealthPolicy) -> RecoveryMark | None: ...
def fitting(recovery: RecoveryMark | None, policy: HealthPolicy) -> RecoveryMark | None:
    """Return the mark of a recovery; from the first action on where another policy, with more of them, has begun it."""
    if recovery is None or recovery.step < len(policy.actions):
        return recovery
    return replace(recovery, step=0, acted_at=None, tried=())


def cut_of(row: Resource, recovery: RecoveryMark) -> tuple[str, ...]:
    """Return what is cut off of a thing, or may be: a fence that is not confirmed may have had its effect."""
    asked = arguments_of(row.intent).get("what", ()) if is_fencing(row) else ()
    return tuple(dict.fromkeys((*recovery.fenced, *recovery.unsure, *map(str, asked))))


def unfenced(row: Resource, policy: HealthPolicy) -> list[str]:
    """Return what has yet to be cut off."""
    recovery = recovery_of(row)
    return [each for each in policy.fencing if recovery is None or each not in recovery.fenced]


def host(context: Context, row: Resource) -> str:
    seen = context.world.seen.get(row.key)
    return "" if seen is None else str(seen.observation.properties.get("host") or "")


def status(context: Context, row: Resource) -> str | None:
    seen = context.world.seen.get(row.key)
    return None if seen is None else seen.observation.properties.get("status")


def identity_of(context: Context, row: Resource, policy: HealthPolicy) -> Mapping[str, Any]:
    """Return properties that keep the identity of a thing, as far as it is seen, for one made in its place."""
    if not policy.preserve - {Preserved.NAME}:
        return {}
    before, seen = _kept_so_far(row), context.world.seen.get(row.key)
    if seen is None or not seen.observation.present:
        return before
    kind = type_of(row.type)
    attached = [each.properties for each in context.world.rows.values() if each.type == ATTACHMENT]
    managed = {str(each.get("volume_id")) for each in attached}
    values = kind.complete(row.properties)
    return {**before, **kind.identity(values, seen.observation.properties, policy.preserve, managed)}


def _kept_so_far(row: Resource) -> dict[str, Any]:
    """Return what a thing was to keep of its own predecessor: that is kept on, even if it was never made."""
    restored = row.marks.restored if row.marks is not None else None
    names = restored.template_values if restored is not None and restored.run is None else ()
    return {name: row.properties[name] for name in names if name in row.properties}


def begun(context: Context, row: Resource, policy: HealthPolicy, now: float, step: int = 0) -> RecoveryMark:
    """Return the mark of a recovery that begins: what is to be kept is read before anything is cut off."""
    return RecoveryMark(now, step, identity=identity_of(context, row, policy))


def keeps_identity(context: Context, row: Resource) -> Mapping[str, Any]:
    """Return the properties that another thing is made with in the place of one that is made again."""
    recovery, health = recovery_of(row), context.world.health
    if recovery is not None:
        return recovery.identity
    asked = row.marks is not None and any(each.operation == RECREATE for each in row.marks.requested)
    policy = health.policy_of(row.name) if health is not None and asked else None
    if policy is not None:
        return identity_of(context, row, policy)
    # What could not be made in the place of another one has yet to come.
    return _kept_so_far(row) if row.action == Action.CREATE and row.status != Status.COMPLETE else {}


def is_kept(context: Context, row: Resource) -> bool:
    """Return whether a thing is as an operation that a user asked for has left it."""
    return row.marks is not None and status(context, row) == row.marks.kept


def is_gone(context: Context, row: Resource) -> bool:
    seen = context.world.seen.get(row.key)
    return seen is not None and seen.observation.presence is Presence.ABSENT


def is_host_down(context: Context, row: Resource) -> bool:
    """Return whether a thing was found unhealthy since its host is down, and for nothing else."""
    health = context.world.health
    node = health.nodes.get(row.key) if health is not None else None
    return is_marked(row) and node is not None and node.is_host_down
