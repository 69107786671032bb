"""Explaining why stored stacks do not move, by asking the planner; nothing is owned or stored (CV19).

Unlike a worker, an explanation uses the stored observations only. The cost of one answer is bounded: hardly more than
`ROWS_MAX` rows are read, and the answer says where the next page begins.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.convergence.facts.absences import absences_with, awaited
from homeostat.convergence.stages.loading import load_world
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.members import numbers_of, shard_of
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition, reports_of
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.model.status import Status
from homeostat.model.waiting import Waiting
from homeostat.model.world import HEAL_SHARE
from homeostat.planner.members import rolling_update
from homeostat.planner.report.estimate import Chain, Durations, Estimate, critical_path, medians, time_left
from homeostat.planner.report.explain import PATIENCE_S, Explanation, ShardStatus, explain, explain_stack, with_pause
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ShardRow, StackRow
from homeostat.store.shards.away import NO_SHARD, unrest_of
from homeostat.store.stacks import progress, revisions, stacks
from homeostat.store.stacks.progress import Unseen

ROWS_MAX = 1500
"""Resources read for one answer; the shard at which this is exceeded is still read to its end."""
SHARDS_MAX = 50
"""Shards visited for one answer, even if they have nothing to explain."""
DEPTH_MAX = 50
"""Levels of nested stacks that are followed to the cause of waiting: more than any service allows."""

Place = tuple[int, int, str]
"""Place of an explanation within its stack: shard, rank, node. The next page continues after it."""
FIRST_RANK = -1
"""Rank before every explanation of a shard."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The end of a chain of waiting, perhaps in a nested stack.

    Attributes:
        path: Names of the resources from the outermost stack down to the cause.
        explanation: Why the cause is not at rest.
    """

    path: tuple[str, ...]
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class ExplainedResource:
    """A resource that is not at rest, and why.

    Attributes:
        path: Names of the resources from the outermost stack down.
        stack: Row of its stack.
        explanation: Why the resource is not at rest.
        nested: Row of its nested stack, if any.
        cause: The end of its chain of waiting; None if that is the resource itself.
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
        after: Place of the last explanation visited; None if there are no more.
        waiting: The wait of the stack itself, apart from its resources.
    """

    explanations: Sequence[ExplainedResource]
    after: Place | None
    waiting: Waiting | None = None


@dataclass(frozen=True, slots=True)
class StackProgress:
    """Progress of a stack, and its remaining time.

    Attributes:
        planned: Resources and leftovers to bring to rest, including the counted nested stacks.
        done: How many of them are at rest.
        stacks: Number of stacks counted, including this one; None if the nested stacks are too many to be counted.
        rate: Resources a second that came to rest lately; None if none did.
        chain: The critical path: the slowest chain of resources that depend on each other.
        estimate: Time left, if an action is in progress and an estimate is possible.
        unseen: Why the clouds could not be observed; None if they could.
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
        tx: Transaction,
        definitions: DesiredGraphs,
        now: float,
        share: float = HEAL_SHARE,
        timeout_s: float = math.inf,
    ) -> None:
        """Begin an answer.

        Args:
            tx: A consistent read.
            definitions: Cache of compiled graphs.
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
        """Return at most `limit` explanations in the order of shards, causes before their effects.

        After each explanation come the first explanations of the resource's nested stack, down to `depth` levels. Last
        come nested stacks that contain waiting resources, such as healing ones, while their own resource is at rest.

        Args:
            after: End of the previous page; None for the first page.
            depth: Levels of nested stacks.
        """
        explained: list[ExplainedResource] = []
        place = self._collect(stack, explained, (), limit, after, depth)
        if place is None and after is None:
            self._collect_nested(stack, explained, limit, depth)
        busy = bool(explained) or place is not None or after is not None
        return Page(
            explained, place, explain_stack(stacks.facts(stack), busy, self._away(stack), asks=self._asks(stack))
        )

    def of_resource(self, stack: StackRow, name: str, depth: int = 0) -> list[ExplainedResource]:
        """Return the explanations of the resource and the leftovers of this name; none if they are at rest."""
        number = shard_of(name, stack.shards)
        explained = []
        for explanation in self._shard(stack, number):
            if explanation.name == name:
                explained.append(self._explained(stack, number, (), explanation))
                self._collect_below(explanation, explained, (name,), progress.STACKS_MAX, depth)
        return explained

    def progress_of(self, stack: StackRow, wanted: int, depth: int = 0) -> StackProgress:
        """Return the progress and the remaining time of a stack.

        Args:
            wanted: Number of resources of the newest revision.
            depth: Levels of nested stacks to count.
        """
        below = progress.nested_stacks(self._tx, stack.id, depth)
        counts = progress.counted(self._tx, [stack.id])
        # Before the first pass over a new revision the shards do not count its additional resources yet.
        planned = max(counts.planned, wanted)
        left = counts.planned - counts.done + (planned - counts.planned if counts.unsettled else 0)
        if below:
            nested = progress.counted(self._tx, [child.id for child in below])
            planned, left = planned + nested.planned, left + nested.planned - nested.done
        changed, created = self._later_members(stack, {child.id for child in below or ()})
        planned, left = planned + created, left + changed + created
        tree = {stack.id, *(child.id for child in below or ())}
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
        # Only a shard that is long overdue needs the query whether any worker is alive.
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
        explained: list[ExplainedResource],
        path: tuple[str, ...],
        limit: int,
        after: Place | None,
        depth: int,
    ) -> Place | None:
        """Add explanations to `explained`, up to `limit` in all.

        Returns:
            The place after which the next page begins; None after the last explanation.
        """
        begin = after or (0, FIRST_RANK, "")
        # One shard more than may be visited: if it exists, there is another page.
        for turn, shard in enumerate(progress.shards_to_explain(self._tx, stack, self._now, begin[0], SHARDS_MAX + 1)):
            passed = max(begin, (shard.number, FIRST_RANK, ""))
            if turn == SHARDS_MAX or self._rows_left <= 0:
                return passed
            for explanation in self._shard(stack, shard.number):
                place = (shard.number, explanation.rank, explanation.node)
                if place <= begin:
                    continue
                if len(explained) >= limit:
                    return passed
                explained.append(self._explained(stack, shard.number, path, explanation))
                self._collect_below(explanation, explained, (*path, explanation.name), limit, depth)
                passed = place
        return None

    def _collect_below(
        self,
        explanation: Explanation,
        explained: list[ExplainedResource],
        path: tuple[str, ...],
        limit: int,
        depth: int,
    ) -> None:
        nested = self._nested(explanation) if depth > 0 else None
        if nested is not None:
            self._collect(nested, explained, path, limit, None, depth - 1)

    def _collect_nested(self, stack: StackRow, explained: list[ExplainedResource], limit: int, depth: int) -> None:
        """Add explanations of nested stacks that are not at rest although their own resource is."""
        below = progress.nested_stacks(self._tx, stack.id, depth) or []
        ids = [child.id for child in below]
        unrest = progress.unfinished_stacks(self._tx, ids) | progress.stacks_left_alone(self._tx, ids)
        missing = unrest - {item.stack.id for item in explained}
        paths: dict[str, tuple[str, ...]] = {stack.id: ()}
        for child in below:
            paths[child.id] = (*paths[child.parent_id], child.parent_name)
            row = stacks.get(self._tx, child.id) if child.id in missing and len(explained) < limit else None
            if row is not None:
                self._collect(row, explained, paths[child.id], limit, None, 0)

    def _explained(
        self, stack: StackRow, number: int, path: tuple[str, ...], explanation: Explanation
    ) -> ExplainedResource:
        nested = self._nested(explanation)
        presented = self._paused(explanation, nested) if nested is not None else explanation
        return ExplainedResource(
            (*path, explanation.name), stack, presented, nested, self._cause(stack, number, path, explanation)
        )

    def _nested(self, explanation: Explanation) -> StackRow | None:
        """Return the row of the live nested stack behind a resource; None if it is not a nested stack."""
        if kind_of(explanation.type) != STACK or not explanation.handle:
            return None
        if explanation.handle not in self._nested_stacks:
            row = stacks.get(self._tx, explanation.handle)
            self._nested_stacks[explanation.handle] = row if row is not None and row.deleted_at is None else None
        return self._nested_stacks[explanation.handle]

    def _cause(self, stack: StackRow, number: int, path: tuple[str, ...], explanation: Explanation) -> Cause | None:
        """Follow the waiting to its end, through nested stacks as far as the budget allows."""
        last = self._by_node(stack, number).get(explanation.cause, explanation)
        nested = self._nested(last)
        while nested is not None and self._rows_left > 0 and len(path) <= DEPTH_MAX:
            inner = self._first(nested)
            if inner is None:
                last = self._paused(last, nested)
                break
            path, last = (*path, last.name), inner
            nested = self._nested(last)
        return (
            None if last.node == explanation.node and last.key == explanation.key else Cause((*path, last.name), last)
        )

    def _paused(self, explanation: Explanation, nested: StackRow) -> Explanation:
        return with_pause(explanation, stacks.facts(nested), self._away(nested), asks=self._asks(nested))

    def _by_node(self, stack: StackRow, number: int) -> Mapping[str, Explanation]:
        return {explanation.node: explanation for explanation in self._explanations[stack.id, number]}

    def _first(self, stack: StackRow) -> Explanation | None:
        """Return the first explanation of a stack, on which further ones depend; None if the stack is at rest."""
        for shard in progress.shards_to_explain(self._tx, stack, self._now, 0, 1):
            for explanation in self._shard(stack, shard.number):
                return explanation
        return None

    def _away(self, stack: StackRow) -> str:
        """Return the members that the update of a group waits for; "" if none."""
        group = None if stack.action in NON_CHANGING_ACTIONS else self._group(stack)
        if group is None or rolling_update.is_over(group):
            return ""
        facts = stacks.facts(stack)
        asked = reports_of(group)
        pauses = asked is None or asked.count is not None or bool(awaited(self._tx, facts, group))
        if pauses and stack.step_at is not None and stack.step_at > self._now:
            return ""
        away = absences_with({}, self._tx, facts, NO_SHARD, unrest_of(self._tx, stack.id), group)
        # A batch in progress does not wait for absent members.
        return "" if Absence.CHANGED in away.values() else rolling_update.waits(group, away)

    # -- groups that change in batches -------------------------------------------------------------------------------

    def _later_members(self, stack: StackRow, below: set[str]) -> tuple[int, int]:
        """Count the members that later batches of rolling updates will change and create.

        The counts of the shards cover the current batch only, so these come in addition. Counted are the stack and the
        nested stacks in `below` that this answer has visited.

        Returns:
            Members still to be changed, and members still to be created.
        """
        known = (nested for nested in self._nested_stacks.values() if nested is not None and nested.id in below)
        changed = created = 0
        for member_stack in (stack, *known):
            group = self._group(member_stack)
            if group is None or group.series is None:
                continue
            later, new = rolling_update.remaining(group)
            changed += later - self._already_counted(member_stack.id, group)
            created += new
            # The number of members of the stack itself is known to `progress_of` from `wanted`.
            if member_stack is not stack:
                created += max(0, group.count - progress.counted(self._tx, [member_stack.id]).planned)
        return changed, created

    def _already_counted(self, stack_id: str, group: GroupDefinition) -> int:
        """Count the members of later batches that are already included in the counts of their shards.

        They are before the first pass over a new revision, when nothing counts as done.
        """
        count = 0
        for shard in progress.unfinished(self._tx, stack_id):
            count += max(0, rolling_update.changed_later(group, *numbers_of(shard.number)) - shard.done)
        return count

    def _asks(self, stack: StackRow) -> bool:
        """Return whether members of a group in progress have to report before the next batch."""
        return stack.step_at is not None and reports_of(self._group(stack)) is not None

    def _pauses_s(self, stack: StackRow) -> float:
        """Return the minimum of the remaining pauses between batches in seconds; 0 if batches wait for reports."""
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

        The times are those of this stack, or else of the project; the rate is None if nothing came to rest.
        """
        counts = progress.resource_events(self._tx, stack.id)
        around = progress.project_events(self._tx, stack.project)
        took = {**medians(event for _, event in around), **medians(counts)}
        sample = counts if len(tree) == 1 else [event for stack_id, event in around if stack_id in tree]
        begun_at = stack.updated_at or stack.created_at
        done = [event.at for event in sample if event.status == Status.COMPLETE and event.at >= begun_at]
        if not done:
            return None, took
        # Only the newest events are read. If older ones are missing, the rate counts from the first event read.
        full = len(counts) >= progress.EVENTS_MAX if len(tree) == 1 else len(around) >= progress.PROJECT_EVENTS_MAX
        since = max(begun_at, done[0]) if full else begun_at
        return (len(done) / (self._now - since) if self._now > since else None), took

    def _chain(self, stack: StackRow, took: Durations, depth: int = DEPTH_MAX) -> Chain:
        """Return the critical path through the visited part of a stack."""
        unfinished = [
            explanation
            for (stack_id, _), explanations in self._explanations.items()
            if stack_id == stack.id
            for explanation in explanations
        ]
        inside = {}
        for explanation in unfinished:
            nested = self._nested(explanation) if depth else None
            if nested is None:
                continue
            seconds, pauses_s = self._chain(nested, took, depth - 1).seconds, self._pauses_s(nested)
            if seconds is not None or pauses_s:
                inside[explanation.node] = (seconds or 0.0) + pauses_s
        return critical_path(unfinished, took, self._now, inside)
