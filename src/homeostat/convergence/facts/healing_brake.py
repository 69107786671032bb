"""The facts that limit healing (ADR 0046), read only for shards that may need healing.

The planner decides with them (`planner.policies.healing`); here they are collected from the database.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.convergence.facts.absences import absences_with, awaited
from homeostat.desired.members import leaves_alone
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.budget import Absence, Limit
from homeostat.model.group import GroupDefinition, Range, batch_of
from homeostat.model.observed import Presence
from homeostat.model.status import Status
from homeostat.model.world import Brake, Resource, Seen, StackFacts, World
from homeostat.planner.actions.check import left_alone
from homeostat.planner.members import rolling_update
from homeostat.planner.outcome import is_looked_for
from homeostat.planner.policies import healing_policy
from homeostat.planner.policies.budget import away_of, limit_of
from homeostat.planner.policies.healing import is_lost
from homeostat.resources import groups
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.instance_signals import HEALING
from homeostat.resources.registry import kind_of, of_kind, outside_types, type_of
from homeostat.store.database import Transaction
from homeostat.store.shards import brakes
from homeostat.store.shards.away import unrest_of
from homeostat.store.stacks import revisions

COMPATIBLE = "AWS::EC2"
"""Prefix of types for things of several services, which therefore does not identify a service."""


def brake_of(tx: Transaction, world: World, share: float) -> Brake:
    """Return the limits on healing in a shard.

    Args:
        tx: A consistent read.
        share: Share of a stack's things that is healed at a time, unless the stack has a setting of its own.
    """
    stack = world.stack
    share = float((stack.healing or {}).get("share") or share)
    calm = Brake(share, policy=(stack.healing or {}).get("policy"))
    if not any(_is_troubled(world, row) for row in world.rows.values()):
        return calm
    # Creation is not healing: a thing that fails before its stack was ever complete is created again without a brake.
    # Only the policy counts, for things that vanish after their creation.
    if stack.complete_revision is None and stack.status == Status.IN_PROGRESS:
        vanished = any(_is_absent(world.seen.get(row.key)) for row in world.rows.values())
        return replace(calm, policy=_policy(tx, stack)) if vanished else calm
    batches = _batches(tx, stack)
    limit, rolling = limit_of(batches), batches.get("rolling_update") or {}
    suspends = _is_pending(stack) and HEALING in rolling.get("suspended", ())
    asks = limit.binds and rolling.get("reports") and stack.complete_revision != stack.revision
    brake = Brake(share, None, limit=limit, policy=_policy(tx, stack), blind=_blind(tx, world))
    group = None
    if stack.shards > 1 or suspends or asks:
        group = revisions.group_of(tx, stack.id, stack.revision)
    if stack.shards > 1:
        members = None if group is None else _members(tx, stack, group)
        healing, changing, _ = brakes.sibling_counts(tx, stack.id, world.shard)
        brake = replace(brake, members=members, elsewhere=healing, changing=changing)
    if group is not None and asks:
        brake = replace(brake, awaited=frozenset(awaited(tx, stack, group)))
    if group is not None and suspends and not _waits_for_lost(tx, world, group, limit):
        brake = replace(brake, moving=_moving(group))
    return brake


def _members(tx: Transaction, stack: StackFacts, group: GroupDefinition) -> int:
    """Return the number of members of a group of several shards, without members that are yet to be created."""
    size = groups.size_of(group)
    if stack.complete_revision in (None, stack.revision):
        return size
    complete = revisions.group_of(tx, stack.id, stack.complete_revision)
    return size if complete is None else min(size, groups.size_of(complete))


def _is_pending(stack: StackFacts) -> bool:
    return stack.status == Status.IN_PROGRESS and stack.complete_revision != stack.revision


def _moving(group: GroupDefinition) -> Sequence[Range] | None:
    """Return the members changed by a rolling update that suspends healing of the other members, else None."""
    if not leaves_alone(group):
        return None
    return batch_of(group)


def _waits_for_lost(tx: Transaction, world: World, group: GroupDefinition, limit: Limit) -> bool:
    """Return whether a rolling update waits for lost members whose healing it has suspended.

    The update would wait until its timeout, so these members are healed all the same.
    """
    if not limit.binds or rolling_update.is_over(group):
        return False
    stack = world.stack
    own_absences = away_of((row for row in world.rows.values() if row.replaced_by is None), world.seen)
    away = absences_with(own_absences, tx, stack, world.shard, unrest_of(tx, stack.id), group)
    return Absence.CHANGED not in away.values() and rolling_update.next_revision(group, away) is None


def _policy(tx: Transaction, stack: StackFacts) -> str | None:
    """Return the policy on healing by replacement in a stack; None for the default.

    A switch set by a user's command is copied into the rows of all nested stacks. A setting in the template for a
    resource with a nested stack (ADR 0052) is only in the row of that resource. The setting overrides a switch for the
    whole stack above, but not a switch for that resource or for the nested stack itself.
    """
    policy, key = (stack.healing or {}).get("policy"), stack.parent_key
    # From the innermost stack outwards: the nearest setting counts.
    while key is not None and (outer := brakes.parent_brake(tx, key)) is not None:
        above = (outer.healing or {}).get("policy")
        switched = (outer.exceptions or {}).get(outer.name, {}).get("healing")
        # A policy that differs from the one above was set for this stack, not copied.
        if switched or policy != above:
            return policy
        in_template = healing_policy.policy_in(outer.metadata)
        if in_template is not None:
            return in_template
        key = outer.parent_key
    return policy


def _is_troubled(world: World, row: Resource) -> bool:
    """Return whether a row may need healing: failed, marked, left alone, absent, or with an unjudged observation."""
    seen = world.seen.get(row.key)
    known = row.failed or row.marks is not None or left_alone(row) != ""
    return known or (seen is not None and (seen.number != row.judged_observation or _is_absent(seen)))


def _is_absent(seen: Seen | None) -> bool:
    return seen is not None and seen.observation.presence is Presence.ABSENT


def _batches(tx: Transaction, stack: StackFacts) -> Mapping[str, Any]:
    """Return the batches of a group's stack by its update policy; {} without a policy.

    See `planner.members.rolling_update`.
    """
    row = brakes.owner_of(tx, stack.parent_key) if stack.parent_key is not None else None
    return (batches_of(row) or {}) if row is not None else {}


def batches_of(owner: Any) -> Mapping[str, Any] | None:
    """Return the same for the parent resource of a nested stack (`brakes.owner_of`); None if that is not a group."""
    kind = type_of(owner.type)
    if not isinstance(kind, Membership) or not isinstance(owner.properties, Mapping):
        return None
    return kind.batches(kind.complete(owner.properties))


def _blind(tx: Transaction, world: World) -> frozenset[str]:
    """Return the kinds that seem to be absent throughout the project, which casts doubt on the observation."""
    missed: dict[str, float] = defaultdict(float)
    for row in world.rows.values():
        seen = world.seen.get(row.key)
        if seen is not None and _is_absent(seen) and not row.deleting and not is_lost(row) and is_looked_for(row):
            kind = kind_of(row.type)
            missed[kind] = max(missed[kind], seen.observation.seen_at)
    if not missed:
        return frozenset()
    kinds = _kinds(missed)
    return frozenset(
        kind for kind, since in missed.items() if brakes.is_blind(tx, world.stack.project, kinds[kind], since)
    )


def _kinds(names: Iterable[str]) -> dict[str, brakes.Kind]:
    """Return kinds by name, each with its types and the types of sibling kinds of its service.

    Types belong to one service if their names begin alike: `OS::Cinder::…`.
    """
    of_service: dict[str, list[str]] = defaultdict(list)
    for name in outside_types():
        of_service[_service(name)].append(name)
    kinds = {}
    for kind, missing_kinds in of_kind(names).items():
        services = {_service(name) for name in missing_kinds} - {COMPATIBLE}
        siblings = [name for service in sorted(services) for name in of_service[service] if name not in missing_kinds]
        kinds[kind] = brakes.Kind(missing_kinds, siblings)
    return kinds


def _service(type_name: str) -> str:
    return "::".join(type_name.split("::")[:2])


def doubts(tx: Transaction) -> list[brakes.Doubted]:
    """Return the waiting resources of all projects whose whole kind seems to be absent."""
    kinds = {kind_of(name) for name in outside_types()} - BUILTIN_KINDS.keys()
    return brakes.doubted(tx, _kinds(kinds))
