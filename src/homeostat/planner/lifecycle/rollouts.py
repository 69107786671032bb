"""Rollouts to the members of a group: how the row of the group begins one and waits for its end (RU1, RU7). Pure.

A group whose metadata changes is updated as long as the rollout goes on: the new metadata are in `new_metadata`, and
become the metadata when all members have reported. A new definition is staged in the stack of the group (ADR 0068).
`convergence.rollouts` makes rollouts go on.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import Decision, Step, Verb
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
    """Give a row the metadata of its definition; a group whose members get them in a rollout only notes them.

    Returns:
        What ends the rollout of metadata that are not wanted any more, if any: no member may get the new ones before
        its turn.
    """
    before = row.new_metadata
    if is_gradual(want, row) and want.metadata != row.metadata:
        row.new_metadata = want.metadata
    else:
        row.metadata, row.new_metadata = want.metadata, None
    return RolloutEnd(row.key) if before is not None and before != row.new_metadata else None


def is_moved(want: ResolvedResource, row: Resource) -> bool:
    """Return whether a definition has other metadata than its row has, or is about to have."""
    return bool(want.metadata != (row.metadata if row.new_metadata is None else row.new_metadata))


def is_gradual(want: ResolvedResource, row: Resource) -> bool:
    """Return whether the members of a group get new metadata in a rollout: not before it was once complete."""
    kind = want.kind
    if not isinstance(kind, Membership) or not row.handle or want.metadata is None:
        return False
    if row.action in (Action.INIT, Action.CREATE, Action.ADOPT) and row.status != Status.COMPLETE:
        return False
    return kind.rolls_out(kind.complete(want.values), AppliesTo.METADATA)


def subject_of(context: Context, row: Resource) -> int | None:
    """Return the revision of a group's stack that brought the definition which its members get in a rollout."""
    seen = context.world.seen.get(row.key)
    found: int | None = seen.observation.properties.get("staged") if seen is not None and row.handle else None
    return found


def begin(context: Context, want: ResolvedResource, row: Resource, now: float) -> Step:
    """Begin to update a group of which nothing but the metadata have changed."""
    events = outcome.begin(row, Action.UPDATE)
    row.acted_at, row.due_at, row.converge_requested_at, row.retries = now, None, None, 0
    row.resolved, row.revision = context.world.stamp, context.world.stack.revision
    row.updated_at = now
    ended = take(want, row)
    if ended is not None:
        context.world.rollouts.pop(row.key, None)
    return Step(Verb.RECORD, row, events=events, rollout=ended)


def redirect(context: Context, definition: Definition, row: Resource, now: float) -> Step | None:
    """Turn the update of a group to the metadata of a newer revision; None where they are the same."""
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
        # At once, since no further member may get the metadata before; those that have them come first.
        begun = _begun(context, row, now)
        step = replace(begun, events=step.events + begun.events)
    return step


def decide(context: Context, row: Resource, now: float) -> Decision | None:
    """Decide about a group whose child stack is as it should be; None where its metadata are, too."""
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

    The observation of the stack shows that it is staged (`policies.staged_group`). The row begins the rollout as soon
    as that stack is at rest, waits whatever becomes of it meanwhile, and is judged by it again once the rollout is
    over.

    Args:
        context: The shard.
        row: Row of the group.
        verdict: The judgement of its stack.
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
        # A newer revision has brought all members to one definition at once.
        context.world.rollouts.pop(row.key, None)
        return Step(Verb.RECORD, row, rollout=RolloutEnd(row.key))
    if rollout is None or about != subject:
        waits = verdict.condition is Condition.PENDING
        return None if waits or not begins else begin_gated(context, row, now)
    return wait(context, row, rollout, now)


def _conclude(
    context: Context, row: Resource, rollout: Rollout, verdict: Verdict, now: float, *, carried_out: bool
) -> Decision | None:
    """Conclude a rollout once the members have what its end has led to."""
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
    """Wait for the end of a rollout; one that waits for handles begins once they are there.

    One that goes on follows what the newest revision says of its gates, times and steps. It follows handles that are
    replaced meanwhile, too, as one that is marked unhealthy: its members, and alarms, signal to the successors, and
    nothing hears what is sent to a handle that is gone.
    """
    if rollout.unbegun:
        return begin_gated(context, row, now)
    awaited = _awaited(context, row)
    followed = _followed(context, row, rollout, awaited)
    if followed is not None:
        return followed
    return Waiting(row.name, Why.ROLLOUT, (), rollout.reason, rollout.step_at, key=row.key, after=awaited)


