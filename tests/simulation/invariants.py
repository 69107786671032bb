"""What must hold of a world that has come to rest: what should be is, nothing has leaked, and what differs says why."""

from collections import Counter
from collections.abc import Mapping, Set
from itertools import count
from typing import Any, Protocol

from sqlalchemy import func, select

from homeostat.convergence.stages.loading import Loaded, load_world
from homeostat.desired.compiling import Definitions
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.texts import size_of
from homeostat.model.stack_actions import MAINTENANCE
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Why
from homeostat.model.world import Resource, Seen
from homeostat.planner import Frontier
from homeostat.planner.current import current_row
from homeostat.planner.graph import leftover_node
from homeostat.planner.lifecycle.deadlines import SEEN_TO_END
from homeostat.planner.policies.healing import CONSENT
from homeostat.planner.report.explain import ShardStatus, explain
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks

READY = ("active", "available", "in-use", "attached")
COMPARED = ("flavor", "metadata", "description", "name", "size", "secret")
FATES = ("Timed out", "cancelled", "never created", "is restricted for resource", "SUCCESS signal(s)", CONSENT)
"""Ways of a stack to fail without a resource that did."""

UNKEPT = "it is left so"
"""End of what is said of a value that the cloud does not keep."""
KEPT: dict[str, dict[str, Any]] = {
    "server": {"metadata": {"kept": "by the cloud"}},
    "volume": {"description": "kept by the cloud"},
}
"""Kind -> what its things have in place of what they are sent."""
EXCUSES = (Why.BLIND, Why.BRAKE, Why.NEEDS_CONSENT, Why.UNHEALTHY, Why.LOCKED, Why.SUSPENDED, Why.LEFT_ALONE, Why.HOOK)
"""Why what is gone may stay so in a stack that has failed."""


class Restable(Protocol):
    """A world that these invariants can be checked on. retained — handles that a deletion policy or an abandoned
    stack let go of; let_go — keys of rows whose stacks were abandoned; mended — stacks of which single resources
    were converged on demand: they stay FAILED when those are well again; went — ids and reasons of stacks in which
    something that could not be deleted has gone later, or what failed its check in the middle of an action does not
    any more: an action that failed for it stays FAILED."""

    @property
    def db(self) -> Database: ...
    @property
    def retained(self) -> Set[str]: ...
    @property
    def let_go(self) -> Set[str]: ...
    @property
    def mended(self) -> Set[str]: ...
    @property
    def went(self) -> Set[tuple[str, str]]: ...

    def things(self) -> dict[str, dict[str, Any]]: ...
    def copies(self) -> list[dict[str, Any]]: ...
    def rows(self) -> list[Any]: ...
    def all_stacks(self) -> list[Any]: ...


def check_rest(world: Restable) -> None:
    """The faults have stopped: everything has come to rest, nothing has leaked, and what differs says why."""
    things = world.things()
    for stack in world.all_stacks():
        assert stack.status != Status.IN_PROGRESS, f"{stack.name} never came to rest: {reasons(world, stack)}"
        _check_stack(world, stack, things)
    _check_leaks(world)
    _check_snapshots(world)


def _check_stack(world: Restable, stack: Any, things: dict[str, dict[str, Any]]) -> None:
    rows = [row for row in world.rows() if row.stack_id == stack.id]
    if stack.deleted_at is not None:
        assert not rows, f"{stack.name} is deleted, but has {_states(rows)}"
        return
    if stack.parent_id is not None:
        owned = any(row.key == stack.parent_key and row.handle in (stack.id, "") for row in world.rows())
        assert owned or stack.id in world.retained, f"{stack.name} belongs to no stack"
    _check_size(world, stack)
    restricted = {name for number in range(stack.shards) for name in _check_shard(world, stack, number)}
    if stack.status == Status.FAILED and stack.action in (Action.UPDATE, Action.ROLLBACK):
        for row in rows:
            if row.status == Status.COMPLETE and row.action not in (Action.INIT, Action.DELETE):
                _check_there(things, f"{stack.name}.{row.name}", row, excused=row.name in restricted)
    if stack.status == Status.FAILED:
        mended = _is_mended(world, stack) or (stack.id, stack.reason) in world.went
        _check_failure(stack, rows, mended=mended)
        return
    if stack.action in MAINTENANCE and stack.complete_revision != stack.revision:
        return  # what was maintained had failed before: nothing of it is begun
    for row in rows:
        if row.status == Status.COMPLETE and row.action not in (Action.INIT, Action.DELETE):
            _check_reality(things.get(row.handle), f"{stack.name}.{row.name}", row, compared=row.name not in restricted)


