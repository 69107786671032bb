"""The stage that records: each answer changes its row, and moves the frontier."""

from collections.abc import Callable

from homeostat.convergence.stages.acting import Acted
from homeostat.convergence.stages.passing import Pass
from homeostat.model.errors import HomeostatError
from homeostat.model.observed import Observation
from homeostat.model.plan import Step, StepOutcome
from homeostat.model.world import World
from homeostat.planner import handover_outcome, outcome, request_outcome
from homeostat.planner.policies import fences


def record(current: Pass, acted: Acted) -> None:
    """Put the outcomes of executed steps into the next transaction."""
    writes = current.writes
    for step, answer in acted.answers:
        before = current.seen_of(step.row)
        recorded = _conclude_of(step)(current.world, step, answer, current.clock.now())
        writes.events.extend(recorded.events)
        current.note_effects(recorded.row, recorded.events, before, removed=recorded.removed)
        if recorded.removed:
            writes.remove(recorded.row)
        else:
            # `conclude` stores only the columns that an outcome usually changes; the token is not among them.
            if recorded.whole or recorded.orphan_token:
                writes.intend(recorded.row)
            else:
                writes.conclude(recorded.row)
            if recorded.observation is not None:
                current.store_observation(recorded.row)
            current.note_failure(recorded.row)
        if (declared := fences.declared_by(step, recorded.observation)) is not None:
            writes.declared.append(declared)
        if recorded.orphan_token:
            writes.orphans += current.orphans_of(recorded.row, recorded.orphan_token)
        current.frontier.apply(step, recorded)


def _conclude_of(step: Step) -> Callable[[World, Step, Observation | HomeostatError, float], StepOutcome]:
    """Return the function that interprets the answer to a step."""
    if step.handover is not None:
        return handover_outcome.conclude
    # A request of a user ends in its own way: its failure is not a failure of the resource.
    return request_outcome.conclude if request_outcome.is_operating(step.row) else outcome.conclude
