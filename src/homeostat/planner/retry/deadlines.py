"""Time limits for what is in progress. Pure.

An action of a stack has a deadline, at which everything in progress fails. An act in a stack that is not in progress
(healing, converging one resource, or what goes on after another resource has failed the stack) has as much time,
counted from when the cloud accepted it (ADR 0058).
"""

from dataclasses import replace

from homeostat.model.plan import Step, Verb
from homeostat.model.status import Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.resources.registry import kind_of

SEEN_TO_END = frozenset({Why.BUILDING, Why.SNAPSHOT})
"""Reasons to wait that a look at the thing ends."""
LOOK_S, LOOK_S_MAX = 1.0, 60.0
"""Shortest and longest interval in seconds at which it is examined whether an overdue thing was looked at since."""
LOOK_PART = 0.25
"""The interval as a part of the time since the thing became overdue, so that it grows."""


def time_out(world: World, row: Resource, now: float, *, gives_up: bool = False) -> Step:
    """Fail a row whose time is over.

    Args:
        world: The shard.
        row: The row.
        now: The time.
        gives_up: Whether what its creation may still make is deleted when it turns up with the token. A nested stack
            needs no token, its parent's row leads to it at any time.
    """
    record = outcome.fail(world, row, outcome.failure_text(row, f"{row.action} timed out"), now)
    step = Step(Verb.RECORD, row, events=record.events)
    if gives_up and row.handle == "" and kind_of(row.type) != "stack":
        step.orphan_token, row.token = row.token, ""
    return step


def in_time(world: World, waiting: Waiting, now: float) -> Step | Waiting:
    """Let a row wait for its thing to become ready until its time is over, and fail it then.

    It fails only by a look that was taken after its time was over: while the cloud does not answer, the thing may be
    ready. A nested stack has a deadline of its own.
    """
    stack, row = world.stack, world.rows.get(waiting.key)
    # An act that the cloud has not accepted yet has no limit: it is repeated until there is an answer.
    if waiting.why not in SEEN_TO_END or row is None or not row.busy or row.acted_at is None:
        return waiting
    if stack.status == Status.IN_PROGRESS or stack.abandoned or kind_of(row.type) == "stack":
        return waiting
    ends_at = row.acted_at + world.patience_s
    if now < ends_at:
        return replace(waiting, ends_at=ends_at)
    if outcome.is_looked_for(row) and world.looked_at < ends_at:
        again_s = min(max(LOOK_S, (now - ends_at) * LOOK_PART), LOOK_S_MAX)
        return replace(waiting, ends_at=now + again_s)
    return time_out(world, row, now)
