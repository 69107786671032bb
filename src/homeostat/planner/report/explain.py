"""Explanations: why each resource and leftover of a shard is not at rest, and how the wait ends (CV19).

The planner itself decides: it returns the steps for now, the reasons to wait, and the steps for later. No step is
executed, and the world is useless afterwards.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

from homeostat.model.intent import adoption_of
from homeostat.model.observed import Condition
from homeostat.model.plan import Step, Verb
from homeostat.model.status import Action, Status
from homeostat.model.waiting import REASONS, Waiting, Why
from homeostat.model.world import StackFacts, World
from homeostat.planner import outcome
from homeostat.planner.actions import check
from homeostat.planner.frontier import Frontier
from homeostat.planner.graph import Node, leftover_node
from homeostat.planner.lifecycle.adopt import ADOPT
from homeostat.planner.lifecycle.deadlines import SEEN_TO_END
from homeostat.planner.report.rollouts import extent, outlook
from homeostat.planner.states import maintenance_state, unkept
from homeostat.planner.states.maintenance_state import wait_while_frozen
from homeostat.resources.registry import is_outside, type_of

LOOK, COMPARE = "look", "compare"
"""Next acts without a step: a look by an observer, and the comparison of a resource with its definition."""

EXAMINED_AGAIN = {Why.BRAKE, Why.BLIND, Why.BUDGET}
"""Reasons that time alone does not end: their `due_at` is only the time of the next examination."""
PATIENCE_S = 5.0
"""Seconds that a shard may be overdue before a missing worker becomes the reason."""

CONSEQUENCES = frozenset({Why.REQUIRES, Why.IN_USE, Why.PART, Why.LEAVING, Why.STACK_FAILED})
"""Reasons whose cause is another resource."""

LAST = 4
"""Rank of resources that are left alone."""
_NOT_HEALED = dict.fromkeys((Why.LEFT_ALONE, Why.LOCKED, Why.SUSPENDED), LAST)
_RANKS = {
    Why.FAILED: 0,
    Why.UNHEALTHY: 0,
    Why.BLIND: 0,
    Why.NEEDS_CONSENT: 0,
    Why.SET_ASIDE: 1,
    Why.NO_WORKER: 1,
    **_NOT_HEALED,
}
"""Reason -> rank, see `Explanation.rank`."""


def _word(step: Step) -> str:
    """Return the user's word for a step."""
    return ADOPT if step.row.action == Action.ADOPT else step.act.verb.value


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """Facts about a shard that are not in its world; times are in seconds since the epoch.

    Attributes:
        begun_at: Time of the request for its newest revision.
        wake_at: When the shard is due; None for no time.
        owned: Whether a worker owns the shard now.
        set_aside_for: The internal error for which the shard was set aside, or "".
        has_workers: Whether any worker is alive.
        observe_at: When its things are looked at next.
    """

    begun_at: float
    wake_at: float | None = None
    owned: bool = False
    set_aside_for: str = ""
    has_workers: bool = True
    observe_at: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reason why a resource or leftover is not at rest.

    Attributes:
        node: Its node, see `planner.frontier`.
        type: The implementing type.
        template_type: Type name in the template, see `model.desired.Definition`.
        key: Key of the row, as are handle, action and status; "" and INIT COMPLETE without a row.
        on: Names of the awaited resources.
        after: Nodes of the awaited resources.
        since: When the waiting began.
        due_at: When time alone would end the waiting.
        next: The next act (the word of a step, `look` or `compare`), or "" if unknown.
        next_at: Time of the next act, if known.
        fails_at: Time limit of the act in progress.
        blocks: Names of the resources that wait for this resource.
        cause: Node at the end of its chain of waiting.
        by: As in `Waiting`.
    """

    node: Node
    name: str
    type: str
    key: str
    handle: str
    action: str
    status: str
    why: Why
    on: tuple[str, ...]
    reason: str
    since: float | None
    due_at: float | None
    next: str
    next_at: float | None
    fails_at: float | None
    blocks: tuple[str, ...]
    after: tuple[Node, ...]
    cause: Node
    template_type: str = ""
    by: str = ""

    @property
    def shown_type(self) -> str:
        return self.template_type or self.type

    @property
    def leftover(self) -> bool:
        return self.node[0] == "/"

    @property
    def released_by(self) -> str:
        """Event that ends the waiting; after a failed lock only an unlock does, since a lock refuses updates."""
        why = Why.LOCKED if self.why == Why.FAILED and self.action == Action.LOCK else self.why
        return self.by or REASONS[why].released_by

    @property
    def rank(self) -> int:
        """Sort key, 0 to LAST: causes precede their consequences."""
        return _RANKS.get(self.why, 3 if self.why in CONSEQUENCES else 2)


def explain(world: World, shard: ShardStatus, now: float) -> list[Explanation]:
    """Explain all resources not at rest, or left alone in spite of differences; causes first, then by name."""
    return _Explainer(world, shard, now).explanations()


def explain_stack(stack: StackFacts, busy: bool, away: str = "", *, asks: bool = False) -> Waiting | None:
    """Return the wait of the stack itself, or None.

    Args:
        busy: Whether some of its resources are not at rest: then the stack waits for them.
        away: Which members the update of a group waits for, see `rolling_update.waits`; "" if none.
        asks: Whether the stack is a group whose members have to report at rest.
    """
    if stack.status != Status.IN_PROGRESS:
        return None
    if away:
        return Waiting(stack.name, Why.BUDGET, (), away)
    if stack.step_at is not None and asks:
        reason = "a batch of its members is done, and they have to report"
        return Waiting(stack.name, Why.REPORTS, (), reason, due_at=stack.step_at)
    if stack.step_at is not None:
        return Waiting(stack.name, Why.PAUSE, (), "a batch of its members is done", due_at=stack.step_at)
    return None if busy else Waiting(stack.name, Why.TURN, (), "its resources are at rest")


def with_pause(explanation: Explanation, child: StackFacts, away: str = "", *, asks: bool = False) -> Explanation:
    """Explain a resource by the pause or wait of its nested stack before the next batch, if there is one."""
    waiting = explain_stack(child, True, away, asks=asks)
    if waiting is None:
        return explanation
    following = Verb.UPDATE.value
    return replace(
        explanation,
        why=waiting.why,
        reason=waiting.reason,
        due_at=waiting.due_at,
        next=following,
        next_at=waiting.due_at,
    )


class RowBefore(NamedTuple):
    """A row before the planner's decisions, which change rows."""

    type: str
    key: str
    handle: str
    action: str
    status: str
    revision: int
    updated_at: float
    template_type: str
    is_to_be_adopted: bool


