"""Which subject decides about a resource: a step, nothing to do, or a named reason to wait. Pure."""

from collections.abc import Collection, Iterable, Iterator

from homeostat.model.desired import Definition
from homeostat.model.intent import adoption_of
from homeostat.model.observed import Condition, Remedy
from homeostat.model.plan import Decision, Step
from homeostat.model.stack_actions import MAINTENANCE
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome, request_outcome
from homeostat.planner.actions import check, maintenance, snapshot
from homeostat.planner.acts import IntendedActs
from homeostat.planner.context import Context
from homeostat.planner.gates import LiveGates
from homeostat.planner.lifecycle import (
    adopt,
    at_rest,
    cascade,
    create,
    delete,
    deleted_around,
    external,
    failure,
    in_progress,
    marked,
    recovery,
    recovery_state,
    replace,
    requested,
)
from homeostat.planner.lifecycle.cascade import Deletion
from homeostat.planner.policies import unhealthy
from homeostat.planner.states import maintenance_state
from homeostat.resources.registry import is_renamed


class Decider:
    """Decides about single resources of one world.

    Args:
        current: Name -> current row; kept up to date by the frontier.
        keys: Supply of fresh row keys, since randomness is an input.
        settled: Settled nodes, kept up to date by the frontier; None if all nodes count as settled.
    """

    def __init__(
        self,
        world: World,
        current: dict[str, Resource],
        keys: Iterator[str],
        settled: Collection[str] | None = None,
    ) -> None:
        self._context = Context(world, current, keys, IntendedActs, LiveGates, settled=settled)

    @property
    def healing(self) -> set[str]:
        """Keys of the rows that are being healed."""
        return self._context.healing

    def decide(self, definition: Definition, now: float) -> Decision:
        """Apply the function `decide` of this module to the shard."""
        return decide(self._context, definition, now)

    def decide_leftover(self, row: Resource, now: float) -> Step | Waiting:
        """Decide about an unused leftover (CV12)."""
        return delete.decide(self._context, row, now)

    def deletion_of(self, row: Resource) -> Deletion:
        """Return whether a leftover that is a whole or a part can be deleted."""
        return cascade.deletion_of(self._context, row)

    def is_stuck(self, whole: Resource, now: float) -> bool:
        """Return whether the state of a whole prevents the deletion of its parts."""
        return cascade.is_stuck(self._context, whole, now)

    def delete_parts_with(self, whole: Resource, parts: Iterable[Resource], *, inside: bool = False) -> None:
        """Set the parts that are deleted together with their whole.

        Args:
            inside: Whether parts that nested stacks are deleting are included.
        """
        self._context.parts[whole.key] = cascade.handles_by_kind(parts)
        (self._context.inside.add if inside else self._context.inside.discard)(whole.key)

    def look_for(self, row: Resource, now: float) -> Step | Waiting:
        """Look for the thing of an unanswered creation; start nothing new."""
        return create.find(self._context, row, now)

    def waits_for_reports(self, row: Resource) -> str:
        """Return which reports a drifted member waits for, see `planner.policies.healing`; "" if for none."""
        return self._context.gates.waits_for_reports(row)

    def is_stale(self, definition: Definition, row: Resource) -> bool:
        """Return whether a reference or attribute has changed since the resource last read it."""
        return self._context.is_stale(definition, row)


def decide(context: Context, definition: Definition, now: float) -> Decision:
    """Decide about a desired resource whose requirements are all done."""
    row = context.current.get(definition.name)
    _take_on_type(definition, row)
    desired = definition
    if row is not None:
        definition = context.reached(definition, row)
    unchanged = _operated(context, definition, row, now) or _left_as_is(context, definition, row, now)
    unchanged = unchanged or _only_finished(context, desired, definition, row, now)
    if unchanged is not None:
        return unchanged
    stopped = context.gates.stop(definition, row, now)
    if stopped is not None:
        return stopped
    if _is_external(context, desired, row):
        # Finish an adoption in progress before the row may reference an external thing.
        if row is not None and row.busy and row.action == Action.ADOPT:
            return adopt.go_on(context, row, now)
        return external.decide(context, desired, row, now)
    if row is None or row.action == Action.INIT:
        return _begin(context, definition, row, now)
    handed = context.gates.hand_over(definition, row, now)
    if handed is not None:
        return handed
    if row.busy:
        return context.acts.go_on(definition, row, now)
    return _decide_idle(context, desired, definition, row, now)


def _operated(context: Context, definition: Definition, row: Resource | None, now: float) -> Decision | None:
    """Decide about a row with a requested operation or fencing in progress; None for any other row."""
    if row is None or not row.busy:
        return None
    if row.marks is not None and request_outcome.is_operating(row):
        return requested.go_on(context, definition, row, now)
    return recovery.go_on(context, definition, row, now) if recovery_state.is_fencing(row) else None


def _decide_idle(context: Context, desired: Definition, definition: Definition, row: Resource, now: float) -> Decision:
    if maintenance_state.still_locked(context.world, row):
        return maintenance.unlock(context, row, now)
    marks = row.marks
    if marks is not None and marks.requested and (row.failed or not outcome.is_unchanged(row)):
        return requested.decide(context, definition, row, marks.requested[0], now)
    if context.world.health is not None or recovery_state.is_marked(row) or recovery_state.was_recovered(row):
        recovered = recovery.decide(context, definition, row, now)
        if recovered is not None:
            return recovered
    mark = unhealthy.mark_of(row)
    if mark is not None:
        return marked.decide(context, definition, row, mark, now)
    if row.failed:
        return failure.decide(context, definition, row, now)
    return at_rest.decide(context, desired, definition, row, now)


