"""State of recoveries by health policies in rows, and the case to decide about. Pure (ADR 0072)."""

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
    """An unhealthy member, with its health (`node`) and its health policy."""

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
    """Return whether the failure of a row concerns only its health policy, and not the action of its stack."""
    # Without a handle it is a failed creation, which concerns the stack.
    return (is_marked(row) or was_recovered(row)) and row.handle != ""


def counts_as_failure(row: Resource, *, in_action: bool) -> bool:
    """Return whether a row counts as a failure of its shard.

    During an action of the stack, failures that concern only a health policy do not count.
    """
    return row.fails_stack and not (in_action and fails_nothing(row))


def was_recovered(row: Resource) -> bool:
    """Return whether a recovery of a row has begun, and its mark still exists."""
    return recovery_of(row) is not None


def is_acting(row: Resource) -> bool:
    """Return whether a recovery action other than a replacement is in progress."""
    marked = row.marks is not None and row.marks.unhealthy is not None
    return row.busy and row.action != Action.CREATE and marked and was_recovered(row)


def is_fenced(row: Resource) -> bool:
    """Return whether a row is fenced, at least in part."""
    recovery = recovery_of(row)
    return recovery is not None and bool(recovery.fenced or recovery.unsure)


def is_fencing(row: Resource) -> bool:
    """Return whether a row in progress is being fenced."""
    return operation_of(row.intent) == FENCE


def recovery_of(row: Resource) -> RecoveryMark | None:
    return row.marks.recovery if row.marks is not None else None


def keep(row: Resource, recovery: RecoveryMark) -> None:
    row.marks = replace(row.marks or NO_MARKS, recovery=recovery)


@overload
def fit_to_policy(recovery: RecoveryMark, policy: HealthPolicy) -> RecoveryMark: ...
@overload
def fit_to_policy(recovery: RecoveryMark | None, policy: HealthPolicy) -> RecoveryMark | None: ...
def fit_to_policy(recovery: RecoveryMark | None, policy: HealthPolicy) -> RecoveryMark | None:
    """Return the mark of a recovery, reset to the first action if its step is beyond the current policy's actions."""
    if recovery is None or recovery.step < len(policy.actions):
        return recovery
    return replace(recovery, step=0, acted_at=None, tried=())


def fences_of(row: Resource, recovery: RecoveryMark) -> tuple[str, ...]:
    """Return the fences of a thing, including unconfirmed ones, which may be in effect."""
    # A request without an answer may have cut the thing off.
    pending = arguments_of(row.intent).get("what", ()) if is_fencing(row) else ()
    return tuple(dict.fromkeys((*recovery.fenced, *recovery.unsure, *map(str, pending))))


def unfenced(row: Resource, policy: HealthPolicy) -> list[str]:
    """Return the fences of the policy yet to be confirmed."""
    recovery = recovery_of(row)
    return [fence for fence in policy.fencing if recovery is None or fence not in recovery.fenced]


def host(context: Context, row: Resource) -> str:
    seen = context.world.seen.get(row.key)
    return "" if seen is None else str(seen.observation.properties.get("host") or "")


def status(context: Context, row: Resource) -> str | None:
    seen = context.world.seen.get(row.key)
    return None if seen is None else seen.observation.properties.get("status")


def identity_of(context: Context, row: Resource, policy: HealthPolicy) -> Mapping[str, Any]:
    """Return the observed properties by which a replacement keeps the identity of a thing."""
    if not policy.preserve - {Preserved.NAME}:
        return {}
    # A replacement may break before its first look: then the identity of its predecessor is passed on once more.
    before, seen = _kept_so_far(row), context.world.seen.get(row.key)
    if seen is None or not seen.observation.present:
        return before
    kind = type_of(row.type)
    # Volumes with a resource of their own are attached by that resource; attaching them twice would fail.
    attached = [row.properties for row in context.world.rows.values() if row.type == ATTACHMENT]
    managed = {str(properties.get("volume_id")) for properties in attached}
    values = kind.complete(row.properties)
    return {**before, **kind.identity(values, seen.observation.properties, policy.preserve, managed)}


def _kept_so_far(row: Resource) -> dict[str, Any]:
    """Return the properties that a row inherited from its predecessor, even if its thing was never created."""
    restored = row.marks.restored if row.marks is not None else None
    names = restored.template_values if restored is not None and restored.run is None else ()
    return {name: row.properties[name] for name in names if name in row.properties}


def new_recovery(context: Context, row: Resource, policy: HealthPolicy, now: float, step: int = 0) -> RecoveryMark:
    """Return the mark of a new recovery; the identity is read before the first fence."""
    return RecoveryMark(now, step, identity=identity_of(context, row, policy))


def keeps_identity(context: Context, row: Resource) -> Mapping[str, Any]:
    """Return the properties that a replacement of the row inherits."""
    recovery, health = recovery_of(row), context.world.health
    if recovery is not None:
        return recovery.identity
    is_requested = row.marks is not None and any(request.operation == RECREATE for request in row.marks.requested)
    policy = health.policy_of(row.name) if health is not None and is_requested else None
    if policy is not None:
        return identity_of(context, row, policy)
    # A replacement that was never complete passes on its inheritance.
    return _kept_so_far(row) if row.action == Action.CREATE and row.status != Status.COMPLETE else {}


def is_kept(context: Context, row: Resource) -> bool:
    """Return whether a thing still has the status in which a user's operation left it."""
    return row.marks is not None and status(context, row) == row.marks.kept


def is_gone(context: Context, row: Resource) -> bool:
    seen = context.world.seen.get(row.key)
    return seen is not None and seen.observation.presence is Presence.ABSENT


def is_host_down(context: Context, row: Resource) -> bool:
    """Return whether a thing was found unhealthy only because its host is down."""
    health = context.world.health
    node = health.nodes.get(row.key) if health is not None else None
    return is_marked(row) and node is not None and node.is_host_down
