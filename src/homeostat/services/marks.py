"""Marking resources unhealthy, one or many at once, and removing marks (MU). Never waits for the engine.

A mark is a fact that the API writes: it changes the row's version, so a pass that has loaded the row starts over (ADR
0031).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, or_

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
from homeostat.store.database import Database
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state, shards
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import locks, revisions, stack_state, stacks

DEFAULT_REASON = "state changed by resource_mark_unhealthy api"
WORDS_MAX = 400
"""Names and ids in one query."""
RECENT_S = 3.0
"""Who marks something often sends an update right after, which replaces or removes it. What a pass began for the mark
alone would have to be undone, so none is asked for before that."""
DETAILS_MAX = 20
"""Errors of one request that are reported."""


@dataclass(frozen=True, slots=True)
class MarkRequest:
    """A statement about resources.

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
        path: Names of resources down to it.
        changed: Its state changed.
    """

    target: str
    path: tuple[str, ...]
    state: str
    changed: bool


@dataclass(slots=True)
class _Sought:
    """A target on the way to its row.

    Attributes:
        place: Place in the request, for messages.
        stacks: Ids from the stack of the request down to the one it is in, as far as known.
        rest: What is left of the target below that.
        path: Names of resources so far.
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
    def found(self) -> Resource:
        assert self.row is not None, f"{self.target} was not looked for"
        return self.row

    @property
    def shard(self) -> tuple[tuple[str, ...], int]:
        return self.stacks, self.found.shard


class Marks:
    """Marks resources of stored stacks."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def mark(self, stack_id: str, request: MarkRequest, targets: Mapping[str, str]) -> list[MarkOutcome]:
        """Mark all of these resources, or none of them.

        Args:
            targets: Place in the request ("" for a single target) -> name or physical id; for a nested stack's
                resource, a path such as `group/0/server`.

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
            # Found twice: first to know what to lock, then, under the locks, as it is now.
            held = self._hold(tx, _find(tx, stack_id, targets), request)
            found = _find(tx, stack_id, targets)
            for each in found:
                each.wrong = _hindrance(each, held)
            _refuse(found)
            return self._write(tx, found, request)

    def _hold(self, tx: Connection, found: Sequence[_Sought], request: MarkRequest) -> set[tuple[tuple[str, ...], int]]:
        """Lock what was found, against passes and other requests, and wake its shards.

        The lock order is everybody's: stacks before shards, parents first; then shards before rows, children first.

        Returns:
            The locked shards, each with the ids of its stack and the stacks above.
        """
        held = {each.shard for each in found}
        for ids in sorted({ids for ids, _ in held}, key=lambda ids: (len(ids), ids)):
            locks.changeable(self._db, tx, ids[-1])
        healed = {each.shard for each in found if stacks.facts(each.stack).converges(each.found.name)}
        now = self._db.now_of(tx)
        for ids, number in sorted(held, key=lambda shard: (-len(shard[0]), shard)):
            # Where nothing is healed the status of the stack follows the mark at once.
            delay_s = RECENT_S if request.unhealthy and (ids, number) in healed else 0.0
            shards.wake(tx, ids[-1], now + delay_s, shards.USER, [number])
        return held

    def _write(self, tx: Connection, found: Sequence[_Sought], request: MarkRequest) -> list[MarkOutcome]:
        now = self._db.now_of(tx)
        written: dict[str, tuple[StackRow, Writes]] = {}
        failures: dict[tuple[str, int], int] = defaultdict(int)
        outcomes = []
        for each in found:
            row, in_action = each.found, each.stack.status == Status.IN_PROGRESS
            hindered = counts_as_failure(row, in_action=in_action)
            happened = _change(tx, row, request, now)
            if happened is not None:
                _, writes = written.setdefault(row.stack_id, (each.stack, Writes()))
                writes.intend(row)
                writes.events += happened
                # The shard counts its failed resources; marks change their number.
                failures[row.stack_id, row.shard] += counts_as_failure(row, in_action=in_action) - hindered
            path = (*each.path, row.name)
            outcomes.append(MarkOutcome(each.target, path, joined(row.action, row.status), bool(happened)))
        for stack, writes in written.values():
            shard_state.record(self._db, tx, stack.id, writes, now)
        for (id, number), more in failures.items():
            shards.count_failures(tx, id, number, more)
        for stack, _ in written.values():
            stack_state.wake_parent(tx, stack, now)
        return outcomes


def _change(tx: Connection, row: Resource, request: MarkRequest, now: float) -> list[Event] | None:
    """Change the row; return the events, or None where it stays as it is."""
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
    unhealthy.forget(row)  # the repair that the mark caused has failed, and stays failed
    return []


