"""Outcomes of handovers: a thing releases an exclusive claim to its successor, or takes it back. Pure.

The row keeps its state meanwhile, since a rollback may need it.
"""

from dataclasses import replace

from homeostat.kinds.exclusive import still_held
from homeostat.model.errors import HomeostatError, Transient, Uncertain
from homeostat.model.marks import NO_MARKS, LetGoMark
from homeostat.model.observed import Observation
from homeostat.model.plan import Step, StepOutcome
from homeostat.model.status import Action
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.retry.policy import RETRY
from homeostat.resources.registry import kind_of


def let_go_of(row: Resource | None) -> LetGoMark | None:
    """Return the claims that a row has released or is to release; None if there are none."""
    return row.marks.let_go if row is not None and row.marks is not None else None


def put(row: Resource, mark: LetGoMark | None) -> None:
    """Note the claims that a row releases; None for none."""
    row.marks = replace(row.marks or NO_MARKS, let_go=mark) or None


def conclude(world: World, step: Step, answer: Observation | HomeostatError, now: float) -> StepOutcome:
    """Apply the answer to a release or a return of claims to the row."""
    row, mark = step.row, let_go_of(step.row)
    lets_go = step.handover is not None and not step.handover.returns
    # The mark was removed since the request, so the claims do not matter any more.
    if mark is None:
        return StepOutcome(row, whole=True)
    if isinstance(answer, Transient | Uncertain):
        return _again(row, mark, answer, now)
    if isinstance(answer, HomeostatError):
        return _refused(world, row, mark, answer, now, lets_go=lets_go)
    # An absent thing holds no claims, and can take none back.
    if not answer.present:
        put(row, replace(mark, done=True, failure="") if lets_go else None)
        return StepOutcome(row, whole=True)
    held = still_held(kind_of(row.type), answer.properties, mark.held) if lets_go else []
    # Nova accepts the detachment of a port before it has happened: only a look shows the port as free.
    if held:
        record = _again(row, mark, Transient(f"{', '.join(held)} is still held"), now)
    else:
        put(row, replace(mark, done=True, failure="") if lets_go else None)
        record = StepOutcome(row, whole=True)
    outcome.look(world, row, answer)
    # The answer was not compared with the desired state: the next decision does so.
    row.judged_observation = outcome.UNJUDGED
    record.observation = answer
    return record


def _again(row: Resource, mark: LetGoMark, error: Transient | Uncertain, now: float) -> StepOutcome:
    tries = mark.tries + 1
    due_at = now + RETRY.delay_s(tries, error.retry_after_s if isinstance(error, Transient) else None)
    put(row, replace(mark, failure=outcome.cut(str(error)), tries=tries, due_at=due_at))
    return StepOutcome(row, whole=True)


def _refused(
    world: World, row: Resource, mark: LetGoMark, error: HomeostatError, now: float, *, lets_go: bool
) -> StepOutcome:
    """Conclude a refusal: a refused release deletes the thing, a refused return fails its row."""
    if lets_go:
        put(row, replace(mark, refused=outcome.cut(str(error))))
        return StepOutcome(row, whole=True)
    put(row, None)
    record = outcome.fail(world, row, outcome.failure_text(row, error), now, Action.UPDATE)
    record.whole = True
    return record
