"""Rollouts in the life of a group's row, which begins a rollout and waits for its end (RU1, RU7). Pure.

A group with new metadata is in UPDATE during the whole rollout: the new metadata are in `new_metadata`, and become the
metadata when all members have reported. A new definition is staged in the stack of the group (ADR 0068).
`convergence.members` drives the rollouts.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import Decision, Step
from homeostat.model.rollout import (
    AppliesTo,
    Rollout,
    RolloutBegin,
    RolloutEnd,
    RolloutRevised,
    RolloutSettings,
    RolloutState,
)
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.context import Context, ResolvedResource
from homeostat.planner.lifecycle import rollout_gates
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.registry import type_of


def take(want: ResolvedResource, row: Resource) -> RolloutEnd | None:
    """Give a row the metadata of its definition; a group with a rollout of metadata only records them as new.

    Returns:
        The end of the rollout of metadata that have been replaced by newer ones, if any: no member may get the newer
        metadata before its turn.
    """
    before = row.new_metadata
    if is_gradual(want, row) and want.metadata != row.metadata:
        row.new_metadata = want.metadata
    else:
        row.metadata, row.new_metadata = want.metadata, None
    return RolloutEnd(row.key) if before is not None and before != row.new_metadata else None


def is_moved(want: ResolvedResource, row: Resource) -> bool:
    """Return whether the metadata of a definition differ from the present, or coming, metadata of its row."""
    return bool(want.metadata != (row.metadata if row.new_metadata is None else row.new_metadata))


def is_gradual(want: ResolvedResource, row: Resource) -> bool:
    """Return whether the members of a group get new metadata in a rollout: not before the group was complete once."""
    kind = want.kind
    if not isinstance(kind, Membership) or not row.handle or want.metadata is None:
        return False
    if row.action in (Action.INIT, Action.CREATE, Action.ADOPT) and row.status != Status.COMPLETE:
        return False
    return kind.rolls_out(kind.complete(want.values), AppliesTo.METADATA)


def subject_of(context: Context, row: Resource) -> int | None:
    """Return the revision of a group's stack that brought the definition of the rollout."""
    seen = context.world.seen.get(row.key)
    subject: int | None = seen.observation.properties.get("staged") if seen is not None and row.handle else None
    return subject


def begin(context: Context, want: ResolvedResource, row: Resource, now: float) -> Step:
    """Begin to update a group with no change but metadata."""
    events = outcome.begin(row, Action.UPDATE)
    # There is no request to a cloud: with `acted_at` set the act counts as accepted, and is not repeated.
    row.acted_at, row.due_at, row.converge_requested_at, row.retries = now, None, None, 0
    row.resolved, row.revision = context.world.stamp, context.world.stack.revision
    row.updated_at = now
    ended = take(want, row)
    if ended is not None:
        context.world.rollouts.pop(row.key, None)
    return Step(row, events=events, rollout=ended)


def redirect(context: Context, definition: Definition, row: Resource, now: float) -> Step | None:
    """Turn the update of a group to the metadata of a newer revision; None if they are the same."""
    if row.new_metadata is None or definition.type != row.type:
        return None
    try:
        want = context.resolve(definition, row)
    except (Rejected, Terminal) as error:
        return context.acts.fail(row, error, now)
    if not is_moved(want, row):
        return None
    step = begin(context, want, row, now)
    if row.new_metadata is not None:
        # At once, since no further member may get the older metadata; members that have them come first.
        begun = _begun(context, row, now)
        begun.events = [*step.events, *begun.events]
        return begun
    return step


def decide(context: Context, row: Resource, now: float) -> Decision | None:
    """Decide about the new metadata of a group whose child stack is settled; None without new metadata."""
    if row.new_metadata is None:
        return None
    rollout = context.world.rollouts.get(row.key)
    if rollout is None:
        return begin_gated(context, row, now)
    if rollout.state == RolloutState.SUCCEEDED:
        return succeed(context, row, now)
    if RolloutState(rollout.state).ended:
        return fail(context, row, rollout, now)
    return wait(context, row, rollout, now)


def decide_staged(
    context: Context, row: Resource, verdict: Verdict, now: float, *, begins: bool = True
) -> Decision | None:
    """Decide about a group in progress whose stack may be staged; None if the usual judgement applies.

    A staged stack (`members.staged_group`) shows in its observation. The row begins the rollout as soon as the stack
    is at rest, and waits for the end of the rollout, whatever the state of the stack meanwhile. Then the stack decides
    about the row again.

    Args:
        context: The shard.
        row: Row of the group.
        verdict: The judgement of the group's stack.
        now: The time.
        begins: Whether a rollout may start. If not, only rollouts that end unaided are waited for.
    """
    subject, rollout = subject_of(context, row), context.world.rollouts.get(row.key)
    about = rollout.subject if rollout is not None else None
    if (subject is None and about is None) or verdict.condition in (Condition.ABSENT, Condition.UNKNOWN):
        return None
    if not begins and is_left(context, row):
        return None
    if rollout is not None and about is not None and RolloutState(rollout.state).ended and subject in (None, about):
        return _conclude(context, row, rollout, verdict, now, carried_out=subject is None)
    if subject is None and verdict.condition is Condition.PENDING:
        return None
    if subject is None:
        # A newer revision has given all members the same definition at once.
        context.world.rollouts.pop(row.key, None)
        return Step(row, rollout=RolloutEnd(row.key))
    if rollout is None or about != subject:
        waits = verdict.condition is Condition.PENDING
        return None if waits or not begins else begin_gated(context, row, now)
    return wait(context, row, rollout, now)


