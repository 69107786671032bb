"""Rows and their intents: the storage of a decision before any act (invariant 3, CONTRIBUTING.md). Pure."""

from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.intent import ChangeIntent
from homeostat.model.marks import NO_MARKS, Marks, RestoredMark
from homeostat.model.plan import Act, Step, Update
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context, ResolvedResource
from homeostat.planner.lifecycle import hooks, rollouts
from homeostat.planner.lifecycle.recovery_state import keeps_identity
from homeostat.planner.retry.policy import RETRY


def new_row(context: Context, definition: Definition, now: float, replaces: Resource | None = None) -> Resource:
    stack = context.world.stack
    row = Resource(
        next(context.keys),
        stack.id,
        context.world.shard,
        definition.name,
        definition.type,
        revision=revision_of(context, definition),
        deletion_policy=definition.deletion_policy,
        replaces=replaces.key if replaces is not None else None,
        born=context.world.next_stamp(),
        created_at=now,
        updated_at=now,
        template_type=definition.template_type or None,
    )
    if replaces is not None:
        replaces.replaced_by = row.key
        # Inherit the count of attempts, or a thing that keeps breaking would be replaced without delay.
        calm = replaces.status == Status.COMPLETE and RETRY.is_calm(now - replaces.updated_at)
        row.attempts = 0 if calm else replaces.attempts
        # The mark must not be on both rows: each marked row counts in the limit on healing.
        _inherit_healing(context, row, replaces)
        _inherit_identity(context, row, replaces)
    return row


def revision_of(context: Context, definition: Definition) -> int:
    """Return the revision of an act by this definition."""
    return context.world.stack.revision if definition.revision is None else definition.revision


def _inherit_healing(context: Context, row: Resource, replaces: Resource) -> None:
    """Pass the healing mark on to a replacement."""
    if outcome.is_being_healed(replaces):
        outcome.end_healing(replaces)
        row.marks = Marks(healing=True)
        context.healing.discard(replaces.key)
        context.healing.add(row.key)


def _inherit_identity(context: Context, row: Resource, replaces: Resource) -> None:
    """Pass on the properties that keep the identity of a replaced thing, until their template values change."""
    kept = keeps_identity(context, replaces)
    if not kept or replaces.type != row.type:
        return
    mark = replaces.marks.restored if replaces.marks is not None else None
    before = mark.template_values if mark is not None else {}
    row.properties = dict(kept)
    template_values = {name: before[name] if name in before else replaces.properties.get(name) for name in kept}
    row.marks = replace(row.marks or NO_MARKS, restored=RestoredMark(None, template_values))


def intend(context: Context, row: Resource, act: Act, want: ResolvedResource, action: Action, now: float) -> Step:
    """Write the intent of an act into the row, and return its step (invariant 3, CONTRIBUTING.md)."""
    # For users, an act that is repeated or redirected has begun already: no second event.
    events = outcome.begin(row, action)
    row.revision = revision_of(context, want.definition)
    row.properties, row.requires = want.values, want.requires
    rollout = rollouts.take(want, row)
    row.deletion_policy, row.template_type = want.definition.deletion_policy, want.definition.template_type or None
    if want.mark is not None or row.marks is not None:
        row.marks = replace(row.marks or NO_MARKS, restored=want.mark) or None
    # Without `acted_at` the act counts as unanswered: after a crash the next owner repeats it, or looks for its
    # result.
    row.acted_at = row.due_at = row.converge_requested_at = None
    row.retries = 0
    row.intent = ChangeIntent(act.changed if isinstance(act, Update) else (), context.world.next_stamp())
    row.hooks = hooks.intended(context.world, row, want.definition.hooks)
    row.resolved = context.world.stamp
    row.updated_at = now
    return Step(row, act, events, rollout=rollout)
