"""Marking resources unhealthy, one or many at once, and taking marks away (MU). Never waits for the engine.

A mark is a fact that the API writes: the row's version moves with it, so a pass that has the row in hand begins anew.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, or_

from homeostat.desired.graphs import compile_graph, shard_of
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.model.plan import Event
from homeostat.model.status import Action, Status, joined
from homeostat.model.world import Resource, StackFacts
from homeostat.planner.current import current_row
from homeostat.planner.policies import unhealthy
from homeostat.planner.policies.unhealthy import Mark
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state, shards
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import locks, stacks

DEFAULT_REASON = "state changed by resource_mark_unhealthy api"
OPEN_ACTIONS = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.ROLLBACK, Action.RESTORE, Action.CHECK})
"""What a stack may be doing while its resources are marked: it replaces them, or leaves that for later."""
WORDS_MAX = 400
"""Names and ids that one query is about."""
TOLD_MAX = 20
"""Mistakes of one request that are told."""


@dataclass(frozen=True, slots=True)
class MarkRequest:
    """What somebody says of resources. unhealthy — or well again; by, reporter — see `planner.policies.unhealthy.Mark`;
    lasts_s — seconds until a mark ends, None for no end."""

    unhealthy: bool
    reason: str = ""
    by: str | None = None
    reporter: str | None = None
    lasts_s: float | None = None


@dataclass(frozen=True, slots=True)
class MarkOutcome:
    """What became of one resource. target — as it was asked for; path — names of resources down to it; changed — its
    state did."""

    target: str
    path: tuple[str, ...]
    state: str
    changed: bool


@dataclass(slots=True)
class _Sought:
    """A target on the way to its row. place — in the request; stacks — ids from the one asked about down to the one it
    is in, as far as that is known; rest — what is left of it below that; path — names so far."""

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
    def __init__(self, db: Database) -> None:
        self._db = db

    def say(self, stack_id: str, said: MarkRequest, targets: Mapping[str, str]) -> list[MarkOutcome]:
        """Mark all of these resources, or none of them.

        Takes: targets — place in the request, "" where there is only one -> name or physical id; that of a nested stack
        is a path like `group/0/server`. Fails: Rejected — EntityNotFound; PhysicalResourceIDAmbiguity; ActionInProgress
        for what is not made yet, and what is being made, changed or deleted; StackLocked.
        """
        try:
            return self._say(stack_id, said, targets)
        except Rejected as error:
            with self._db.read() as tx:
                unmade = _unmade(tx, stack_id, targets) if error.fault == "EntityNotFound" else None
            raise unmade or error from None

    def _say(self, stack_id: str, said: MarkRequest, targets: Mapping[str, str]) -> list[MarkOutcome]:
        with self._db.write() as tx:
            held = self._hold(tx, _find(tx, stack_id, targets))
            found = _find(tx, stack_id, targets)
            for each in found:
                each.wrong = _hindrance(each, held)
            _refuse(found)
            return self._write(tx, found, said)

    def _hold(self, tx: Connection, found: Sequence[_Sought]) -> set[tuple[tuple[str, ...], int]]:
        """Keep everybody else from what was found: stacks before shards, parents first; shards before rows, those of
        children first, as all do who take several. Each shard is woken."""
        held = {each.shard for each in found}
        for ids in sorted({ids for ids, _ in held}, key=lambda ids: (len(ids), ids)):
            locks.changeable(self._db, tx, ids[-1])
        now = self._db.now_of(tx)
        for ids, number in sorted(held, key=lambda shard: (-len(shard[0]), shard)):
            shards.wake(tx, ids[-1], now, shards.USER, [number])
        return held

    def _write(self, tx: Connection, found: Sequence[_Sought], said: MarkRequest) -> list[MarkOutcome]:
        now = self._db.now_of(tx)
        written: dict[str, tuple[Row[Any], Writes]] = {}
        failures: dict[tuple[str, int], int] = defaultdict(int)
        outcomes = []
        for each in found:
            row, hindered = each.found, each.found.hinders
            happened = _change(tx, row, said, now)
            if happened is not None:
                _, writes = written.setdefault(row.stack_id, (each.stack, Writes()))
                writes.intend(row)
                writes.events += happened
                failures[row.stack_id, row.shard] += row.hinders - hindered
            path = (*each.path, row.name)
            outcomes.append(MarkOutcome(each.target, path, joined(row.action, row.status), bool(happened)))
        for stack, writes in written.values():
            shard_state.record(self._db, tx, stack.id, writes, now)
        for (id, number), more in failures.items():
            shards.count_failures(tx, id, number, more)
        for stack, _ in written.values():
            stacks.wake_parent(tx, stack, now)
        return outcomes


def _change(tx: Connection, row: Resource, said: MarkRequest, now: float) -> list[Event] | None:
    """What happens to the row; None where it stays as it is."""
    reason = said.reason or DEFAULT_REASON
    if said.unhealthy:
        until = None if said.lasts_s is None else now + said.lasts_s
        return None if row.leaving else [unhealthy.marked(row, Mark(reason, now, said.by, said.reporter, until))]
    if (row.action, row.status) == (Action.CHECK, Status.FAILED) and (row.handle or unhealthy.mark_of(row)):
        shard = shards.get(tx, row.stack_id, row.shard)
        return [unhealthy.unmarked(row, reason, shard.settled_revision if shard is not None else 0, now)]
    if unhealthy.mark_of(row) is None:
        return None
    unhealthy.forget(row)  # what was done about it has failed, which stays so
    return []


def _hindrance(sought: _Sought, held: Collection[tuple[tuple[str, ...], int]]) -> Rejected | None:
    """Why its row must be left alone now (MU5)."""
    row, stack = sought.found, sought.stack
    closed = stack.status == Status.IN_PROGRESS and stack.action not in OPEN_ACTIONS
    if not (row.busy or row.action == Action.INIT or closed or sought.shard not in held):
        return None
    doing = f"its resource {row.name} is {joined(row.action, row.status)}"
    message = f"Stack {stack.name} already has an action ({stack.action}) in progress: {doing}. Mark it after that."
    return Rejected("ActionInProgress", message)


def _refuse(found: Sequence[_Sought]) -> None:
    """Fails: Rejected, if anything is wrong, with all that is."""
    wrong = [(each.place, each.wrong) for each in found if each.wrong is not None]
    if wrong:
        told = "; ".join(f"{place}: {error.detail}" if place else error.detail for place, error in wrong[:TOLD_MAX])
        more = f"; and {len(wrong) - TOLD_MAX} more" if len(wrong) > TOLD_MAX else ""
        raise Rejected(wrong[0][1].fault, told + more)


def _unmade(tx: Connection, stack_id: str, targets: Mapping[str, str]) -> Rejected | None:
    """What to answer when a resource that is not found should exist, and was not begun yet."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        return None
    names = sorted({target.partition("/")[0] for target in targets.values()})
    made = {row.name for row in _rows(tx, stack_id, names)}
    desired, identity = stacks.desired_of(tx, stack_id, stack.revision), Identity(stack.id, stack.name, stack.project)
    for name in names:
        if name not in made and name in compile_graph(desired, identity, shard_of(name, stack.shards)):
            message = f"The Resource ({name}) of Stack {stack.name} has not been made yet. Mark it after that."
            return Rejected("ActionInProgress", message)
    return None