def _check_size(world: Restable, stack: Any) -> None:
    """Limits of a tree count the resources of the newest revision, whichever action has stored it."""
    with world.db.read() as tx:
        size = size_of(revisions.content_of(tx, stack.id, stack.revision))
    assert stack.size == size, f"{stack.name} has {size} resources, and counts {stack.size}"


def _check_shard(world: Restable, stack: Any, number: int) -> set[str]:
    """Nothing is due in it, and each thing that is not as it should be says what would release it (CV19).

    Gives the names of resources that may differ: their environment restricts what would mend them.
    """
    place = f"{stack.name}/{number}"
    with world.db.read() as tx:
        now = tx.now()
        _, stored = shard_state.load_rows(tx, stack.id, number)
        loaded, again = (load_world(tx, DesiredGraphs(), stack.id, number, now) for _ in range(2))
    shard, graph = loaded.shard, loaded.world.definitions
    _check_noticed(place, loaded, stored)
    failures = sum(row.fails_stack for row in loaded.world.rows.values())
    if stack.complete_revision == stack.revision and stack.lock is None and not stack.suspended:
        what = f"{place} is {stack.action}_{stack.status} with {failures} failed resources"
        assert not failures or stack.status == Status.FAILED, what
    assert shard.failures == failures, f"{place} has {failures} failed resources, and counts {shard.failures}"
    frontier = _frontier_at_rest(place, loaded, now)
    if stack.complete_revision == stack.revision and stack.converge and not stack.exceptions and stack.lock is None:
        _check_tries(place, graph, frontier)
    explained = {each.node: each for each in explain(again.world, ShardStatus(now), now)}
    for name in graph:
        current = frontier.current.get(name)
        well = current is not None and current.status == Status.COMPLETE
        assert well or name in explained, f"{place}.{name} does not say why it waits"
    for key, row in frontier.leftovers.items():
        assert leftover_node(key) in explained, f"{place}: leftover {row.name} ({key}) does not say why it stays"
    for row in frontier.current.values():
        seen = loaded.world.seen.get(row.key)
        asleep = seen is not None and seen.observation.properties.get("suspended") and not stack.suspended
        why = explained[row.name].why if row.name in explained else Why.LEFT_ALONE  # in the end nothing is switched off
        assert not asleep or why is not Why.LEFT_ALONE, f"{place}.{row.name} does not say why its stack is suspended"
    for each in explained.values():
        assert each.released_by, f"{place}: nothing would release {each}"
        endless = stack.status != Status.IN_PROGRESS and each.why in SEEN_TO_END
        assert not endless, f"{place} is {stack.status}, and nothing ends {each}"
    forbidden = {node for node, each in explained.items() if each.why is Why.LEFT_ALONE and graph[node].restricted}
    unkept = {node for node, each in explained.items() if each.reason.endswith(UNKEPT)}
    marked = {node for node, each in explained.items() if each.why is Why.UNHEALTHY}
    for node in marked:
        assert graph[node].restricted or graph[node].external_id is not None, f"{place}: {node} is marked, and stays"
        assert frontier.current[node].failed or loaded.world.stack.frozen, f"{place}: {node} is marked, and hides it"
    helpless = forbidden | unkept | marked | {node for node, each in explained.items() if each.why is Why.FAILED}
    if stack.action in MAINTENANCE and stack.complete_revision != stack.revision:
        helpless |= {node for node, each in explained.items() if each.why is Why.STACK_FAILED}
    if stack.suspended and stack.parent_id is not None:  # the stack that it is nested in says why (see above)
        helpless |= {node for node, each in explained.items() if each.why is Why.SUSPENDED}
    if stack.status == Status.COMPLETE:
        assert all(each.cause in helpless for each in explained.values()), (
            f"{place} is COMPLETE, and waits: {explained}"
        )
    if stack.status == Status.COMPLETE and not helpless:
        assert frontier.at_rest, f"{place} is COMPLETE, and has something to do: {explained}"
        done = (shard.planned, shard.done)
        assert done == (len(graph), len(graph)), f"{place} is COMPLETE with {len(graph)}, and counts {done}"
    excused = _excused(frontier, explained) if stack.status == Status.FAILED else set()
    return {name for name, each in graph.items() if each.restricted} | unkept | excused