def _conclude(
    context: Context, row: Resource, rollout: Rollout, verdict: Verdict, now: float, *, carried_out: bool
) -> Decision | None:
    """Conclude a rollout once the revision of its end is carried out."""
    if not carried_out:
        return Waiting(row.name, Why.ROLLOUT, (), rollout.reason, rollout.step_at, key=row.key)
    if verdict.condition is Condition.PENDING:
        return None
    if rollout.state != RolloutState.SUCCEEDED:
        return fail(context, row, rollout, now)
    if verdict.condition is not Condition.BROKEN:
        return succeed(context, row, now)
    del context.world.rollouts[row.key]
    step = context.acts.fail(row, verdict.reason, now)
    step.rollout = RolloutEnd(row.key)
    return step


def wait(context: Context, row: Resource, rollout: Rollout, now: float) -> Decision | None:
    """Wait for the end of a rollout, or begin a rollout whose handles are ready now.

    A running rollout takes gates, times and steps from the newest revision, and replaced handles, too, such as a handle
    marked unhealthy: members and alarms signal to the successor, and signals to a deleted handle are lost.
    """
    if rollout.unbegun:
        return begin_gated(context, row, now)
    awaited = _awaited(context, row)
    followed = _followed(context, row, rollout, awaited)
    if followed is not None:
        return followed
    return Waiting(row.name, Why.ROLLOUT, (), rollout.reason, rollout.step_at, key=row.key, after=awaited)


def follow(context: Context, row: Resource) -> Step | None:
    """Give a rollout the settings of the newest revision while its members are being changed; None if it has them."""
    rollout = context.world.rollouts.get(row.key)
    if rollout is None or rollout.unbegun or RolloutState(rollout.state).ended:
        return None
    return _followed(context, row, rollout, _awaited(context, row))


def _followed(context: Context, row: Resource, rollout: Rollout, awaited: Collection[str]) -> Step | None:
    """Give a rollout the settings of the newest revision; None if it has them."""
    settings = _newest(context, row, rollout.settings, awaited)
    if settings == rollout.settings:
        return None
    # Also in the world of this pass: the next decision must not find the same difference again.
    context.world.rollouts[row.key] = replace(rollout, settings=settings)
    return Step(row, rollout=RolloutRevised(row.key, settings))


def _newest(context: Context, row: Resource, before: RolloutSettings, awaited: Collection[str]) -> RolloutSettings:
    """Return the settings of a rollout by the newest revision; the order of the members stays.

    Args:
        context: The shard.
        row: Row of the group.
        before: The settings so far.
        awaited: Handles that are being made; until then the rollout keeps its present handles.
    """
    conditions = rollout_gates.conditions(context, row.name)
    gates = tuple(gate for gate in before.gates if gate.condition in conditions)
    if not awaited:
        # An invalid wait condition fails by its own row later: the rollout keeps its gates.
        with suppress(Rejected, Terminal):
            gates = rollout_gates.gates(context, row.name, before.gates)
    names = set(_alarms(row))
    alarms = rollout_gates.alarm_handles(context, _alarms(row))
    if len(alarms) < len(names):  # a handle was deleted, and has no successor yet
        alarms = tuple(before.alarms)
    return replace(_settings(row), gates=gates, alarms=alarms, order=before.order, seed=before.seed)


def finish(context: Context, row: Resource, now: float) -> Decision | None:
    """Wait for the end of a running rollout, without a new one; None if there is nothing to wait for."""
    waits = context.world.rollouts.get(row.key) is None or is_left(context, row)
    return None if waits else decide(context, row, now)


def is_left(context: Context, row: Resource) -> bool:
    """Return whether a rollout cannot end by itself as long as nothing may begin in its stack.

    Such a rollout waits for a person, for its handles, or for its stack to be unlocked or resumed. Then it proceeds,
    and members get the definition of its end.
    """
    rollout = context.world.rollouts.get(row.key)
    if rollout is None:
        return False
    if rollout.state in (RolloutState.PAUSED, RolloutState.HELD) or rollout.unbegun:
        return True
    carried_out = rollout.subject is None or subject_of(context, row) != rollout.subject
    is_over = RolloutState(rollout.state).ended and carried_out
    return context.world.stack.frozen and not is_over


