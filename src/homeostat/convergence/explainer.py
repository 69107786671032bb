"""Asking the planner about stored stacks, without owning or storing anything (CV19).

What a worker knows and nobody else (the cloud) is taken from the rows. The cost of one answer is bounded: so many
rows are read and hardly more, and the answer says where to go on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.convergence.loader import load
from homeostat.convergence.nested_stacks import STACK
from homeostat.desired.graphs import DesiredGraphs, numbers_of, shard_of
from homeostat.model.plan import Waiting
from homeostat.model.status import Status
from homeostat.model.world import HEAL_SHARE
from homeostat.planner.policies import rolling_update
from homeostat.planner.report.estimate import Chain, Estimate, Took, critical_path, medians, time_left
from homeostat.planner.report.explain import PATIENCE_S, Explanation, ShardStatus, explain, explain_stack, with_pause
from homeostat.resources.groups import Group
from homeostat.resources.registry import kind_of
from homeostat.store.stacks import progress, stacks
from homeostat.store.stacks.progress import Unseen

ROWS_MAX = 1500
"""Resources looked at for one answer, plus those of the shard at which it is reached."""
SHARDS_MAX = 50
"""Shards with nothing to tell that are passed over for one answer."""
DEPTH_MAX = 50
"""Levels of nested stacks that are followed to what is waited for: more than any service allows."""

Place = tuple[int, int, str]
"""Of an explanation among those of its stack: shard, rank, node."""
BEFORE_ALL = -1


@dataclass(frozen=True, slots=True)
class Cause:
    """Where the waiting ends, perhaps in a nested stack. path — names from the top to it."""

    path: tuple[str, ...]
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class ExplainedResource:
    """One explanation. path — names from the top to it; stack — the row of its stack; child — of its nested stack."""

    path: tuple[str, ...]
    stack: Row[Any]
    explanation: Explanation
    child: Row[Any] | None
    cause: Cause | None


@dataclass(frozen=True, slots=True)
class Page:
    """after — place of the last one that was looked at, when there may be more; waiting — what the stack itself waits
    for, apart from its resources."""

    told: Sequence[ExplainedResource]
    after: Place | None
    waiting: Waiting | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """How far a stack has come, and how long it will take.

    planned, done — resources, those of nested stacks too where `stacks` is more than 1 (None: those are too many to be
    counted); rate — resources a second that came to rest lately; unseen — why nobody knows how things are just now.
    """

    planned: int
    done: int
    stacks: int | None
    rate: float | None
    chain: Chain
    estimate: Estimate | None
    unseen: Unseen | None


class Explainer:
    """One answer. Reads in the transaction given, each shard once. share, timeout_s — see `loader.load`."""

    def __init__(
        self,
        tx: Connection,
        definitions: DesiredGraphs,
        now: float,
        share: float = HEAL_SHARE,
        timeout_s: float = math.inf,
    ) -> None:
        self._share = share
        self._timeout_s = timeout_s
        self._tx = tx
        self._definitions = definitions
        self._now = now
        self._left = ROWS_MAX
        self._known: dict[tuple[str, int], list[Explanation]] = {}
        self._children: dict[str, Row[Any] | None] = {}

    def page(self, stack: Row[Any], limit: int, after: Place | None = None, depth: int = 0) -> Page:
        """At most `limit` explanations in the order of shards, causes first; each before those of its nested stack, of
        which the first are told, down to `depth` levels. Last come those of nested stacks that are well as seen from
        above, where healing waits."""
        found: list[ExplainedResource] = []
        place = self._pages(stack, found, (), limit, after, depth)
        if place is None and after is None:
            self._inside(stack, found, limit, depth)
        busy = bool(found) or place is not None or after is not None
        return Page(found, place, explain_stack(stacks.facts(stack), busy))

    def of_resource(self, stack: Row[Any], name: str, depth: int = 0) -> list[ExplainedResource]:
        """Of the resource and leftovers of this name; none when they are at rest."""
        number = shard_of(name, stack.shards)
        found = []
        for each in self._shard(stack, number):
            if each.name == name:
                found.append(self._told(stack, number, (), each))
                self._below(each, found, (name,), progress.STACKS_MAX, depth)
        return found

    def outlook(self, stack: Row[Any], wanted: int, depth: int = 0) -> Outlook:
        """wanted — how many resources should exist by the newest revision."""
        below = progress.below(self._tx, stack.id, depth)
        mine = progress.counted(self._tx, [stack.id])
        planned = max(mine.planned, wanted)
        left = mine.planned - mine.done + (planned - mine.planned if mine.unsettled else 0)
        if below:
            nested = progress.counted(self._tx, [each.id for each in below])
            planned, left = planned + nested.planned, left + nested.planned - nested.done
        changed, made = self._to_come(stack, {each.id for each in below or ()})
        planned, left = planned + made, left + changed + made
        tree = {stack.id, *(each.id for each in below or ())}
        count = None if below is None else 1 + len(below)
        rate, took = self._pace(stack, tree)
        chain = self._chain(stack, took)
        moves = stack.status == Status.IN_PROGRESS
        estimate = time_left(chain, left, rate) if moves else None
        unseen = progress.unseen(self._tx, stack.id)
        return Outlook(planned, planned - left, count, rate, chain, estimate, unseen)

    # -- one shard ---------------------------------------------------------------------------------------------------

    def _shard(self, stack: Row[Any], number: int) -> list[Explanation]:
        key = (stack.id, number)
        if key not in self._known:
            loaded = load(self._tx, self._definitions, stack.id, number, self._now, self._share, self._timeout_s)
            world = loaded.world
            self._left -= max(len(world.rows), len(world.definitions), 1)
            self._known[key] = explain(world, self._standing(stack, loaded.shard), self._now)
        return self._known[key]

    def _standing(self, stack: Row[Any], shard: Row[Any]) -> ShardStatus:
        late = shard.wake_at is not None and shard.wake_at < self._now - PATIENCE_S
        return ShardStatus(
            stack.updated_at or stack.created_at,
            shard.wake_at,
            shard.lease_until > self._now,
            shard.reason,
            not late or progress.manned(self._tx, self._now),
            shard.observe_at,
        )

    # -- the pages ---------------------------------------------------------------------------------------------------

    def _pages(
        self,
        stack: Row[Any],
        found: list[ExplainedResource],
        path: tuple[str, ...],
        limit: int,
        after: Place | None,
        depth: int,
    ) -> Place | None:
        """Add explanations up to so many in all. Gives where to go on, None after the last one."""
        begin = after or (0, BEFORE_ALL, "")
        for turn, shard in enumerate(progress.moving(self._tx, stack, self._now, begin[0], SHARDS_MAX + 1)):
            passed = max(begin, (shard.number, BEFORE_ALL, ""))
            if turn == SHARDS_MAX or self._left <= 0:
                return passed
            for each in self._shard(stack, shard.number):
                place = (shard.number, each.rank, each.node)
                if place <= begin:
                    continue
                if len(found) >= limit:
                    return passed
                found.append(self._told(stack, shard.number, path, each))
                self._below(each, found, (*path, each.name), limit, depth)
                passed = place
        return None

    def _below(
        self, each: Explanation, found: list[ExplainedResource], path: tuple[str, ...], limit: int, depth: int
    ) -> None:
        child = self._child(each) if depth > 0 else None
        if child is not None:
            self._pages(child, found, path, limit, None, depth - 1)

    def _inside(self, stack: Row[Any], found: list[ExplainedResource], limit: int, depth: int) -> None:
        below = progress.below(self._tx, stack.id, depth) or []
        untold = progress.unrested(self._tx, [each.id for each in below]) - {each.stack.id for each in found}
        paths: dict[str, tuple[str, ...]] = {stack.id: ()}
        for each in below:
            paths[each.id] = (*paths[each.parent_id], each.parent_name)
            row = stacks.get(self._tx, each.id) if each.id in untold and len(found) < limit else None
            if row is not None:
                self._pages(row, found, paths[each.id], limit, None, 0)

    def _told(self, stack: Row[Any], number: int, path: tuple[str, ...], each: Explanation) -> ExplainedResource:
        child = self._child(each)
        shown = with_pause(each, stacks.facts(child)) if child is not None else each
        return ExplainedResource((*path, each.name), stack, shown, child, self._cause(stack, number, path, each))

    def _child(self, each: Explanation) -> Row[Any] | None:
        """The live stack that is its reality."""
        if kind_of(each.type) != STACK or not each.handle:
            return None
        if each.handle not in self._children:
            row = stacks.get(self._tx, each.handle)
            self._children[each.handle] = row if row is not None and row.deleted_at is None else None
        return self._children[each.handle]

    def _cause(self, stack: Row[Any], number: int, path: tuple[str, ...], each: Explanation) -> Cause | None:
        """Follow the waiting to its end, through nested stacks as far as the budget reaches."""
        found = self._by_node(stack, number).get(each.cause, each)
        child = self._child(found)
        while child is not None and self._left > 0 and len(path) <= DEPTH_MAX:
            inner = self._first(child)
            if inner is None:
                found = with_pause(found, stacks.facts(child))
                break
            path, found = (*path, found.name), inner
            child = self._child(found)
        return None if found.node == each.node and found.key == each.key else Cause((*path, found.name), found)

    def _by_node(self, stack: Row[Any], number: int) -> Mapping[str, Explanation]:
        return {each.node: each for each in self._known[stack.id, number]}

    def _first(self, stack: Row[Any]) -> Explanation | None:
        """What a stack that is not at rest waits for before all else."""
        for shard in progress.moving(self._tx, stack, self._now, 0, 1):
            for each in self._shard(stack, shard.number):
                return each
        return None

    # -- groups that change in batches -------------------------------------------------------------------------------

    def _to_come(self, stack: Row[Any], below: set[str]) -> tuple[int, int]:
        """Members that are still to be changed and still to be made, beside those that their shards tell of: of the
        stack, and of those below it that were looked at."""
        known = (child for child in self._children.values() if child is not None and child.id in below)
        changed = made = 0
        for each in (stack, *known):
            group = self._group(each)
            if "rollout" not in group:
                continue
            later, new = rolling_update.to_come(group)
            changed += later - self._counted_already(each.id, group)
            made += new
            if each is not stack:  # of the stack itself it is known how many members there are to be
                made += max(0, group["count"] - progress.counted(self._tx, [each.id]).planned)
        return changed, made

    def _counted_already(self, stack_id: str, group: Group) -> int:
        """Members of later batches of which their shards tell, too, that they are not done. So it is before the first
        pass at a new revision, when nothing counts as done."""
        found = 0
        for shard in progress.unfinished(self._tx, stack_id):
            found += max(0, rolling_update.changed_later(group, *numbers_of(shard.number)) - shard.done)
        return found

    def _pauses_s(self, stack: Row[Any]) -> float:
        """The pauses that are still to be made, at least."""
        group = self._group(stack)
        if not group.get("rollout"):
            return 0.0
        pause_s = float(group["rollout"]["pause_time"])
        batches = -(-sum(rolling_update.to_come(group)) // int(group["rollout"]["max_batch_size"]))
        if stack.step_at is None:
            return batches * pause_s
        return max(0.0, float(stack.step_at) - self._now) + max(0, batches - 1) * pause_s

    def _group(self, stack: Row[Any]) -> Group:
        """What its newest revision says, of a group that is in progress; else {}."""
        if stack.parent_id is None or stack.status != Status.IN_PROGRESS:
            return {}
        return stacks.group_of(self._tx, stack.id, stack.revision) or {}

    # -- how long ----------------------------------------------------------------------------------------------------

    def _pace(self, stack: Row[Any], tree: set[str]) -> tuple[float | None, Took]:
        """Resources a second that came to rest lately, and how long such things took: here, or else in the project."""
        mine = progress.happened(self._tx, stack.id)
        around = progress.happened_in(self._tx, stack.project)
        took = {**medians(each for _, each in around), **medians(mine)}
        sample = mine if len(tree) == 1 else [each for stack_id, each in around if stack_id in tree]
        begun_at = stack.updated_at or stack.created_at
        done = [each.at for each in sample if each.status == Status.COMPLETE and each.at >= begun_at]
        if not done:
            return None, took
        full = len(mine) >= progress.EVENTS_MAX if len(tree) == 1 else len(around) >= progress.PROJECT_EVENTS_MAX
        since = max(begun_at, done[0]) if full else begun_at
        return (len(done) / (self._now - since) if self._now > since else None), took

    def _chain(self, stack: Row[Any], took: Took, depth: int = DEPTH_MAX) -> Chain:
        """The critical path through what was looked at of a stack."""
        unfinished = [each for (stack_id, _), told in self._known.items() if stack_id == stack.id for each in told]
        inside = {}
        for each in unfinished:
            child = self._child(each) if depth else None
            if child is None:
                continue
            seconds, pauses_s = self._chain(child, took, depth - 1).seconds, self._pauses_s(child)
            if seconds is not None or pauses_s:
                inside[each.node] = (seconds or 0.0) + pauses_s
        return critical_path(unfinished, took, self._now, inside)