def _frontier_at_rest(place: str, loaded: Loaded, now: float) -> Frontier:
    frontier = Frontier(loaded.world, (f"next{number}" for number in count()))
    steps = frontier.steps(now, 1000)
    assert not steps, f"{place} is at rest with something to do: {steps}"
    return frontier


def _excused(frontier: Frontier, explained: Mapping[str, Any]) -> set[str]:
    """Names of resources that may be gone in a stack that has failed: they say why, or are to go."""
    found = {node for node, each in explained.items() if each.why in EXCUSES or each.reason.endswith(" is gone")}
    return found | {row.name for row in frontier.leftovers.values()}


def _check_tries(place: str, graph: Definitions, frontier: Frontier) -> None:
    """Nothing that could not be made stays so when what it requires has become well since (CV13)."""
    for name, row in frontier.current.items():
        if row.action != Action.CREATE or not row.failed or row.handle or graph[name].restricted or row.hooks:
            continue
        required = [frontier.current[each] for each in graph[name].requires if each in frontier.current]
        well = all(each.status == Status.COMPLETE and each.action != Action.INIT for each in required)
        newer = [each.name for each in required if each.changed > row.resolved]
        assert not (well and newer), f"{place}.{name} failed ({row.reason}), and {newer} are well since then"


def _check_noticed(place: str, loaded: Loaded, stored: Mapping[str, Seen]) -> None:
    """Nested stacks are what was last seen of them; of passes over them that changed nothing no parent need know."""
    for row, seen in loaded.looks:
        now, before = seen.observation.properties, stored[row.key].observation.properties
        unnoticed = {**now, "changes": 0} != {**before, "changes": 0}
        assert not unnoticed, f"{place} has not noticed what became of {row.name}: {now}"
        loaded.world.seen[row.key] = stored[row.key]


def _is_mended(world: Restable, stack: Any) -> bool:
    """Was a single resource converged on demand in it, or in a stack nested in it?"""
    parents = {each.id: each.parent_id for each in world.all_stacks()}
    mended: set[str | None] = set(world.mended)
    while not (around := {parents.get(each) for each in mended}) <= mended:
        mended |= around
    return stack.id in mended


def _check_failure(stack: Any, rows: list[Any], *, mended: bool) -> None:
    assert stack.reason, f"{stack.name} failed without a reason"
    assert rows or stack.action != Action.DELETE, f"{stack.name} is not deleted, and nothing is left: {stack.reason}"
    failed = [row for row in rows if row.status == Status.FAILED]
    # What a check has found wrong may be healed by now.
    # So may be what needed consent: a user has agreed, or has switched that off.
    known = mended or stack.action in (Action.CHECK, Action.SNAPSHOT) or any(fate in stack.reason for fate in FATES)
    # After a lock or a suspension a stack is as it was before; its resources show that they were unlocked or resumed.
    known = known or any(row.action in (Action.UNLOCK, Action.RESUME) for row in rows)
    # Where its revision has failed nothing that is healed later changes that (ADR 0047): what a resumption found is.
    known = known or (stack.action == Action.RESUME and stack.complete_revision != stack.revision)
    assert failed or known, f"{stack.name}: no resource failed: {stack.reason}"
    for row in failed:
        assert row.reason, f"{stack.name}.{row.name} failed without a reason"


