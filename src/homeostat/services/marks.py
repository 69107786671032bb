"""Marks resources unhealthy and removes marks, for any number of resources at once (MU). Never waits for the engine.

The API writes a mark as a fact. The write changes the row's version, so a pass that has loaded the row starts over (ADR
0031).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_

from homeostat.desired.graphs import compile_graph
from homeostat.desired.members import shard_of
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.model.marks import UnhealthyMark
from homeostat.model.plan import Event
from homeostat.model.stack_actions import STACK_ACTIONS
from homeostat.model.status import Action, Status, joined
from homeostat.model.world import Resource, StackFacts
from homeostat.planner.current import current_row
from homeostat.planner.lifecycle.recovery_state import counts_as_failure
from homeostat.planner.policies import unhealthy
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state, shards
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import locks, revisions, stack_state, stacks

DEFAULT_REASON = "state changed by resource_mark_unhealthy api"
WORDS_MAX = 400
"""Names and ids in one query."""
RECENT_S = 3.0
"""Delay of the pass after a mark. Users often send an update right after a mark, to replace or remove the resource; a
pass in between would start a recovery that the update has to undo."""
DETAILS_MAX = 20
"""Errors of one request that are reported."""


@dataclass(frozen=True, slots=True)
class MarkRequest:
    """A request to mark resources or to remove marks.

    Attributes:
        unhealthy: True to mark, False to remove the mark.
        by: See `model.marks.UnhealthyMark`.
        reporter: See `model.marks.UnhealthyMark`.
        lasts_s: Seconds until the mark expires; None for never.
    """

    unhealthy: bool
    reason: str = ""
    by: str | None = None
    reporter: str | None = None
    lasts_s: float | None = None


@dataclass(frozen=True, slots=True)
class MarkOutcome:
    """The result for one resource.

    Attributes:
        target: As in the request.
        path: Names of resources down to the resource itself.
        changed: Whether the state of the resource changed.
    """

    target: str
    path: tuple[str, ...]
    state: str
    changed: bool


@dataclass(slots=True)
class _Target:
    """A target of the request, resolved stack by stack until its row is found.

    Attributes:
        place: Place in the request, for messages.
        stacks: Ids from the stack of the request down to the target's stack, as far as resolved.
        rest: The part of the target below the last of these stacks.
        path: Names of the resolved resources.
        row: None until found.
    """

    place: str
    target: str
    stacks: tuple[str, ...]
    rest: str
    path: tuple[str, ...] = ()
    stack: Any = None
    row: Resource | None = None
    wrong: Rejected | None = None

    @property
    def resource(self) -> Resource:
        assert self.row is not None, f"{self.target} was not looked for"
        return self.row

    @property
    def shard(self) -> tuple[tuple[str, ...], int]:
        return self.stacks, self.resource.shard


class Marks:
    """Marks resources of stored stacks."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def mark(self, stack_id: str, request: MarkRequest, targets: Mapping[str, str]) -> list[MarkOutcome]:
        """Mark all of these resources, or none of them.

        Args:
            targets: Place in the request ("" for a single target) -> name or physical id; for a resource in a nested
                stack, a path such as `group/0/server`.

        Raises:
            Rejected: EntityNotFound; PhysicalResourceIDAmbiguity; ActionInProgress for a resource that does not exist
                yet or is being created, changed or deleted; StackLocked.
        """
        try:
            return self._mark(stack_id, request, targets)
        except Rejected as error:
            with self._db.read() as tx:
                unmade = _unmade(tx, stack_id, targets) if error.fault == "EntityNotFound" else None
            raise unmade or error from None

    def _mark(self, stack_id: str, request: MarkRequest, targets: Mapping[str, str]) -> list[MarkOutcome]:
        with self._db.write() as tx:
            # Resolve twice: first to know what to lock, then under the locks, since the rows may have changed.
            held = self._hold(tx, _find(tx, stack_id, targets), request)
            found_targets = _find(tx, stack_id, targets)
            for target in found_targets:
                target.wrong = _hindrance(target, held)
            _refuse(found_targets)
            return self._write(tx, found_targets, request)

    def _hold(
        self, tx: Transaction, targets: Sequence[_Target], request: MarkRequest
    ) -> set[tuple[tuple[str, ...], int]]:
        """Lock the targets against passes and other requests, and wake their shards.

        Returns:
            The locked shards, each with the ids of its stack and the stacks above.
        """
        held = {target.shard for target in targets}
        # The global lock order: stacks before shards, parents first; then shards before rows, children first.
        for ids in sorted({ids for ids, _ in held}, key=lambda ids: (len(ids), ids)):
            locks.changeable(tx, ids[-1])
        healed = {target.shard for target in targets if stacks.facts(target.stack).converges(target.resource.name)}
        now = tx.now()
        for ids, number in sorted(held, key=lambda shard: (-len(shard[0]), shard)):
            # Without healing there is nothing to undo: the status of the stack shows the mark at once.
            delay_s = RECENT_S if request.unhealthy and (ids, number) in healed else 0.0
            shards.wake(tx, ids[-1], now + delay_s, shards.USER, [number])
        return held

    def _write(self, tx: Transaction, targets: Sequence[_Target], request: MarkRequest) -> list[MarkOutcome]:
        now = tx.now()
        written: dict[str, tuple[StackRow, Writes]] = {}
        failures: dict[tuple[str, int], int] = defaultdict(int)
        outcomes = []
        for target in targets:
            row, in_action = target.resource, target.stack.status == Status.IN_PROGRESS
            failed_before = counts_as_failure(row, in_action=in_action)
            new_events = _change(tx, row, request, now)
            if new_events is not None:
                _, writes = written.setdefault(row.stack_id, (target.stack, Writes()))
                writes.intend(row)
                writes.events += new_events
                # The shard counts its failed resources; marks change their number.
                failures[row.stack_id, row.shard] += counts_as_failure(row, in_action=in_action) - failed_before
            path = (*target.path, row.name)
            outcomes.append(MarkOutcome(target.target, path, joined(row.action, row.status), bool(new_events)))
        for stack, writes in written.values():
            shard_state.record(tx, stack.id, writes, now)
        for (id, number), more in failures.items():
            shards.count_failures(tx, id, number, more)
        for stack, _ in written.values():
            stack_state.wake_parent(tx, stack, now)
        return outcomes