class _Explainer:
    def __init__(self, world: World, shard: ShardStatus, now: float) -> None:
        self._world = world
        self._shard = shard
        self._now = now
        self._rows = {
            key: RowBefore(
                row.type,
                row.key,
                row.handle,
                row.action,
                row.status,
                row.revision,
                row.updated_at,
                row.template_type or "",
                adoption_of(row.intent) is not None,
            )
            for key, row in world.rows.items()
        }
        self._frontier = frontier = Frontier(world, (f"next{number}" for number in count()))
        self._current = {name: row.key for name, row in frontier.current.items()}
        self._nodes = {*world.definitions, *map(leftover_node, frontier.leftovers)}
        # Before all reasons to wait: the steps move the frontier, and change its rows.
        self._steps = self._steps_now()
        # A rollout does not wait for the replacement of a handle that its members signal to.
        rolling = {node for node, waiting in frontier.waiting.items() if waiting.why is Why.ROLLOUT}
        unmet = frontier.unmet().items()
        self._unmet = {node: blockers for node, blockers in unmet if node in self._nodes and node not in rolling}
        self._waiting = self._waitings()
        self._after = self._edges()
        self._causes: dict[Node, Node] = {}

    def _steps_now(self) -> dict[Node, Step]:
        """Return the steps that would be taken now, by node."""
        frontier = self._frontier
        steps: dict[Node, Step] = {}
        for step in frontier.steps(self._now, len(self._nodes) + 1):
            key = step.row.key
            node = leftover_node(key) if key in frontier.leftovers else step.row.name
            # A settled node whose step changes only its row needs no explanation.
            quiet = frontier.is_settled(node) and not step.events
            if node in self._nodes and not quiet:
                steps[node] = step
        return steps

    # -- why ---------------------------------------------------------------------------------------------------------

    def _waitings(self) -> dict[Node, Waiting]:
        waitings = {
            node: self._examined(waiting) for node, waiting in self._frontier.waiting.items() if node in self._nodes
        }
        waitings |= {node: self._ready(node) for node in self._steps}
        waitings |= {node: self._blocked(node, blockers) for node, blockers in self._unmet.items()}
        left_alone = ((name, self._left_alone(name)) for name in self._current if name not in waitings)
        return waitings | {name: waiting for name, waiting in left_alone if waiting is not None}

    def _examined(self, waiting: Waiting) -> Waiting:
        """Complete a reason of the planner by facts outside its world."""
        row, world = self._rows.get(waiting.key), self._world
        if waiting.why in SEEN_TO_END and row is not None and is_outside(row.type) and world.blind:
            since = world.looked_at or waiting.since
            return replace(waiting, why=Why.UNSEEN, reason=world.blind, since=since, due_at=None)
        if waiting.why is Why.STACK_FAILED and waiting.since is None:
            return replace(waiting, since=self._failed_at)
        if waiting.why is Why.ROLLOUT:
            return self._rolling_out(waiting)
        if waiting.on:
            return replace(waiting, on=tuple(self._frontier.name(leftover_node(key)) for key in waiting.on))
        return waiting

    def _rolling_out(self, waiting: Waiting) -> Waiting:
        """Complete the wait for a rollout by its extent and outlook."""
        rollout = self._world.rollouts[waiting.key]
        result = outlook(rollout, self._now, frozen=self._world.stack.frozen)
        reason = f"{waiting.reason}; {extent(rollout)}" if rollout.step else waiting.reason
        return replace(waiting, reason=reason, due_at=result.due_at, by=result.released_by)

    @cached_property
    def _failed_at(self) -> float | None:
        """Time of the newest failure of this revision."""
        current_rows = (row for row in self._rows.values() if row.revision == self._world.stack.revision)
        return max((row.updated_at for row in current_rows if row.status == Status.FAILED), default=None)

    def _ready(self, node: Node) -> Waiting:
        """Explain a node that only waits for a worker."""
        shard, name = self._shard, self._frontier.name(node)
        due = shard.wake_at is not None and shard.wake_at <= self._now
        if shard.set_aside_for:
            row = self._row(node)
            since = row.updated_at if row is not None else shard.begun_at
            return Waiting(name, Why.SET_ASIDE, (), shard.set_aside_for, since, shard.wake_at)
        if shard.owned:
            return self._awaiting_answer(node, name) or Waiting(
                name, Why.TURN, (), "a worker has its shard now", shard.wake_at
            )
        if not due:
            return Waiting(name, Why.TURN, (), "its shard is not due yet", None, shard.wake_at)
        if not shard.has_workers and self._now - (shard.wake_at or 0.0) > PATIENCE_S:
            return Waiting(name, Why.NO_WORKER, (), "no worker is alive", shard.wake_at)
        return Waiting(name, Why.TURN, (), "its shard is due", shard.wake_at)

    def _awaiting_answer(self, node: Node, name: str) -> Waiting | None:
        """Explain a node by an unanswered request, which its row shows before the request is sent."""
        row = self._row(node)
        if row is None or row.status != Status.IN_PROGRESS or not is_outside(row.type):
            return None
        kind = type_of(row.type).kind
        reason = (
            f"a worker has sent the request ({row.action.lower()}) to the cloud ({kind}), and there is no answer yet"
        )
        return Waiting(name, Why.ANSWER, (), reason, row.updated_at)

    def _blocked(self, node: Node, blockers: Sequence[Node]) -> Waiting:
        on = tuple(sorted({self._frontier.name(blocker) for blocker in blockers}))
        of_leftover = Why.PART if self._frontier.is_deleted_with_whole(node) else Why.IN_USE
        why = of_leftover if node[0] == "/" else Why.REQUIRES
        return Waiting(self._frontier.name(node), why, on, since=self._shard.begun_at)

    def _left_alone(self, name: str) -> Waiting | None:
        """Explain a resource at rest that differs from its desired state, or is changing by itself."""
        row = self._world.rows[self._current[name]]
        if row.status != Status.COMPLETE or not row.handle or row.key not in self._world.seen:
            return None
        # The state of an external thing is up to its owner.
        if row.external_id is not None:
            return None
        verdict = maintenance_state.at_rest(self._world, row, self._now)
        seen_at = self._world.seen[row.key].observation.seen_at
        if verdict.condition is Condition.PENDING:
            return Waiting(name, Why.BUILDING, (), verdict.reason, seen_at, verdict.due_at, row.key)
        if not outcome.unfit(verdict):
            return None
        if self._world.stack.frozen:
            holding = wait_while_frozen(self._world.stack, name, row.key, seen_at)
            return replace(holding, reason=f"{verdict.reason}; {holding.reason}")
        # Only drift waits for reports: a missing thing is healed at once.
        waits = self._frontier.waits_for_reports(row) if verdict.condition is Condition.DRIFTED else ""
        if waits:
            return Waiting(name, Why.BUDGET, (), f"{verdict.reason}; {waits}", seen_at, key=row.key)
        unkept_names = unkept.of(self._world, row, verdict)
        if unkept_names and len(unkept_names) == len(verdict.drifted):
            return Waiting(name, Why.LEFT_ALONE, (), check.left_alone(row) or verdict.reason, seen_at, key=row.key)
        off = "" if self._world.stack.converges(name) else "; convergence is switched off"
        if not off and self._world.definitions[name].restricted:
            off = "; its environment restricts what would bring it back"
        if not off and self._world.brake.leaves_alone(name):
            off = "; a rolling update has suspended healing until its end"
        return Waiting(name, Why.LEFT_ALONE, (), f"{verdict.reason}{off}", seen_at, key=row.key)

    # -- who waits for whom ------------------------------------------------------------------------------------------

    def _edges(self) -> Mapping[Node, tuple[Node, ...]]:
        """Return the awaited nodes of each node not at rest."""
        after = {node: tuple(sorted(blockers)) for node, blockers in self._unmet.items()}
        for node, waiting in self._frontier.waiting.items():
            if waiting.why is Why.LEAVING:
                after[node] = tuple(leftover_node(key) for key in waiting.on)
            # Required resources at rest whose things are gone: see `planner.states.absence`.
            elif waiting.why is Why.REQUIRES:
                after[node] = tuple(self._frontier.name(leftover_node(key)) for key in waiting.on)
        return after

    def _cause(self, node: Node) -> Node:
        """Return the end of a node's chain of waiting, preferring failed nodes to nodes in progress."""
        path: dict[Node, None] = {}
        while node in self._after and node not in path and node not in self._causes:
            path[node] = None
            node = min(self._after[node], key=self._severity)
        cause = self._causes.get(node, node)
        # All nodes on the path share the cause, so a chain of a thousand nodes is walked once.
        self._causes.update(dict.fromkeys(path, cause))
        return cause

    def _severity(self, node: Node) -> tuple[bool, Node]:
        waiting = self._waiting.get(node)
        return waiting is None or waiting.why not in (Why.FAILED, Why.UNHEALTHY), node

    # -- next acts ---------------------------------------------------------------------------------------------------

    def _next(self, node: Node, waiting: Waiting) -> tuple[str, float | None]:
        if node in self._steps:
            return _word(self._steps[node]), self._shard.wake_at
        if waiting.why is Why.HOOK and node[0] == "/":
            return Verb.DELETE, None
        if waiting.why in (Why.REQUIRES, Why.LEAVING, Why.HANDOVER, Why.HOOK):
            row = self._row(node)
            if row is not None and row.is_to_be_adopted:
                return ADOPT, None
            return (Verb.CREATE if row is None or row.action == Action.INIT else COMPARE), None
        if waiting.why in (Why.IN_USE, Why.PART):
            return Verb.DELETE, None
        if waiting.why is Why.BLIND:
            return LOOK, self._shard.observe_at
        if waiting.why not in {Why.BACKOFF, Why.UNSEEN, Why.DRAINING, *SEEN_TO_END}:
            return "", None
        # Last, since `step_at` changes the frontier and its rows.
        step = self._frontier.step_at(node, waiting.due_at) if waiting.due_at is not None else None
        if step is not None:
            return _word(step), waiting.due_at
        row = self._row(node)
        return (LOOK, self._shard.observe_at) if row is not None and is_outside(row.type) else ("", None)

    def _fails_at(self, waiting: Waiting) -> float | None:
        """Return the time limit of the act in progress (see `planner.lifecycle.deadlines`)."""
        stack = self._world.stack
        row = self._rows.get(waiting.key)
        if row is None or row.status != Status.IN_PROGRESS:
            return None
        return stack.deadline if stack.status == Status.IN_PROGRESS else waiting.ends_at

    # -- result ------------------------------------------------------------------------------------------------------

    def explanations(self) -> list[Explanation]:
        blocks: dict[Node, set[str]] = defaultdict(set)
        for node, blockers in self._after.items():
            for blocker in blockers:
                blocks[blocker].add(self._frontier.name(node))
        explanations = [self._explanation(node, waiting, blocks[node]) for node, waiting in self._waiting.items()]
        return sorted(explanations, key=lambda explanation: (explanation.rank, explanation.node))

    def _explanation(self, node: Node, waiting: Waiting, blocks: set[str]) -> Explanation:
        row = self._row(node)
        source = row if row is not None else self._world.definitions[node]
        state = (row.action, row.status) if row is not None else (Action.INIT, Status.COMPLETE)
        following, following_at = self._next(node, waiting)
        return Explanation(
            node,
            waiting.name,
            source.type,
            row.key if row is not None else "",
            row.handle if row is not None else "",
            *state,
            waiting.why,
            waiting.on,
            waiting.reason,
            waiting.since,
            None if waiting.why in EXAMINED_AGAIN else waiting.due_at,
            following,
            following_at,
            self._fails_at(waiting),
            tuple(sorted(blocks)),
            self._after.get(node, ()),
            self._cause(node),
            source.template_type,
            waiting.by,
        )

    def _row(self, node: Node) -> RowBefore | None:
        key = node[1:] if node[0] == "/" else self._current.get(node, "")
        return self._rows.get(key)
