"""How long what is in progress may take. Pure.

An action of a stack has a deadline, and what is in progress then has failed. What goes on in a stack that is not in
progress (it is healed, or somebody asked for it alone, or another resource has failed the stack) has as much time, from
when the cloud took it on (ADR 0058).
"""

from dataclasses import replace

from homeostat.model.plan import Step, Verb, Waiting, Why
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.resources.registry import kind_of

SEEN_TO_END = frozenset({Why.BUILDING, Why.SNAPSHOT})
"""Reasons that end with a look at the thing."""
LOOK_S, LOOK_S_MAX = 1.0, 60.0
"""Between two questions whether a thing whose time is over was looked at since: ever rarer."""
LOOK_PART = 0.25
"""Of the time since then, until that is asked again."""


def time_out(world: World, row: Resource, now: float) -> Step:
    """Its time is over."""
    record = outcome.fail(world, row, outcome.failure_text(row, f"{row.action} timed out"), now)
    return Step(Verb.RECORD, row, events=record.events)


def in_time(world: World, waiting: Waiting, now: float) -> Step | Waiting:
    """A row that waits for its thing to become ready does so until its time is over.

    It fails only if a look was taken after that: what nobody could look at may be ready. A nested stack has a deadline
    of its own.
    """
    stack, row = world.stack, world.rows.get(waiting.key)
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