def _change(tx: Transaction, row: Resource, request: MarkRequest, now: float) -> list[Event] | None:
    """Change the row; return the events, or None if the row does not change."""
    reason = request.reason or DEFAULT_REASON
    if request.unhealthy:
        until = None if request.lasts_s is None else now + request.lasts_s
        mark = UnhealthyMark(reason, now, request.by, request.reporter, until)
        return None if row.deleting else [unhealthy.marked(row, mark)]
    if (row.action, row.status) == (Action.CHECK, Status.FAILED) and (row.handle or unhealthy.mark_of(row)):
        shard = shards.get(tx, row.stack_id, row.shard)
        return [unhealthy.unmarked(row, reason, shard.settled_revision if shard is not None else 0, now)]
    if unhealthy.mark_of(row) is None:
        return None
    unhealthy.forget(row)  # the failed repair that the mark caused stays failed
    return []


def _hindrance(target: _Target, held: Collection[tuple[tuple[str, ...], int]]) -> Rejected | None:
    """Return the error if the row cannot be marked now (MU5), or None."""
    row, stack = target.resource, target.stack
    closed = stack.status == Status.IN_PROGRESS and not STACK_ACTIONS[stack.action].marks_allowed
    if not (row.busy or row.action == Action.INIT or closed or target.shard not in held):
        return None
    doing = f"its resource {row.name} is {joined(row.action, row.status)}"
    message = f"Stack {stack.name} already has an action ({stack.action}) in progress: {doing}. Mark it after that."
    return Rejected("ActionInProgress", message)


def _refuse(targets: Sequence[_Target]) -> None:
    """Raise Rejected with the errors of all targets, if any."""
    wrong = [(target.place, target.wrong) for target in targets if target.wrong is not None]
    if wrong:
        details = "; ".join(
            f"{place}: {error.detail}" if place else error.detail for place, error in wrong[:DETAILS_MAX]
        )
        more = f"; and {len(wrong) - DETAILS_MAX} more" if len(wrong) > DETAILS_MAX else ""
        raise Rejected(wrong[0][1].fault, details + more)


