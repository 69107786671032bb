"""Metadata of groups that their members get in a rollout: how a group's row waits for it (RU1, RU7). Pure.

A group whose metadata changes is updated as long as the rollout goes on: the new metadata are in `new_metadata`, and
become the metadata when all members have reported. What makes the rollout go on is `convergence.metadata_rollouts`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.plan import Decision, Step, Verb
from homeostat.model.rollout import (
    IMMEDIATE,
    WAITED_FOR_MAX,
    Rollout,
    RolloutBegin,
    RolloutEnd,
    RolloutState,
    WaitGate,
)
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context, ResolvedResource
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE, WaitCondition
from homeostat.resources.registry import kind_of, type_of


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
    return kind.metadata_pattern(kind.complete(want.values)) != IMMEDIATE


def begin(context: Context, want: ResolvedResource, row: Resource, now: float) -> Step:
    """Begin to update a group of which nothing but the metadata have changed."""
    events = outcome.begin(row, Action.UPDATE)
    row.acted_at, row.due_at, row.asked_at, row.retries = now, None, None, 0
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
    if row.new_metadata is not None:  # those that had other new metadata come first
        step.rollout = _begun(context, row, now)
    return step


def decide(context: Context, row: Resource, now: float) -> Decision | None:
    """Decide about a group whose child stack is as it should be; None where its metadata are, too."""
    if row.new_metadata is None:
        return None
    rollout = context.world.rollouts.get(row.key)
    if rollout is None:
        return Step(Verb.RECORD, row, rollout=_begun(context, row, now))
    if rollout.state == RolloutState.SUCCEEDED:
        row.metadata, row.new_metadata = row.new_metadata, None
        return _ended(context, row, now)
    if rollout.state == RolloutState.ROLLED_BACK:
        row.new_metadata = None
        return _failed(context, row, rollout, now)
    if rollout.state == RolloutState.ABORTED:
        return _failed(context, row, rollout, now)
    return Waiting(row.name, Why.ROLLOUT, (), rollout.reason, rollout.step_at, key=row.key)


def finish(context: Context, row: Resource, now: float) -> Decision | None:
    """Let a rollout that runs come to its end, and begin none; None where nothing is waited for."""
    rollout = context.world.rollouts.get(row.key)
    waits = rollout is None or rollout.state in (RolloutState.PAUSED, RolloutState.HELD)
    return None if waits else decide(context, row, now)


def resume(context: Context, row: Resource, now: float) -> Step | None:
    """Go on with a rollout that was left when its stack was suspended or locked; None where there is none.

    In a stack that has failed meanwhile, one that a user has ended is concluded, and no other goes on.
    """
    rollout = context.world.rollouts.get(row.key)
    ended = rollout is not None and RolloutState(rollout.state).ended
    if row.new_metadata is None or context.world.stack.held or (context.is_halted and not ended):
        return None
    events = outcome.begin(row, Action.UPDATE)
    row.acted_at, row.updated_at = now, now
    return Step(Verb.RECORD, row, events=events)


def _begun(context: Context, row: Resource, now: float) -> RolloutBegin:
    kind, stack = type_of(row.type), context.world.stack
    assert isinstance(kind, Membership)
    values = kind.complete(row.properties)
    named = (context.current.get(name) for name in kind.alarms(values))
    alarms = [each.handle for each in named if each is not None and kind_of(each.type) == HANDLE and each.handle]
    settings = replace(kind.rollout_settings(values), gates=_gates(context, row), alarms=tuple(alarms))
    reason = "it begins with its first members"
    begun = Rollout(
        row.key,
        stack.id,
        context.world.shard,
        row.name,
        row.handle,
        RolloutState.RUNNING,
        settings,
        started_at=now,
        step_at=now,
        due_at=now,
        reason=reason,
    )
    context.world.rollouts[row.key] = begun
    return RolloutBegin(begun)


def _gates(context: Context, row: Resource) -> tuple[WaitGate, ...]:
    """Return the wait conditions that depend on a group."""
    found = []
    for name in sorted(context.world.definitions):
        definition = context.world.definitions[name]
        condition = context.current.get(name)
        if condition is None or kind_of(condition.type) != CONDITION or row.name not in definition.requires:
            continue
        handle = _handle_of(context, condition)
        kind = type_of(condition.type)
        if handle and isinstance(kind, WaitCondition):
            timeout_s = float(kind.complete(condition.properties)[kind.words[1]])
            found.append(WaitGate(condition.handle, handle, timeout_s))
    return tuple(found[:WAITED_FOR_MAX])  # more are refused when the template is checked


def _handle_of(context: Context, condition: Resource) -> str:
    """Return the id of the handle's record that a wait condition was made with; "" where none is known."""
    seen = context.world.seen.get(condition.key)
    shown: Mapping[str, Any] = seen.observation.properties if seen is not None else {}
    return str(shown.get("handle") or "")


def _ended(context: Context, row: Resource, now: float) -> Step:
    del context.world.rollouts[row.key]
    completed = outcome.complete(context.world, row, now)
    return Step(Verb.RECORD, row, events=completed.events, rollout=RolloutEnd(row.key))


def _failed(context: Context, row: Resource, rollout: Rollout, now: float) -> Step:
    """Fail a group whose rollout has ended before all members had the new metadata."""
    del context.world.rollouts[row.key]
    step = context.acts.fail(row, rollout.reason, now)
    step.rollout = RolloutEnd(row.key, keeps_members=rollout.state == RolloutState.ABORTED)
    return step
