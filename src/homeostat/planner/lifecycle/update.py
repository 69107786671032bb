"""Comparison of a resource with its definition, and its update in place. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import MemberAway, Rejected, Terminal
from homeostat.model.intent import changed_of
from homeostat.model.plan import RECORD, SETTLED, Decision, Settled, Step, Update
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.planner import outcome, specs
from homeostat.planner.actions import check
from homeostat.planner.context import Context, ResolvedResource, changed_properties
from homeostat.planner.lifecycle import hooks, intents, rollouts
from homeostat.planner.scope import thing_of
from homeostat.planner.states import maintenance_state, restore
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import type_of
from homeostat.templates import UNKNOWN
from homeostat.templates.tree import holds


def compare(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    if definition.type != row.type:
        return context.wait_if_failed(row.name) or context.acts.replace(definition, row, now)
    try:
        want = context.resolve(definition, row)
    except MemberAway as error:
        return context.wait_if_failed(row.name) or context.waits_for_member(definition, error)
    except (Rejected, Terminal) as error:
        return context.wait_if_failed(row.name) or context.acts.fail(row, error, now, Action.UPDATE)
    if changed_properties(want, row) or outcome.is_unchanged(row):
        return context.wait_if_failed(row.name) or update_or_replace(context, want, row, now)
    if context.is_newer(row):
        # Some types are replaced or updated by every update of the stack.
        if want.kind.renewed:
            return context.wait_if_failed(row.name) or context.acts.replace(definition, row, now)
        if want.kind.always_updates(want.values):
            return context.wait_if_failed(row.name) or context.acts.update(want, row, {}, now)
    # Only without differences: the update of a changed nested stack includes the operation.
    operation = check.passed_on(context.world, row)
    if operation:
        return context.wait_if_failed(row.name) or check.pass_on(context.world, row, operation, now)
    if (
        _has_failed_parts(context, row)
        # With convergence off, only an action of the stack heals a nested stack that was left alone, and replaces
        # marked members in it.
        or (row.key in context.world.neglected and context.is_newer(row))
        or restore.is_restored_inside(context.world, row)
        or maintenance_state.is_still_suspended(context.world, row)
    ):
        return context.wait_if_failed(row.name) or context.acts.update(want, row, {}, now)
    return _follow(context, want, row, now)


def _follow(context: Context, want: ResolvedResource, row: Resource, now: float) -> Decision:
    """Record changes that concern only the row, not the cloud.

    So a dependant of a replaced resource releases the old row: `requires` now has the key of the new row.
    """
    definition = want.definition
    template_type, progress = definition.template_type or None, hooks.with_deletion_hooks(row.hooks, definition.hooks)
    if rollouts.is_moved(want, row) and rollouts.is_gradual(want, row):
        return context.wait_if_failed(row.name) or rollouts.begin(context, want, row, now)
    moved = row.requires != want.requires or rollouts.is_moved(want, row)
    moved = moved or row.template_type != template_type or row.hooks != progress
    if moved or row.deletion_policy != definition.deletion_policy or row.replaced_by is not None:
        row.requires = want.requires
        rollout = rollouts.take(want, row)
        row.template_type, row.hooks = template_type, progress
        row.deletion_policy, row.replaced_by = definition.deletion_policy, None
        row.resolved, row.revision = context.world.stamp, context.world.stack.revision
        return Settled(Step(row, rollout=rollout))
    if context.is_stale(definition, row):
        row.resolved = context.world.stamp
        return Settled(Step(row))
    return SETTLED


def _has_failed_parts(context: Context, row: Resource) -> bool:
    """Return whether a nested stack has failures that a newer revision retries, even without differences (MU7)."""
    seen = context.world.seen.get(row.key)
    properties = seen.observation.properties if seen is not None else {}
    unhealthy = bool(properties.get("failures")) or properties.get("status") == "failed"
    return unhealthy and context.unsettled and type_of(row.type).heals_itself


def update_or_replace(context: Context, want: ResolvedResource, row: Resource, now: float) -> Step:
    before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
    try:
        why = replacement_reason(context, want, row, before, after)
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now, Action.UPDATE)
    if why:
        return context.acts.replace(want.definition, row, now, why)
    return context.acts.update(want, row, before, now)


def replacement_reason(
    context: Context, want: ResolvedResource, row: Resource, before: Mapping[str, Any], after: Mapping[str, Any]
) -> str:
    """Return why a change is impossible in place, or "".

    Args:
        before: Properties with defaults, as last requested.
        after: Desired properties with defaults.

    Raises:
        Rejected: The change is impossible.
        Terminal: As above.
    """
    unknown = (
        frozenset(name for name, value in after.items() if holds(value, UNKNOWN))
        if context.scope.unknown is UNKNOWN
        else frozenset()
    )
    if unknown:
        return _known_reason(context, want, row, before, after, unknown)
    reason = want.kind.replacement_reason(before, after, changed_properties(want, row))
    return reason or want.kind.observed_replacement_reason(thing_of(context.world, row, want.kind), after)


def _known_reason(
    context: Context,
    want: ResolvedResource,
    row: Resource,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    unknown: frozenset[str],
) -> str:
    """Return why a change with some unknown values is impossible in place, or "".

    Types judge known values; for unknown values the schema decides.
    """
    known = {name: value for name, value in want.values.items() if name not in unknown}
    known |= {name: value for name, value in row.properties.items() if name in unknown}
    part = ResolvedResource(want.definition, want.kind, known, want.metadata, want.requires)
    why = replacement_reason(context, part, row, before, want.kind.complete(known))
    if why or isinstance(want.kind, NestedStack):
        return why
    return ResourceType.replacement_reason(want.kind, before, after, unknown & changed_properties(want, row))


def update(context: Context, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
    """Update a thing in place; the request names the fields that differ, and the fields refused before.

    Args:
        before: Properties, with defaults, that the thing has for certain; empty if unknown.
    """
    restricted = context.restricted(want.definition, "update", row, now)
    if restricted is not None:
        return restricted
    # Compare fields, since the request names fields of the cloud's object, not properties.
    requested = specs.spec_of(context, want.kind, row, before) if before else {}
    spec = specs.desired_spec(context, want, row)
    refused = set(changed_of(row.intent)) if row.acted_at is None else set()
    fields = sorted(
        refused
        | {field for name in want.renewed for field in want.kind.fields_of(name, want.values)}
        | {field for field in requested.keys() | spec.keys() if requested.get(field) != spec.get(field)}
    )
    row.attempts = 0
    if fields or not want.kind.kind:
        return intents.intend(context, row, Update(spec, tuple(fields)), want, Action.UPDATE, now)
    step = intents.intend(context, row, RECORD, want, Action.UPDATE, now)
    row.acted_at = now
    step.events = [*step.events, *outcome.complete(context.world, row, now).events]
    return step