def _check_reality(thing: dict[str, Any] | None, place: str, row: Any, *, compared: bool) -> None:
    """What the cloud has is what the row says: present, running, with the properties last requested, if compared. A
    volume that was taken over may be larger: none can be made smaller. A server that was taken over may have another
    flavor than an outdated document says: names of flavors are not compared with what is seen."""
    if kind_of(row.type) in ("", "stack"):
        return
    assert thing is not None, f"{place}: {row.handle} is gone, and its row is at rest"
    assert not compared or thing.get("status", READY[0]) in READY, f"{place}: {thing}"
    for name, value in row.properties.items():
        taken_over = row.token == ""
        if compared and name in COMPARED and not (name == "flavor" and taken_over):
            same = thing[name] >= value if name == "size" and taken_over else thing[name] == value
            same = same or _is_made_of(row, name, thing[name])
            assert same, f"{place}: {name} is {thing[name]}, not {value}"


def _is_made_of(row: Any, name: str, value: Any) -> bool:
    """Is it what the cloud makes of whatever it is sent there, and known to be that?"""
    made = KEPT.get(kind_of(row.type), {}).get(name)
    return value == made and row.marks is not None and name in row.marks.accepted


def _check_there(things: dict[str, dict[str, Any]], place: str, row: Any, *, excused: bool) -> None:
    """What a failed update has left alone is there, unless it says why not."""
    there = kind_of(row.type) in ("", "stack") or row.handle in things or row.replaced_by is not None
    assert there or excused, f"{place}: {row.handle} is gone, and its row is {row.action}_{row.status}"


def _check_leaks(world: Restable) -> None:
    """Every thing in a cloud belongs to exactly one row, but for what a Retain policy or its stack let go of."""
    handles = Counter(row.handle for row in world.rows() if row.handle)
    leaked = [handle for handle in world.things() if handles[handle] != 1 and handle not in world.retained]
    assert not leaked, f"leaked: {leaked}"


def _check_snapshots(world: Restable) -> None:
    """A snapshot is COMPLETE with all its parts, or FAILED and says why; no cloud keeps what belongs to none."""
    with world.db.read() as tx:
        by_id = {row.id: row for row in tx.execute(select(schema.snapshot))}
        parts = list(tx.execute(select(schema.snapshot_part)))
    copies = {each["token"]: each for each in world.copies()}
    for row in by_id.values():
        assert row.status != Status.IN_PROGRESS, f"snapshot {row.id} never came to rest"
        assert row.reason, f"snapshot {row.id} is {row.status} without a reason"
    for part in parts:
        if by_id[part.snapshot_id].status == Status.COMPLETE:
            copy = copies.get(part.token, {})
            assert (copy.get("id"), copy.get("status")) == (part.made, "available"), f"{part.token} is not kept: {copy}"
    known = {part.token for part in parts}
    mine = {token for token in copies if "-r" in token and token.rpartition("-")[0] not in world.let_go}
    leaked = sorted(mine - known)
    assert not leaked, f"snapshots leaked: {leaked}"


def check_events(world: Restable) -> None:
    """The newest event of each row shows its state (invariant 6); unknown where events may be purged."""
    table = schema.event
    newest = select(func.max(table.c.seq)).where(table.c.key != "").group_by(table.c.key)
    with world.db.read() as tx:
        chosen = select(table.c.key, table.c.action, table.c.status).where(table.c.seq.in_(newest))
        recorded = {key: (action, status) for key, action, status in tx.execute(chosen)}
    for row in world.rows():
        state = (row.action, row.status)
        assert row.action == Action.INIT or recorded.get(row.key) == state, (
            f"{row.name}: {recorded.get(row.key)} not {state}"
        )


def _states(rows: list[Any]) -> list[tuple[str, str, str, str]]:
    return sorted((row.name, row.action, row.status, row.reason) for row in rows)


def reasons(world: Restable, stack: Any) -> list[Any]:
    with world.db.read() as tx:
        rows: dict[str, Resource] = {}
        for number in range(stack.shards):
            rows |= shard_state.load_rows(tx, stack.id, number)[0]
        facts = stacks.facts(stack)
    current = {row.name: current_row([r for r in rows.values() if r.name == row.name], facts) for row in rows.values()}
    return [
        (row.name, row.action, row.status, row.reason, row.due_at, current[row.name] is row)
        for row in rows.values()
        if row.status != Status.COMPLETE or current[row.name] is not row
    ]
