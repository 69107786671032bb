"""Acts of the planner: write intents into rows and return steps. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import ResourceActionRestricted
from homeostat.model.observed import Verdict
from homeostat.model.plan import Decision, Operate, Record, Step, Update, event_of
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context, ResolvedResource
from homeostat.planner.lifecycle import create, external, heal, in_progress, replace, update


class IntendedActs:
    """The acts of one shard; see `planner.context.Acts`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        return create.create(self._context, definition, now, replaces)

    def begin(self, definition: Definition, row: Resource, now: float) -> Step:
        return create.begin(self._context, definition, row, now)

    def replace(self, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
        return replace.create_first(self._context, definition, row, now, why)

    def delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        return replace.delete_first(self._context, definition, row, now)

    def update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        return update.update(self._context, want, row, before, now)

    def go_on(self, definition: Definition, row: Resource, now: float) -> Decision:
        return in_progress.decide(self._context, definition, row, now)

    def heal(self, row: Resource, verdict: Verdict, now: float, act: Operate | Update) -> Decision:
        return heal.heal(self._context, row, verdict, now, act)

    def reference_external(self, definition: Definition, row: Resource | None, now: float) -> Decision:
        return external.reference_external(self._context, definition, row, now)

    def fail(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        # No second event for another failure at the same revision.
        is_repeated = (
            row.failed and row.revision == self._context.world.stack.revision and row.action == (action or row.action)
        )
        if isinstance(error, Exception):
            # The error comes from the values read: note their stamp, since a change of these values allows a retry.
            row.resolved = self._context.world.stamp
        record = outcome.fail(self._context.world, row, outcome.failure_text(row, error), now, action)
        return Step(row, events=[] if is_repeated else record.events)

    def refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        """Fail the stack for an update that its environment forbids; the resource stays unchanged, as in Heat.

        The resource itself fails if it cannot stay unchanged: while in progress, or if a change must be followed while
        the stack is at rest.
        """
        if row.busy or self._context.world.stack.status != Status.IN_PROGRESS:
            return self.fail(row, error, now, Action.UPDATE)
        event = event_of(row, action=Action.UPDATE, status=Status.FAILED, reason=str(error))
        reason = f"Resource {Action.UPDATE} failed: {outcome.failure_text(row, error)}"
        return Step(row, Record(reason), [event])
