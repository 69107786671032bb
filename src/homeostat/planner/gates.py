"""Gates that postpone a decision: hooks, consent, the brake on healing and second looks. Pure."""

from homeostat.model.desired import Definition
from homeostat.model.plan import Decision, Step
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import handover, hooks, intents
from homeostat.planner.policies import healing
from homeostat.templates.registry import PRE_CREATE, PRE_UPDATE


class LiveGates:
    """The gates of one shard; see `planner.context.Gates`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def stop(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        # A thing that came back makes its replacement superfluous, so this comes before the replacement's hooks.
        return (
            healing.came_back(self._context, definition, row, now)
            or _stop_before(self._context, definition, row, now)
            or _stop_after(self._context, row, now)
        )

    def postpone_healing(
        self,
        row: Resource,
        reason: str,
        now: float,
        *,
        absent: bool = False,
        destroys: bool = True,
        alive: bool = False,
    ) -> Decision | None:
        stopped = healing.postpone_healing(self._context, row, reason, now, absent=absent, destroys=destroys)
        return stopped or (healing.wait_for_budget(self._context, row, reason, now) if alive else None)

    def waits_for_reports(self, row: Resource) -> str:
        return healing.waits_for_reports(self._context, row)

    def look_once_more(self, row: Resource, now: float) -> Step | Waiting | None:
        return healing.look_once_more(self._context, row, now)

    def hand_over(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        return handover.decide(self._context, definition, row, now)

    def begin_healing(self, step: Step) -> None:
        healing.begin_healing(self._context, step)


def _stop_before(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
    """Stop at a hook before the first act on the resource for this revision."""
    overtaken = hooks.interrupted(context.world, row) if row is not None else None
    if overtaken is not None or not definition.hooks:
        return overtaken
    if row is None or row.action == Action.INIT:
        return _stop_before_creation(context, definition, row, now)
    newer = context.is_newer(row)
    if PRE_UPDATE in definition.hooks and newer:
        return hooks.stop(context.world, row, PRE_UPDATE, now)
    return None


def _stop_before_creation(
    context: Context, definition: Definition, row: Resource | None, now: float
) -> Step | Waiting | None:
    if PRE_CREATE not in definition.hooks or not hooks.holds(context.world, PRE_CREATE):
        return None
    if row is not None:
        return hooks.stop(context.world, row, PRE_CREATE, now)
    # The row has to store the stop, so it is inserted earlier than usual, as INIT.
    fresh = intents.new_row(context, definition, now)
    step = hooks.stop(context.world, fresh, PRE_CREATE, now)
    if isinstance(step, Step):
        step.inserted = True
    return step


def _stop_after(context: Context, row: Resource | None, now: float) -> Step | Waiting | None:
    """Stop at a hook after the resource is complete."""
    hook = hooks.due(context.world, row) if row is not None and row.status == Status.COMPLETE else ""
    return hooks.stop(context.world, row, hook, now) if row is not None and hook else None