# -- finding -----------------------------------------------------------------------------------------------------------


def _find(tx: Connection, stack_id: str, targets: Mapping[str, str]) -> list[_Sought]:
    """The row of each target; what names the same row has the same object. Fails: Rejected."""
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
    """Bring targets that lie in one stack, or below it, one step further."""
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
    """Fails: Rejected — EntityNotFound, PhysicalResourceIDAmbiguity."""
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
    """By name first, then by physical id. Fails: Rejected (PhysicalResourceIDAmbiguity)."""
    alike = [row for row in rows if row.name == word]
    if alike:
        return current_row(alike, facts) or max(alike, key=lambda row: row.born)
    mine = [row for row in rows if row.handle == word]
    if len(mine) > 1:
        names = ", ".join(sorted(row.name for row in mine))
        message = f"Several resources have the physical id {word}: {names}. Give the name of the one that is meant."
        raise Rejected("PhysicalResourceIDAmbiguity", message)
    return mine[0] if mine else None


def _rows(tx: Connection, stack_id: str, words: Sequence[str]) -> list[Resource]:
    """Rows with one of these names or physical ids, and all of the same names."""
    found: dict[str, Resource] = {}
    table = schema.resource
    for start in range(0, len(words), WORDS_MAX):
        some = words[start : start + WORDS_MAX]
        known = or_(table.c.name.in_(some), table.c.handle.in_(some))
        rows, _ = shard_state.load_where(tx, table.c.stack_id == stack_id, known)
        found |= {key: row for key, row in rows.items() if key not in found}
    return list(found.values())
