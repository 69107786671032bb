"""Time limits of acts in progress. Pure.

The deadline of a stack's action fails all acts in progress. An act outside of an action (healing, converging a single
resource, or an act that goes on after the failure of the stack) has the same time, counted from its acceptance by the
cloud (ADR 0058).
"""

from dataclasses import replace

from homeostat.model.plan import Release, Step
from homeostat.model.status import Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.resources.registry import kind_of

SEEN_TO_END = frozenset({Why.BUILDING, Why.SNAPSHOT})
"""Reasons to wait that end by a look at the thing."""
LOOK_S, LOOK_S_MAX = 1.0, 60.0
"""Shortest and longest interval in seconds between examinations of an overdue thing that was not looked at since."""
LOOK_PART = 0.25
"""The interval as a part of the time since the thing became overdue, so that the interval grows."""


def time_out(world: World, row: Resource, now: float, *, gives_up: bool = False) -> Step:
    """Fail a row whose time is over.

    Args:
        gives_up: Whether to delete a thing of its creation that turns up later with the token. Not needed for a nested
            stack, which its parent's row finds at any time.
    """
    record = outcome.fail(world, row, outcome.failure_text(row, f"{row.action} timed out"), now)
    step = Step(row, events=record.events)
    # The request may still be on its way to the cloud.
    if gives_up and row.handle == "" and kind_of(row.type) != "stack":
        step.release, row.token = Release(row.token), ""
    return step


def in_time(world: World, waiting: Waiting, now: float) -> Step | Waiting:
    """Fail a row if its thing has not become ready in time; otherwise return its wait.

    It fails only after a look past the time limit: while the cloud does not answer, the thing may be ready. A nested
    stack has its own deadline.
    """
    stack, row = world.stack, world.rows.get(waiting.key)
    # A request that the cloud has not accepted yet has no limit: it is repeated until there is an answer.
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