def _unmade(tx: Transaction, stack_id: str, targets: Mapping[str, str]) -> Rejected | None:
    """Return the error for a resource of the desired state that was not started yet; None if all were started."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        return None
    names = sorted({target.partition("/")[0] for target in targets.values()})
    started = {row.name for row in _rows(tx, stack_id, names)}
    content = revisions.content_of(tx, stack_id, stack.revision)
    identity = Identity(stack.id, stack.name, stack.project)
    for name in names:
        if name not in started and name in compile_graph(content, identity, shard_of(name, stack.shards)):
            message = f"The Resource ({name}) of Stack {stack.name} has not been made yet. Mark it after that."
            return Rejected("ActionInProgress", message)
    return None


# -- finding -----------------------------------------------------------------------------------------------------------


def _find(tx: Transaction, stack_id: str, targets: Mapping[str, str]) -> list[_Target]:
    """Find the row of each target; targets of the same row get the same object. Raise Rejected."""
    all_targets = [_Target(place, target, (stack_id,), target) for place, target in targets.items()]
    unresolved = all_targets
    while unresolved:
        by_stack: dict[str, list[_Target]] = defaultdict(list)
        for target in unresolved:
            by_stack[target.stacks[-1]].append(target)
        for id, in_stack in by_stack.items():
            _look(tx, id, in_stack)
        unresolved = [target for target in unresolved if target.row is None and target.wrong is None]
    _refuse(all_targets)
    return all_targets


def _look(tx: Transaction, stack_id: str, targets: Sequence[_Target]) -> None:
    """Resolve targets in or below one stack by one step."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        for target in targets:
            target.wrong = stack_not_found(stack_id)
        return
    words = {word for target in targets for word in (target.rest, target.rest.partition("/")[0])}
    rows = _rows(tx, stack_id, sorted(words))
    facts = stacks.facts(stack)
    for target in targets:
        target.stack = stack
        try:
            _step(target, rows, facts)
        except Rejected as error:
            target.wrong = error


def _step(target: _Target, rows: Sequence[Resource], facts: StackFacts) -> None:
    """Resolve a target in one stack, or move on to the nested stack that its path names.

    Raises:
        Rejected: EntityNotFound; PhysicalResourceIDAmbiguity.
    """
    target.row = _named(target.rest, rows, facts)
    first, _, rest = target.rest.partition("/")
    owner = _named(first, rows, facts) if target.row is None and rest else None
    if target.row is not None:
        return
    if owner is None:
        message = f"The Resource ({target.rest}) could not be found in Stack {facts.name}."
        raise Rejected("EntityNotFound", message)
    if kind_of(owner.type) != NestedStack.kind or not owner.handle:
        raise Rejected("EntityNotFound", f"The Resource ({first}) of Stack {facts.name} has no nested stack.")
    target.stacks, target.path, target.rest = (*target.stacks, owner.handle), (*target.path, owner.name), rest


def _named(word: str, rows: Sequence[Resource], facts: StackFacts) -> Resource | None:
    """Find a row by name, then by physical id. Raise Rejected (PhysicalResourceIDAmbiguity)."""
    alike = [row for row in rows if row.name == word]
    if alike:
        return current_row(alike, facts) or max(alike, key=lambda row: row.born)
    matching = [row for row in rows if row.handle == word]
    if len(matching) > 1:
        names = ", ".join(sorted(row.name for row in matching))
        message = f"Several resources have the physical id {word}: {names}. Give the name of the one that is meant."
        raise Rejected("PhysicalResourceIDAmbiguity", message)
    return matching[0] if matching else None


def _rows(tx: Transaction, stack_id: str, words: Sequence[str]) -> list[Resource]:
    """Load rows with one of these names or physical ids."""
    all_rows: dict[str, Resource] = {}
    table = schema.resource
    for start in range(0, len(words), WORDS_MAX):
        chunk = words[start : start + WORDS_MAX]
        known = or_(table.c.name.in_(chunk), table.c.handle.in_(chunk))
        rows, _ = shard_state.load_where(tx, table.c.stack_id == stack_id, known)
        all_rows |= {key: row for key, row in rows.items() if key not in all_rows}
    return list(all_rows.values())
