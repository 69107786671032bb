"""Explaining why stored stacks do not move, by asking the planner; nothing is owned or stored (CV19).

A worker would ask the cloud; here the stored observations must do. The cost of one answer is bounded: hardly more than
`ROWS_MAX` rows are read, and the answer says where the next page begins.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from homeostat.convergence.absences import awaited, beside
from homeostat.convergence.stages.loading import load_world
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.members import numbers_of, shard_of
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition, reports_of
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Status
from homeostat.model.waiting import Waiting
from homeostat.model.world import HEAL_SHARE
from homeostat.planner.policies import rolling_update
from homeostat.planner.report.estimate import Chain, Durations, Estimate, critical_path, medians, time_left
from homeostat.planner.report.explain import PATIENCE_S, Explanation, ShardStatus, explain, explain_stack, with_pause
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store.schema.rows import ShardRow, StackRow
from homeostat.store.shards.away import NO_SHARD, unrest_of
from homeostat.store.stacks import progress, revisions, stacks
from homeostat.store.stacks.progress import Unseen

ROWS_MAX = 1500
"""Resources read for one answer; the shard at which this is exceeded is still read to its end."""
SHARDS_MAX = 50
"""Shards visited for one answer, even where they have nothing to explain."""
DEPTH_MAX = 50
"""Levels of nested stacks that are followed to the cause of waiting: more than any service allows."""

Place = tuple[int, int, str]
"""Place of an explanation among those of its stack: shard, rank, node. Pages continue after one."""
FIRST_RANK = -1
"""Rank that comes before every explanation of a shard."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The end of a chain of waiting, perhaps in a nested stack.

    Attributes:
        path: Names of the resources from the outermost stack down to it.
        explanation: Why it is not at rest itself.
    """

    path: tuple[str, ...]
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class ExplainedResource:
    """A resource that is not at rest, and why.

    Attributes:
        path: Names of the resources from the outermost stack down to it.
        stack: Row of its stack.
        explanation: Why it is not at rest.
        nested: Row of the nested stack that is its thing, if there is one.
        cause: What it waits for in the end; None where that is itself.
    """

    path: tuple[str, ...]
    stack: StackRow
    explanation: Explanation
    nested: StackRow | None
    cause: Cause | None


@dataclass(frozen=True, slots=True)
class Page:
    """One page of explanations.

    Attributes:
        explanations: The explanations.
        after: Place of the last one that was looked at; None where there are no more.
        waiting: What the stack itself waits for, apart from its resources.
    """

    explanations: Sequence[ExplainedResource]
    after: Place | None
    waiting: Waiting | None = None


@dataclass(frozen=True, slots=True)
class StackProgress:
    """Progress of a stack, and the time that it will still take.

    Attributes:
        planned: Resources and leftovers to bring to rest, those of the counted nested stacks included.
        done: How many of them are at rest.
        stacks: Number of stacks counted, with this one; None where there are too many nested ones to be counted.
        rate: Resources a second that came to rest lately; None where none did.
        chain: The resources that take longest one after the other.
        estimate: Time left, while an action is in progress and where anything is known of it.
        unseen: Why the clouds could not be looked at; None where they could.
    """

    planned: int
    done: int
    stacks: int | None
    rate: float | None
    chain: Chain
    estimate: Estimate | None
    unseen: Unseen | None


class Explainer:
    """Builder of one answer about a stack. Reads in one transaction, and loads each shard at most once."""

    def __init__(
        self,
        tx: Connection,
        definitions: DesiredGraphs,
        now: float,
        share: float = HEAL_SHARE,
        timeout_s: float = math.inf,
    ) -> None:
        """Begin an answer.

        Args:
            tx: A consistent read.
            definitions: Cache of compiled graphs.
            now: The time.
            share: As in `loading.load_world`.
            timeout_s: As in `loading.load_world`.
        """
        self._share = share
        self._timeout_s = timeout_s
        self._tx = tx
        self._definitions = definitions
        self._now = now
        self._rows_left = ROWS_MAX
        self._explanations: dict[tuple[str, int], list[Explanation]] = {}
        self._nested_stacks: dict[str, StackRow | None] = {}

    def page(self, stack: StackRow, limit: int, after: Place | None = None, depth: int = 0) -> Page:
        """Return at most `limit` explanations in the order of shards, causes before what follows from them.

        Each is followed by the first ones of its nested stack, down to `depth` levels. Last come those of nested
        stacks whose resource is at rest as seen from above, while something in them waits (healing, for example).

        Args:
            stack: Row of the stack.
            limit: Number of explanations.
            after: Place at which the page before ended; None for the first page.
            depth: Levels of nested stacks.
        """
        found: list[ExplainedResource] = []
        place = self._collect(stack, found, (), limit, after, depth)
        if place is None and after is None:
            self._collect_nested(stack, found, limit, depth)
        busy = bool(found) or place is not None or after is not None
        return Page(found, place, explain_stack(stacks.facts(stack), busy, self._away(stack), asks=self._asks(stack)))

    def of_resource(self, stack: StackRow, name: str, depth: int = 0) -> list[ExplainedResource]:
        """Return the explanations of the resource and the leftovers of this name; none when they are at rest."""
        number = shard_of(name, stack.shards)
        found = []
        for each in self._shard(stack, number):
            if each.name == name:
                found.append(self._explained(stack, number, (), each))
                self._collect_below(each, found, (name,), progress.STACKS_MAX, depth)
        return found

    def progress_of(self, stack: StackRow, wanted: int, depth: int = 0) -> StackProgress:
        """Return how far a stack has come, and how long it will take.

        Args:
            stack: Row of the stack.
            wanted: Number of resources that should exist by the newest revision.
            depth: Levels of nested stacks to count.
        """
        below = progress.nested_stacks(self._tx, stack.id, depth)
        counts = progress.counted(self._tx, [stack.id])
        # Before the first pass over a new revision the shards do not know yet how many more it has.
        planned = max(counts.planned, wanted)
        left = counts.planned - counts.done + (planned - counts.planned if counts.unsettled else 0)
        if below:
            nested = progress.counted(self._tx, [each.id for each in below])
            planned, left = planned + nested.planned, left + nested.planned - nested.done
        changed, made = self._later_members(stack, {each.id for each in below or ()})
        planned, left = planned + made, left + changed + made
        tree = {stack.id, *(each.id for each in below or ())}
        count = None if below is None else 1 + len(below)
        rate, took = self._rate(stack, tree)
        chain = self._chain(stack, took)
        moves = stack.status == Status.IN_PROGRESS
        estimate = time_left(chain, left, rate) if moves else None
        unseen = progress.unseen(self._tx, stack.id)
        return StackProgress(planned, planned - left, count, rate, chain, estimate, unseen)

    # -- one shard ---------------------------------------------------------------------------------------------------

    def _shard(self, stack: StackRow, number: int) -> list[Explanation]:
        key = (stack.id, number)
        if key not in self._explanations:
            loaded = load_world(self._tx, self._definitions, stack.id, number, self._now, self._share, self._timeout_s)
            world = loaded.world
            self._rows_left -= max(len(world.rows), len(world.definitions), 1)
            self._explanations[key] = explain(world, self._shard_status(stack, loaded.shard), self._now)
        return self._explanations[key]

    def _shard_status(self, stack: StackRow, shard: ShardRow) -> ShardStatus:
        # Whether any worker is alive is asked only where that would explain something: a shard is long overdue.
        late = shard.wake_at is not None and shard.wake_at < self._now - PATIENCE_S
        return ShardStatus(
            stack.updated_at or stack.created_at,
            shard.wake_at,
            shard.lease_until > self._now,
            shard.reason,
            not late or progress.has_workers(self._tx, self._now),
            shard.observe_at,
        )

    # -- the pages ---------------------------------------------------------------------------------------------------

    def _collect(
        self,
        stack: StackRow,
        found: list[ExplainedResource],
        path: tuple[str, ...],
        limit: int,
        after: Place | None,
        depth: int,
    ) -> Place | None:
        """Add explanations to `found`, up to `limit` in all.

        Returns:
            The place after which the next page begins; None after the last explanation.
        """
        begin = after or (0, FIRST_RANK, "")
        # One shard more than may be visited: its presence says that there is another page.
        for turn, shard in enumerate(progress.shards_to_explain(self._tx, stack, self._now, begin[0], SHARDS_MAX + 1)):
            passed = max(begin, (shard.number, FIRST_RANK, ""))
            if turn == SHARDS_MAX or self._rows_left <= 0:
                return passed
            for each in self._shard(stack, shard.number):
                place = (shard.number, each.rank, each.node)
                if place <= begin:
                    continue
                if len(found) >= limit:
                    return passed
                found.append(self._explained(stack, shard.number, path, each))
                self._collect_below(each, found, (*path, each.name), limit, depth)
                passed = place
        return None

    def _collect_below(
        self, each: Explanation, found: list[ExplainedResource], path: tuple[str, ...], limit: int, depth: int
    ) -> None:
        nested = self._nested(each) if depth > 0 else None
        if nested is not None:
            self._collect(nested, found, path, limit, None, depth - 1)

    def _collect_nested(self, stack: StackRow, found: list[ExplainedResource], limit: int, depth: int) -> None:
        """Add explanations of nested stacks that are not at rest though the resources above them are."""
        below = progress.nested_stacks(self._tx, stack.id, depth) or []
        ids = [each.id for each in below]
        unrest = progress.unfinished_stacks(self._tx, ids) | progress.stacks_left_alone(self._tx, ids)
        missing = unrest - {each.stack.id for each in found}
        paths: dict[str, tuple[str, ...]] = {stack.id: ()}
        for each in below:
            paths[each.id] = (*paths[each.parent_id], each.parent_name)
            row = stacks.get(self._tx, each.id) if each.id in missing and len(found) < limit else None
            if row is not None:
                self._collect(row, found, paths[each.id], limit, None, 0)

    def _explained(self, stack: StackRow, number: int, path: tuple[str, ...], each: Explanation) -> ExplainedResource:
        nested = self._nested(each)
        shown = self._paused(each, nested) if nested is not None else each
        return ExplainedResource((*path, each.name), stack, shown, nested, self._cause(stack, number, path, each))

    def _nested(self, each: Explanation) -> StackRow | None:
        """Return the row of the live nested stack that is the thing of a resource, None where it is no nested stack."""
        if kind_of(each.type) != STACK or not each.handle:
            return None
        if each.handle not in self._nested_stacks:
            row = stacks.get(self._tx, each.handle)
            self._nested_stacks[each.handle] = row if row is not None and row.deleted_at is None else None
        return self._nested_stacks[each.handle]

    def _cause(self, stack: StackRow, number: int, path: tuple[str, ...], each: Explanation) -> Cause | None:
        """Follow the waiting to its end, through nested stacks as far as the budget reaches."""
        found = self._by_node(stack, number).get(each.cause, each)
        nested = self._nested(found)
        while nested is not None and self._rows_left > 0 and len(path) <= DEPTH_MAX:
            inner = self._first(nested)
            if inner is None:
                found = self._paused(found, nested)
                break
            path, found = (*path, found.name), inner
            nested = self._nested(found)
        return None if found.node == each.node and found.key == each.key else Cause((*path, found.name), found)

    def _paused(self, each: Explanation, nested: StackRow) -> Explanation:
        return with_pause(each, stacks.facts(nested), self._away(nested), asks=self._asks(nested))

    def _by_node(self, stack: StackRow, number: int) -> Mapping[str, Explanation]:
        return {each.node: each for each in self._explanations[stack.id, number]}

    def _first(self, stack: StackRow) -> Explanation | None:
        """Return the first explanation of a stack: what it waits for before all else; None where it is at rest."""
        for shard in progress.shards_to_explain(self._tx, stack, self._now, 0, 1):
            for each in self._shard(stack, shard.number):
                return each
        return None

    def _away(self, stack: StackRow) -> str:
        """Return for which of its members the update of a group waits; "" if for none."""
        group = None if stack.action in NON_CHANGING_ACTIONS else self._group(stack)
        if group is None or rolling_update.is_over(group):
            return ""
        facts = stacks.facts(stack)
        asked = reports_of(group)
        pauses = asked is None or asked.count is not None or bool(awaited(self._tx, facts, group))
        if pauses and stack.step_at is not None and stack.step_at > self._now:
            return ""
        away = beside({}, self._tx, facts, NO_SHARD, unrest_of(self._tx, stack.id), group)
        # A batch that is under way waits for nobody.
        return "" if Absence.CHANGED in away.values() else rolling_update.waits(group, away)

    # -- groups that change in batches -------------------------------------------------------------------------------

    def _later_members(self, stack: StackRow, below: set[str]) -> tuple[int, int]:
        """Count the members that later batches of rolling updates will change and create.

        These are in addition to what the counts of the shards say, which know only the batch under way. Counted are the
        stack and those nested stacks in `below` that this answer has looked at.

        Returns:
            Members still to be changed, and members still to be created.
        """
        known = (nested for nested in self._nested_stacks.values() if nested is not None and nested.id in below)
        changed = made = 0
        for each in (stack, *known):
            group = self._group(each)
            if group is None or group.series is None:
                continue
            later, new = rolling_update.remaining(group)
            changed += later - self._already_counted(each.id, group)
            made += new
            # Of the stack itself `progress_of` knows from `wanted` how many members there should be.
            if each is not stack:
                made += max(0, group.count - progress.counted(self._tx, [each.id]).planned)
        return changed, made

    def _already_counted(self, stack_id: str, group: GroupDefinition) -> int:
        """Count the members of later batches that the counts of their shards contain already.

        That is so before the first pass over a new revision, when nothing counts as done.
        """
        found = 0
        for shard in progress.unfinished(self._tx, stack_id):
            found += max(0, rolling_update.changed_later(group, *numbers_of(shard.number)) - shard.done)
        return found

    def _asks(self, stack: StackRow) -> bool:
        """Return whether the members of a group in progress have to report before it goes on."""
        return stack.step_at is not None and reports_of(self._group(stack)) is not None

    def _pauses_s(self, stack: StackRow) -> float:
        """Return the seconds that the remaining pauses between batches take at least; reports may take no time."""
        group = self._group(stack)
        if group is None or group.series is None or group.series.reports is not None:
            return 0.0
        pause_s = float(group.series.pause_time)
        batches = -(-sum(rolling_update.remaining(group)) // group.series.max_batch_size)
        if stack.step_at is None:
            return batches * pause_s
        return max(0.0, float(stack.step_at) - self._now) + max(0, batches - 1) * pause_s

    def _group(self, stack: StackRow) -> GroupDefinition | None:
        """Return the newest revision of a group in progress; None for any other stack."""
        if stack.parent_id is None or stack.status != Status.IN_PROGRESS:
            return None
        return revisions.group_of(self._tx, stack.id, stack.revision)

    # -- how long ----------------------------------------------------------------------------------------------------

    def _rate(self, stack: StackRow, tree: set[str]) -> tuple[float | None, Durations]:
        """Return the resources a second that came to rest lately, and how long actions on each type took.

        The times are those of this stack, or else of the project; the rate is None where nothing came to rest.
        """
        counts = progress.resource_events(self._tx, stack.id)
        around = progress.project_events(self._tx, stack.project)
        took = {**medians(each for _, each in around), **medians(counts)}
        sample = counts if len(tree) == 1 else [each for stack_id, each in around if stack_id in tree]
        begun_at = stack.updated_at or stack.created_at
        done = [each.at for each in sample if each.status == Status.COMPLETE and each.at >= begun_at]
        if not done:
            return None, took
        # Only the newest events are read. Where older ones are missing, the rate counts from the first one read.
        full = len(counts) >= progress.EVENTS_MAX if len(tree) == 1 else len(around) >= progress.PROJECT_EVENTS_MAX
        since = max(begun_at, done[0]) if full else begun_at
        return (len(done) / (self._now - since) if self._now > since else None), took

    def _chain(self, stack: StackRow, took: Durations, depth: int = DEPTH_MAX) -> Chain:
        """Return the critical path through what this answer has looked at of a stack."""
        unfinished = [
            each
            for (stack_id, _), explanations in self._explanations.items()
            if stack_id == stack.id
            for each in explanations
        ]
        inside = {}
        for each in unfinished:
            nested = self._nested(each) if depth else None
            if nested is None:
                continue
            seconds, pauses_s = self._chain(nested, took, depth - 1).seconds, self._pauses_s(nested)
            if seconds is not None or pauses_s:
                inside[each.node] = (seconds or 0.0) + pauses_s
        return critical_path(unfinished, took, self._now, inside)