def _only_finished(
    context: Context, desired: Definition, definition: Definition, row: Resource | None, now: float
) -> Decision | None:
    """Decide about a resource whose acts may only be finished; None if new acts may begin."""
    # Here the row is in progress: `_left_as_is` has decided about all other rows.
    if row is not None and check.only_finishes(context.world):
        return in_progress.finish(context, definition, row, now)
    if context.world.to_be_deleted and deleted_around.covers(definition, row):
        return _to_be_deleted(context, desired, definition, row, now)
    return None


def _to_be_deleted(
    context: Context, desired: Definition, definition: Definition, row: Resource | None, now: float
) -> Decision:
    """Decide about a resource of a stack whose enclosing stack is being deleted: acts are finished, none begun."""
    if row is None or row.action == Action.INIT:
        return deleted_around.wait(definition, row, now)
    if row.busy:
        return in_progress.finish(context, definition, row, now, to_be_deleted=True)
    is_requested = row.converge_requested_at is not None or (row.marks is not None and bool(row.marks.requested))
    changes = context.is_newer(row) or definition.type != row.type or context.is_stale(definition, row)
    if row.failed or is_requested or changes or outcome.is_unchanged(row):
        return deleted_around.wait(definition, row, now, row.reason if row.failed else "")
    verdict = maintenance_state.at_rest(context.world, row, now)
    # The failure of a nested stack is only recorded.
    recorded = verdict.remedy is Remedy.MANUAL and verdict.condition is not Condition.ABSENT
    if outcome.unfit(verdict) and not recorded:
        return deleted_around.wait(definition, row, now, verdict.reason)
    return at_rest.decide(context, desired, definition, row, now)


def _take_on_type(definition: Definition, row: Resource | None) -> None:
    """Let a row take on another name of its type without a replacement; users still see the name in the template."""
    if row is not None and row.type != definition.type and is_renamed(row.type, definition.type):
        row.template_type, row.type = row.shown_type, definition.type


def _begin(context: Context, definition: Definition, row: Resource | None, now: float) -> Decision:
    """Begin a resource without a thing."""
    if row is None:
        return (
            context.wait_if_failed(definition.name)
            or context.missing_requirements(definition)
            or context.gates.hand_over(definition, None, now)
            or context.acts.create(definition, now)
        )
    # A replacement goes on although its revision has failed: its predecessor is being deleted already.
    waiting = context.wait_if_failed(row.name) if row.replaces is None else None
    if adoption_of(row.intent) is not None:
        return waiting or adopt.begin(context, definition, row, now)
    wait: Step | Waiting | None = waiting or replace.wait_for_predecessor(context, definition, row)
    if isinstance(wait, Waiting) and wait.why is Why.LEAVING and row.marks is not None:
        wait = requested.wait_for_predecessor(context, row, wait, now)
    if isinstance(wait, Waiting) and wait.why is Why.LEAVING and context.world.health is not None:
        wait = recovery.wait_for_predecessor(context, row, wait, now)
    wait = wait or context.missing_requirements(definition) or context.gates.hand_over(definition, row, now)
    return wait or context.acts.begin(definition, row, now)


def _is_external(context: Context, definition: Definition, row: Resource | None) -> bool:
    """Return whether the thing is external, or is to become external.

    In a frozen stack only the row counts, since nothing may change.
    """
    if row is not None and row.external_id is not None:
        return True
    return definition.external_id is not None and not context.world.stack.frozen


def _left_as_is(context: Context, definition: Definition, row: Resource | None, now: float) -> Decision | None:
    """Decide about a resource that is left as it is whatever its definition says; None if changes are allowed."""
    stack = context.world.stack
    # Maintenance and snapshots end in their own modules whatever the stack does by now: only these know the request
    # and the sign of its completion.
    if row is not None and row.busy and row.action in MAINTENANCE:
        return maintenance.go_on(context, row, now)
    if row is not None and row.busy and row.action == Action.SNAPSHOT:
        return snapshot.go_on(context.world, row, now)
    if row is not None and row.busy:
        # Other acts end as well, but in a maintained or frozen stack nothing may follow from them.
        return in_progress.finish(context, definition, row, now) if stack.maintained or stack.frozen else None
    if stack.maintained:
        return maintenance.maintain(context, row, now)
    if stack.checking:
        return check.check(context.world, row, now)
    if stack.snapshotting:
        return snapshot.take(context.world, row, now)
    return _frozen(context, definition, row, now) if stack.frozen else None


def _frozen(context: Context, definition: Definition, row: Resource | None, now: float) -> Decision | None:
    """Postpone the creation, retry or replacement of a resource while its stack is locked or suspended.

    A mark ends in a suspended stack, too; in a locked one it ends after the unlocking, since no row changes before.
    None for a resource at rest: it is judged as usual, and problems are only noted.
    """
    if row is None or row.action == Action.INIT:
        return maintenance_state.wait_while_frozen(context.world.stack, definition.name)
    mark, is_locked = unhealthy.mark_of(row), context.world.stack.lock is not None
    if mark is not None and mark.is_over(now) and not is_locked:
        return unhealthy.expire(context.world, row, now)
    if mark is not None:
        ends_at = None if is_locked else mark.expires_at
        return Waiting(row.name, Why.UNHEALTHY, (), mark.reason, mark.since, ends_at, row.key)
    if row.failed:
        return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
    return None
