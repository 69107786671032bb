"""The stage that decides which steps are taken now, and fails a stack whose time is over."""

from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.convergence.stages.passing import Pass
from homeostat.model.plan import Observe, Record, Release, Step, StepOutcome
from homeostat.model.rollout import RolloutEnd
from homeostat.model.status import Status
from homeostat.model.world import Resource
from homeostat.resources.registry import is_outside, kind_of
from homeostat.store.shards.retained import Retained


@dataclass(frozen=True, slots=True)
class Decided:
    """Steps to take now; their intents are among the writes of the pass.

    Attributes:
        steps: All steps, including steps that only record something and are applied already.
        inside: Steps on resources that live in the service alone.
        outside: Steps on clouds and nested stacks.
    """

    steps: Sequence[Step]
    inside: Sequence[Step]
    outside: Sequence[Step]

    @property
    def observes(self) -> bool:
        """Whether a cloud is observed, so that more decisions follow the observation."""
        return any(isinstance(step.act, Observe) for step in self.outside)


def decide(current: Pass, now: float) -> Decided:
    """Return the steps that may be taken now; none if nothing is left to do, or everything waits."""
    steps = current.frontier.steps(now, current.batch)
    acts = [step for step in steps if not isinstance(step.act, Record)]
    decided = Decided(
        steps,
        [step for step in acts if not kind_of(step.row.type)],
        [step for step in acts if kind_of(step.row.type)],
    )
    _collect(current, steps)
    return decided


def time_out(current: Pass) -> None:
    """Fail the stack if the time limit of its action is over."""
    stack = current.world.stack
    if stack.abandoned:
        return  # the shards of an abandoned stack merely release their rows: no cloud can delay that
    now = current.clock.now()
    if stack.status == Status.IN_PROGRESS and stack.deadline is not None and now >= stack.deadline:
        _collect(current, current.frontier.time_out(now))
        current.failure = "Timed out"


def _collect(current: Pass, steps: Sequence[Step]) -> None:
    """Put the intents of steps into the next transaction; a step that only records is applied at once."""
    writes = current.writes
    for step in steps:
        if isinstance(step.act, Record) and step.act.fails:
            current.fail(step.events, step.act.fails)
            continue
        writes.events.extend(step.events)
        if step.removed:
            writes.remove(step.row)
            if step.row.new_metadata is not None or step.row.key in current.world.rollouts:
                writes.rollouts.append(RolloutEnd(step.row.key))  # the stack has a time limit again
        elif step.inserted:
            writes.insert(step.row)
        else:
            writes.intend(step.row)
        for row in step.also:
            writes.intend(row)
        _collect_things(current, step)
        if isinstance(step.act, Record):
            current.note_effects(step.row, step.events, current.seen_of(step.row), removed=step.removed)
            current.note_failure(step.row)
            current.frontier.apply(step, StepOutcome(step.row, removed=step.removed))


def _collect_things(current: Pass, step: Step) -> None:
    """Put a step's released thing, snapshot part, rollout and recovery into the next transaction."""
    writes = current.writes
    if step.release is not None:
        _collect_release(current, step.row, step.release)
    if step.part is not None:
        writes.parts.append(step.part)
    if step.rollout is not None:
        writes.rollouts.append(step.rollout)
    if step.recovery is not None:
        writes.recoveries.append(step.recovery)


def _collect_release(current: Pass, row: Resource, release: Release) -> None:
    """Put the orphan or the retained thing of a row into the next transaction."""
    writes, stack = current.writes, current.world.stack
    if release.orphan_token:
        writes.orphans += current.orphans_of(row, release.orphan_token)
    if release.kept_token:
        writes.kept_tokens.append(release.kept_token)
    if release.retained and is_outside(row.type):
        kind = kind_of(row.type)
        writes.retained.append(
            Retained(stack.project, kind, release.retained, stack.id, stack.name, row.name, release.reason)
        )