def _hindrance(sought: _Sought, held: Collection[tuple[tuple[str, ...], int]]) -> Rejected | None:
    """Return why the row must be left alone now (MU5), or None."""
    row, stack = sought.found, sought.stack
    closed = stack.status == Status.IN_PROGRESS and not STACK_ACTIONS[stack.action].marks_allowed
    if not (row.busy or row.action == Action.INIT or closed or sought.shard not in held):
        return None
    doing = f"its resource {row.name} is {joined(row.action, row.status)}"
    message = f"Stack {stack.name} already has an action ({stack.action}) in progress: {doing}. Mark it after that."
    return Rejected("ActionInProgress", message)


def _refuse(found: Sequence[_Sought]) -> None:
    """Raise Rejected with all errors, if there are any."""
    wrong = [(each.place, each.wrong) for each in found if each.wrong is not None]
    if wrong:
        details = "; ".join(
            f"{place}: {error.detail}" if place else error.detail for place, error in wrong[:DETAILS_MAX]
        )
        more = f"; and {len(wrong) - DETAILS_MAX} more" if len(wrong) > DETAILS_MAX else ""
        raise Rejected(wrong[0][1].fault, details + more)


def _unmade(tx: Connection, stack_id: str, targets: Mapping[str, str]) -> Rejected | None:
    """Return the error for a missing resource that the desired state has but that was not started yet; else None."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        return None
    names = sorted({target.partition("/")[0] for target in targets.values()})
    made = {row.name for row in _rows(tx, stack_id, names)}
    desired, identity = (
        revisions.desired_of(tx, stack_id, stack.revision),
        Identity(stack.id, stack.name, stack.project),
    )
    for name in names:
        if name not in made and name in compile_graph(desired, identity, shard_of(name, stack.shards)):
            message = f"The Resource ({name}) of Stack {stack.name} has not been made yet. Mark it after that."
            return Rejected("ActionInProgress", message)
    return None


# -- finding -----------------------------------------------------------------------------------------------------------


def _find(tx: Connection, stack_id: str, targets: Mapping[str, str]) -> list[_Sought]:
    """Find the row of each target; targets of the same row get the same object. Raise Rejected."""
    sought = [_Sought(place, target, (stack_id,), target) for place, target in targets.items()]
    on_the_way = sought
    while on_the_way:
        together: dict[str, list[_Sought]] = defaultdict(list)
        for each in on_the_way:
            together[each.stacks[-1]].append(each)
        for id, those in together.items():
            _look(tx, id, those)
        on_the_way = [each for each in on_the_way if each.row is None and each.wrong is None]
    _refuse(sought)
    return sought


def _look(tx: Connection, stack_id: str, those: Sequence[_Sought]) -> None:
    """Resolve targets in or below one stack by one step."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        for each in those:
            each.wrong = stack_not_found(stack_id)
        return
    rows = _rows(tx, stack_id, sorted({word for each in those for word in (each.rest, each.rest.partition("/")[0])}))
    facts = stacks.facts(stack)
    for each in those:
        each.stack = stack
        try:
            _step(each, rows, facts)
        except Rejected as error:
            each.wrong = error


def _step(sought: _Sought, rows: Sequence[Resource], facts: StackFacts) -> None:
    """Resolve a target in one stack, or move on to the nested stack that its path names.

    Raises:
        Rejected: EntityNotFound; PhysicalResourceIDAmbiguity.
    """
    sought.row = _named(sought.rest, rows, facts)
    first, _, rest = sought.rest.partition("/")
    owner = _named(first, rows, facts) if sought.row is None and rest else None
    if sought.row is not None:
        return
    if owner is None:
        message = f"The Resource ({sought.rest}) could not be found in Stack {facts.name}."
        raise Rejected("EntityNotFound", message)
    if kind_of(owner.type) != NestedStack.kind or not owner.handle:
        raise Rejected("EntityNotFound", f"The Resource ({first}) of Stack {facts.name} has no nested stack.")
    sought.stacks, sought.path, sought.rest = (*sought.stacks, owner.handle), (*sought.path, owner.name), rest


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


def _rows(tx: Connection, stack_id: str, words: Sequence[str]) -> list[Resource]:
    """Load rows with one of these names or physical ids."""
    found: dict[str, Resource] = {}
    table = schema.resource
    for start in range(0, len(words), WORDS_MAX):
        some = words[start : start + WORDS_MAX]
        known = or_(table.c.name.in_(some), table.c.handle.in_(some))
        rows, _ = shard_state.load_where(tx, table.c.stack_id == stack_id, known)
        found |= {key: row for key, row in rows.items() if key not in found}
    return list(found.values())
