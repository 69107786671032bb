"""Operations on an existing stack besides a new desired state: observe, converge, check, clear a hook, suspend, lock.

Also the switches of continuous convergence (CV8, CV9). Nothing here waits for the engine.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import update

from homeostat.identity.trusts import Accept, accept_nothing
from homeostat.model.errors import Rejected
from homeostat.model.plan import event_of
from homeostat.model.stack_actions import STACK_ACTIONS, Effect
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner.current import current_row
from homeostat.planner.lifecycle import hooks
from homeostat.planner.policies import unhealthy
from homeostat.planner.policies.healing import needs_consent
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import is_outside, kind_of
from homeostat.store import events, schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import look_schedule, shards
from homeostat.store.stacks import action_begin, locks, nested_status, stacks, views
from homeostat.templates.registry import HOOKS

EXCEPTIONS_MAX = 1000
"""Resources of one stack that may have their own switches."""


@dataclass(frozen=True, slots=True)
class ConvergenceSettings:
    """Changes of the switches of continuous convergence. Omitted switches keep their values.

    Attributes:
        stack: Keys `converge` (heal drifted and dead resources) and `observe_s` (seconds between looks at settled
            resources; 0: never; None: the service's default).
        exceptions: Resource -> the same keys and `healing`, if they differ from the stack; an empty map removes them.
        healing: `policy` (`replace` or `ask`) and `share`; None: the service's default.
    """

    stack: Mapping[str, Any] = field(default_factory=dict)
    exceptions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    healing: Mapping[str, Any] = field(default_factory=dict)


class StackActions:
    """Operations on existing stacks.

    Args:
        timeout_s: Deadline of a check or convergence if the stack does not set one.
    """

    def __init__(self, db: Database, timeout_s: float) -> None:
        self._db = db
        self._timeout_s = timeout_s

    def observe(self, stack_id: str, resource: str | None = None) -> float:
        """Request an observation of the stack and all its nested stacks, or of one resource (with its whole shard).

        Returns:
            Time from which observations count as new, in seconds since the epoch.

        Raises:
            Rejected: EntityNotFound; ResourceNotAvailable for a resource that has not been started.
        """
        with self._db.write() as tx:
            stack = stacks.live(tx, stack_id)
            now = tx.now()
            where, numbers = self._extent(tx, stack, resource)
            look_schedule.request_look(tx, where, now, numbers)
            return now

    def looked_at(self, tx: Transaction, stack: StackRow, resource: str | None = None) -> tuple[float | None, str]:
        """Report how recent the observations are that `observe` requests.

        Returns:
            Time since when everything has been observed, None if a resource never was; and why a resource cannot be
                observed, "" if all can.

        Raises:
            Rejected: ResourceNotAvailable for a resource that has not been started.
        """
        return look_schedule.last_complete_look(tx, *self._extent(tx, stack, resource))

    def _extent(self, tx: Transaction, stack: StackRow, resource: str | None) -> tuple[Any, Sequence[int] | None]:
        """Return the stacks, and which of their shards (None: all), to observe for the stack or the resource."""
        row = self._resource(tx, stack, resource)
        if row is None:
            return stacks.tree_of(stack.id), None
        if _is_nested(row):
            return stacks.tree_of(row.handle), None
        return [stack.id], [row.shard]

    def converge(self, stack_id: str, resource: str | None = None) -> None:
        """Observe the stack or the resource and bring it to its desired state, even if convergence is switched off.

        Failures are retried. A nested stack that is marked unhealthy, or whose replacement waits for consent, is
        replaced as a whole; otherwise its contents converge.

        Raises:
            Rejected: EntityNotFound; ResourceNotAvailable for a resource that has not been started; NotSupported for a
                suspended stack; StackLocked.
        """
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            if stack.suspended:
                raise Rejected("NotSupported", "Converging a stack when it is suspended is not supported: resume it.")
            row = self._resource(tx, stack, resource)
            if row is not None and (not _is_nested(row) or needs_consent(row) or unhealthy.mark_of(row) is not None):
                self._converge_one(tx, stack, row)
                return
            whole = stack if row is None else stacks.for_update(tx, row.handle)
            if whole is not None and whole.deleted_at is None:
                action_begin.converge(tx, whole, tx.now(), self._timeout_s)

    def _converge_one(self, tx: Transaction, stack: StackRow, row: Resource) -> None:
        """Request convergence of one resource."""
        now = tx.now()
        # The shard is locked before its row, as in every pass.
        shards.wake(tx, stack.id, now, shards.USER, [row.shard])
        if is_outside(row.type):
            look_schedule.request_look(tx, [stack.id], now, [row.shard])
        table = schema.resource
        # With another version of the row, a pass that has already loaded the row starts over.
        statement = (
            update(table).where(table.c.key == row.key).values(converge_requested_at=now, version=table.c.version + 1)
        )
        tx.execute(statement)

    def clear_hook(self, stack_id: str, resource: str, hook: Any) -> None:
        """Let a resource continue that waits at a hook.

        Raises:
            Rejected: EntityNotFound; StackLocked; InvalidBreakPointHook for an unknown hook, and if the resource does
                not wait at this hook.
        """
        if hook not in HOOKS:
            message = f"Invalid hook type {hook!r}: one of {', '.join(HOOKS)} is needed"
            raise Rejected("InvalidBreakPointHook", message)
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            now = tx.now()
            row = self._waiting_at(tx, stack, resource, hook)
            shards.wake(tx, stack.id, now, shards.USER, [row.shard])  # before the row: the lock order of passes
            # Read again: until the shard was locked, a pass may have changed the row.
            row = self._waiting_at(tx, stack, resource, hook)
            table = schema.resource
            tx.execute(
                update(table)
                .where(table.c.key == row.key)
                .values(hooks=hooks.cleared(row), version=table.c.version + 1)
            )
            events.append(tx, stack.id, [event_of(row, reason=f"Hook {hook} is cleared")], now)

    def _waiting_at(self, tx: Transaction, stack: StackRow, name: str, hook: str) -> Resource:
        rows, _ = views.resources(tx, stack.id, [name])
        for row in rows.values():
            if hooks.waits_at(row) == hook:
                return row
        raise Rejected("InvalidBreakPointHook", f'The "{hook}" hook is not defined on {name}: it does not wait there')

    def begin(self, stack_id: str, action: Action, accept: Accept = accept_nothing) -> None:
        """Begin an action that leaves the desired state as it is, by its rules in `STACK_ACTIONS`.

        Maintenance that is already in progress or done is not begun again.

        Args:
            accept: Stores the trust of the requesting user.

        Raises:
            Rejected: EntityNotFound; StackLocked; ActionInProgress during an action that this action does not overtake;
                NotSupported for a nested stack, and after a failed deletion: nothing of the stack should exist then.
        """
        rules = STACK_ACTIONS[action]
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            if rules.effect is Effect.MAINTAIN and stack.action == action and stack.status != Status.FAILED:
                return
            if stack.status == Status.IN_PROGRESS and stack.action not in (rules.overtakes or ()):
                message = f"Stack {stack.name} already has an action ({stack.action}) in progress."
                raise Rejected("ActionInProgress", message)
            if not rules.for_nested and nested_status.is_nested(tx, stack):
                message = (
                    f"A nested stack is suspended and resumed with the stack {stack.root_id} that it is nested in."
                )
                raise Rejected("NotSupported", message)
            if stack.action == Action.DELETE:
                message = f"{action.title()} of stack {stack.name} after its deletion has failed is not supported"
                raise Rejected("NotSupported", f"{message}: delete it once more, or update it.")
            accept(tx)
            now = tx.now()
            if rules.effect is Effect.READ:
                action_begin.check(tx, stack, now, self._timeout_s)
            else:
                action_begin.maintain(tx, stack, action, now, self._timeout_s)

    def lock(self, stack_id: str, wanted: locks.Lock, breaks: Callable[[locks.Lock], bool]) -> None:
        """Lock a stack. See `store.stacks.locks.lock`."""
        with self._db.write() as tx:
            locks.lock(tx, stack_id, wanted, breaks, self._timeout_s)

    def unlock(self, stack_id: str, breaks: Callable[[locks.Lock], bool]) -> None:
        """Unlock a stack. See `store.stacks.locks.unlock`."""
        with self._db.write() as tx:
            locks.unlock(tx, stack_id, breaks, self._timeout_s)

    def switch(self, stack_id: str, switches: ConvergenceSettings) -> StackRow:
        """Change the switches of a stack and all its nested stacks; return the changed row.

        Raises:
            Rejected: EntityNotFound; RequestLimitExceeded; StackLocked.
        """
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            exceptions = {**(stack.exceptions or {}), **switches.exceptions}
            remaining = {name: exception for name, exception in exceptions.items() if exception}
            if len(remaining) > EXCEPTIONS_MAX:
                message = f"at most {EXCEPTIONS_MAX} resources of a stack can have switches of their own"
                raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
            healing = _changed(stack.healing, switches.healing)
            of_stack = {**switches.stack, **({"healing": healing} if switches.healing else {})}
            if of_stack:
                self._set(tx, stack_id, of_stack)
            tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(exceptions=remaining or None))
            whole = {"converge": stack.converge, "observe_s": stack.observe_s, **switches.stack}
            for nested_id, name in self._nested_stacks(tx, stack, remaining.keys() | switches.exceptions.keys()):
                own = dict(exceptions[name])
                policy = own.pop("healing", None)
                inside = _changed(healing, {"policy": policy} if policy else {})
                self._set(tx, nested_id, {**whole, **own, "healing": inside})
            # Drift that was left alone may be healed now: the observation wakes the shards and starts the new interval.
            look_schedule.request_look(tx, stacks.tree_of(stack_id), tx.now())
            return stacks.live(tx, stack_id)

    def _nested_stacks(self, tx: Transaction, stack: StackRow, names: Collection[str]) -> list[tuple[str, str]]:
        """Return the nested stacks among these resources, as (id, name of the resource)."""
        if not names:
            return []
        rows, _ = views.resources(tx, stack.id, names)
        return [(row.handle, row.name) for row in rows.values() if _is_nested(row) and not row.deleting]

    def _set(self, tx: Transaction, stack_id: str, values: Mapping[str, Any]) -> None:
        tree = stacks.tree_of(stack_id)
        tx.execute(update(schema.stack).where(schema.stack.c.id.in_(tree)).values(**values))

    def _resource(self, tx: Transaction, stack: StackRow, name: str | None) -> Resource | None:
        if name is None:
            return None
        rows, _ = views.resources(tx, stack.id, [name])
        row = current_row(rows.values(), stacks.facts(stack))
        if row is None:
            raise Rejected("ResourceNotAvailable", f"The Resource ({name}) is not available: it has not been made yet.")
        return row


def _changed(healing: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the column `healing` with these values set; None restores the service's default."""
    return {key: value for key, value in {**(healing or {}), **changes}.items() if value is not None} or None


def _is_nested(row: Resource) -> bool:
    """Return whether the resource is realized by a nested stack."""
    return kind_of(row.type) == NestedStack.kind and row.handle != ""