def follow(context: Context, row: Resource) -> Step | None:
    """Have a rollout proceed as the newest revision has it while its members are being changed; None where it does."""
    rollout = context.world.rollouts.get(row.key)
    if rollout is None or rollout.unbegun or RolloutState(rollout.state).ended:
        return None
    return _followed(context, row, rollout, _awaited(context, row))


def _followed(context: Context, row: Resource, rollout: Rollout, awaited: Collection[str]) -> Step | None:
    """Have a rollout proceed as the newest revision has it; None where it does."""
    settings = _newest(context, row, rollout.settings, awaited)
    if settings == rollout.settings:
        return None
    context.world.rollouts[row.key] = replace(rollout, settings=settings)
    return Step(Verb.RECORD, row, rollout=RolloutRevised(row.key, settings))


def _newest(context: Context, row: Resource, before: RolloutSettings, awaited: Collection[str]) -> RolloutSettings:
    """Return how a rollout proceeds by the newest revision; members come in the order in which it began.

    Args:
        context: The shard.
        row: Row of the group.
        before: How it proceeds so far.
        awaited: Handles that are being made; what listens to them keeps the handles that it has until then.
    """
    there = rollout_gates.conditions(context, row.name)
    gates = tuple(each for each in before.gates if each.condition in there)
    if not awaited:
        # A condition that cannot be made like this fails once its turn has come.
        with suppress(Rejected, Terminal):
            gates = rollout_gates.gates(context, row.name, before.gates)
    names = set(_alarms(row))
    alarms = rollout_gates.alarm_handles(context, _alarms(row))
    if len(alarms) < len(names):  # one is gone, and no other has come in its place
        alarms = tuple(before.alarms)
    return replace(_settings(row), gates=gates, alarms=alarms, order=before.order, seed=before.seed)


def finish(context: Context, row: Resource, now: float) -> Decision | None:
    """Let a rollout that runs come to its end, and begin none; None where nothing is waited for."""
    waits = context.world.rollouts.get(row.key) is None or is_left(context, row)
    return None if waits else decide(context, row, now)


def is_left(context: Context, row: Resource) -> bool:
    """Return whether a rollout does not come to its end by itself, as long as nothing may be begun in its stack.

    It waits for a person, for its handles, or for its stack to be neither locked nor suspended: only then it goes on,
    and members get the definition that its end has led to.
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
    """Go on with a rollout that was left when its stack was suspended or locked; None where there is none.

    In a stack that has failed meanwhile, one that a user has ended is concluded, and no other goes on: neither one that
    was to follow it, for which the members are staged already.
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
    return Step(Verb.RECORD, row, events=events)


def begin_gated(context: Context, row: Resource, now: float) -> Decision | None:
    """Begin a rollout once the handles are there to which its members, and alarms, are to signal.

    None in a stack that has failed meanwhile, where nothing is begun. A newer revision begins it then.
    """
    if context.failed_early:
        return None
    awaited = _awaited(context, row)
    return Waiting(row.name, Why.REQUIRES, key=row.key, after=awaited) if awaited else _begun(context, row, now)


def _begun(context: Context, row: Resource, now: float) -> Step:
    """Begin a rollout: in the place of the one before, if any, which may have waited for its handles."""
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
    return Step(Verb.RECORD, row, rollout=RolloutBegin(begun))


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
    """Complete a group all of whose members have what they were to get."""
    del context.world.rollouts[row.key]
    if row.new_metadata is not None:
        row.metadata, row.new_metadata = row.new_metadata, None
    completed = outcome.complete(context.world, row, now)
    return Step(Verb.RECORD, row, events=completed.events, rollout=RolloutEnd(row.key))


def end(world: World, row: Resource) -> Step | None:
    """End the rollout of a group that the template has no more: nothing waits for it; None where none goes on."""
    if world.rollouts.pop(row.key, None) is None:
        return None
    row.new_metadata = None
    return Step(Verb.RECORD, row, rollout=RolloutEnd(row.key))


def fail(context: Context, row: Resource, rollout: Rollout, now: float) -> Step:
    """Fail a group whose rollout has ended before all members had what they were to get."""
    del context.world.rollouts[row.key]
    if rollout.state == RolloutState.ROLLED_BACK:
        row.new_metadata = None
    step = context.acts.fail(row, rollout.reason, now)
    kept = rollout.state == RolloutState.ABORTED and row.new_metadata is not None
    step.rollout = RolloutEnd(row.key, keeps_members=kept)
    return step
