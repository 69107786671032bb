"""The stage that acts: steps become calls of clouds, or changes of nested stacks."""

from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.clouds.port import Answer
from homeostat.convergence.execution.executor import StepExecutor
from homeostat.convergence.stages.passing import Pass
from homeostat.model.plan import Create, Step


@dataclass(frozen=True, slots=True)
class Acted:
    """Steps that were executed, each with its answer, in the order of the batches."""

    answers: Sequence[tuple[Step, Answer]]


def act(current: Pass, executor: StepExecutor, steps: Sequence[Step]) -> Acted:
    """Execute steps.

    Raises:
        Superseded: A newer owner has the shard.
    """
    # Noted before the requests are sent: if this pass turns out to be superseded, `hand_over` must know every creation
    # that may have been sent and is not stored.
    current.unconfirmed += [step for step in steps if isinstance(step.act, Create)]
    return Acted(executor.execute(current.world, steps, current.ownership, current.redactor.text))