def resume(context: Context, row: Resource, now: float) -> Step | None:
    """Resume a rollout that was left when its stack was suspended or locked; None if absent.

    In a stack that has failed meanwhile only a rollout that a user has ended is concluded: neither a running rollout
    nor a staged successor proceeds.
    """
    rollout = context.world.rollouts.get(row.key)
    ended = rollout is not None and RolloutState(rollout.state).ended
    followed = rollout is not None and subject_of(context, row) not in (None, rollout.subject)
    if (
        not is_rolling_out(context, row)
        or context.world.stack.frozen
        or (context.failed_early and (followed or not ended))
    ):
        return None
    events = outcome.begin(row, Action.UPDATE)
    row.acted_at, row.updated_at = now, now
    return Step(row, events=events)


def begin_gated(context: Context, row: Resource, now: float) -> Decision | None:
    """Begin a rollout once the handles for the signals of its members and alarms exist.

    None in a stack that has failed meanwhile, in which nothing begins: a newer revision will begin the rollout.
    """
    if context.failed_early:
        return None
    awaited = _awaited(context, row)
    return Waiting(row.name, Why.REQUIRES, key=row.key, after=awaited) if awaited else _begun(context, row, now)


def _begun(context: Context, row: Resource, now: float) -> Step:
    """Begin a rollout, which replaces a previous rollout, if any, that may have waited for its handles."""
    settings, awaited = _settings(row), _awaited(context, row)
    try:
        gates = () if awaited else rollout_gates.gates(context, row.name)
    except (Rejected, Terminal) as error:
        return _not_begun(context, row, error, now)
    alarms = rollout_gates.alarm_handles(context, _alarms(row))
    settings = replace(settings, gates=gates, alarms=alarms, gates_pending=bool(awaited))
    begun = Rollout(
        row.key,
        context.world.stack.id,
        context.world.shard,
        row.name,
        row.handle,
        RolloutState.RUNNING,
        settings,
        started_at=now,
        step_at=now,
        due_at=None if awaited else now,
        reason=f"it waits for {', '.join(awaited)}" if awaited else "it begins with its first members",
        subject=subject_of(context, row),
    )
    before = context.world.rollouts.get(row.key)
    if before is not None and before.unbegun:  # a user may have paused it, and an alarm have come
        paused = before.state == RolloutState.PAUSED
        begun = replace(begun, state=before.state, alarm=before.alarm, due_at=None if paused else begun.due_at)
    context.world.rollouts[row.key] = begun
    return Step(row, rollout=RolloutBegin(begun))


def _not_begun(context: Context, row: Resource, error: Exception, now: float) -> Step:
    context.world.rollouts.pop(row.key, None)
    step = context.acts.fail(row, error, now)
    step.rollout = RolloutEnd(row.key)
    return step


def _awaited(context: Context, row: Resource) -> tuple[str, ...]:
    return rollout_gates.pending(context, row.name, _alarms(row))


def _settings(row: Resource) -> RolloutSettings:
    kind = type_of(row.type)
    assert isinstance(kind, Membership)
    return kind.rollout_settings(kind.complete(row.properties))


def _alarms(row: Resource) -> Sequence[str]:
    kind = type_of(row.type)
    assert isinstance(kind, Membership)
    return kind.alarms(kind.complete(row.properties))


def is_rolling_out(context: Context, row: Resource) -> bool:
    """Return whether the members of a group are to get new metadata, or a new definition, in a rollout."""
    rollout = context.world.rollouts.get(row.key)
    definitions = rollout is not None and rollout.subject is not None
    return row.new_metadata is not None or definitions or subject_of(context, row) is not None


def succeed(context: Context, row: Resource, now: float) -> Step:
    """Complete a group whose members all have the change."""
    del context.world.rollouts[row.key]
    if row.new_metadata is not None:
        row.metadata, row.new_metadata = row.new_metadata, None
    completed = outcome.complete(context.world, row, now)
    return Step(row, events=completed.events, rollout=RolloutEnd(row.key))


def end(world: World, row: Resource) -> Step | None:
    """End the rollout of a group that left the template: nothing waits for the rollout; None without a rollout."""
    if world.rollouts.pop(row.key, None) is None:
        return None
    row.new_metadata = None
    return Step(row, rollout=RolloutEnd(row.key))


def fail(context: Context, row: Resource, rollout: Rollout, now: float) -> Step:
    """Fail a group whose rollout has ended before all members had the change."""
    del context.world.rollouts[row.key]
    # All members have the old metadata again, which the row still has.
    if rollout.state == RolloutState.ROLLED_BACK:
        row.new_metadata = None
    step = context.acts.fail(row, rollout.reason, now)
    kept = rollout.state == RolloutState.ABORTED and row.new_metadata is not None
    step.rollout = RolloutEnd(row.key, keeps_members=kept)
    return step
