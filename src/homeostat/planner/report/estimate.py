"""Estimate of the time until a stack is at rest. Pure.

The estimate is based on earlier durations along the critical path, and on the rate.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from homeostat.model.plan import Verb
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Why
from homeostat.planner.graph import Node
from homeostat.planner.lifecycle.adopt import ADOPT
from homeostat.planner.report.explain import Explanation

Kind = tuple[str, str]
"""Type of a resource and action on it."""

Durations = Mapping[Kind, float]
"""Usual seconds of an action on a resource of a type."""

_ACTIONS: Mapping[str, str] = {
    Verb.CREATE: Action.CREATE,
    Verb.UPDATE: Action.UPDATE,
    Verb.OPERATE: Action.UPDATE,
    ADOPT: Action.ADOPT,
}
"""Next act, as in `Explanation.next` -> action begun by it."""


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """Content of an event of a resource: `key` of its row, and `at` in seconds since the epoch."""

    key: str
    type: str
    action: str
    status: str
    at: float


def medians(happened: Iterable[ResourceEvent]) -> dict[Kind, float]:
    """Return the median durations of completed actions, from events in chronological order."""
    begun: dict[tuple[str, str], float] = {}
    durations: dict[Kind, list[float]] = defaultdict(list)
    for event in happened:
        act = (event.key, event.action)
        if event.status == Status.IN_PROGRESS:
            # A repeated action counts from its first beginning.
            begun.setdefault(act, event.at)
            continue
        at = begun.pop(act, None)
        if event.status == Status.COMPLETE and at is not None:
            durations[event.type, event.action].append(event.at - at)
    return {kind: median(seconds) for kind, seconds in durations.items()}


@dataclass(frozen=True, slots=True)
class Link:
    """A resource of a chain, with the seconds still needed (None if unknown)."""

    explanation: Explanation
    action: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Chain:
    """Resources in a sequence, each waiting for its predecessor."""

    links: tuple[Link, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Seconds that the whole chain needs; None if all its links are unknown."""
        seconds = [link.seconds for link in self.links if link.seconds is not None]
        return sum(seconds) if seconds else None

    @property
    def unknown(self) -> tuple[Kind, ...]:
        """Types and actions of unknown duration, for which the chain may take longer than `seconds`."""
        kinds = {(link.explanation.shown_type, link.action) for link in self.links if link.seconds is None}
        return tuple(sorted(kinds))


def critical_path(
    unfinished: Sequence[Explanation], durations: Durations, now: float, inside: Mapping[Node, float] | None = None
) -> Chain:
    """Return the chain that takes longest; among equals, the chain with most links.

    Args:
        durations: Usual durations of actions.
        inside: Nodes of nested stacks -> seconds that their own chains still need.
    """
    links = {explanation.node: _link(explanation, durations, now, inside or {}) for explanation in unfinished}
    best: dict[Node, tuple[float, int]] = {}
    predecessors: dict[Node, Node] = {}
    # One pass in topological order: a chain of a thousand resources must not recurse.
    for node in _in_order(unfinished):
        blockers = [blocker for blocker in links[node].explanation.after if blocker in best]
        seconds, length = 0.0, 0
        if blockers:
            # The node breaks ties, so that the same world always gives the same chain.
            predecessors[node] = max(blockers, key=lambda blocker: (best[blocker], blocker))
            seconds, length = best[predecessors[node]]
        best[node] = (seconds + (links[node].seconds or 0.0), length + 1)
    if not best:
        return Chain()
    path = [max(best, key=lambda last: (best[last], last))]
    while path[-1] in predecessors:
        path.append(predecessors[path[-1]])
    return Chain(tuple(links[node] for node in reversed(path)))


def _link(explanation: Explanation, durations: Durations, now: float, inside: Mapping[Node, float]) -> Link:
    action = _action(explanation)
    if explanation.node in inside:
        return Link(explanation, action, inside[explanation.node])
    if not action:
        return Link(explanation, action, 0.0)
    return Link(explanation, action, _seconds(explanation, durations.get((explanation.shown_type, action)), now))


def _seconds(explanation: Explanation, usual: float | None, now: float) -> float | None:
    """Return the seconds that a resource still needs, including a wait for a known time."""
    wait = max(0.0, explanation.due_at - now) if explanation.due_at is not None else 0.0
    # A known end is better than the median.
    if explanation.why is Why.BUILDING and explanation.due_at is not None:
        return wait
    if usual is None or explanation.why is not Why.BUILDING or explanation.since is None:
        return None if usual is None else wait + usual
    return max(0.0, usual - (now - explanation.since))


def _action(explanation: Explanation) -> str:
    """Return the action to execute; "" for a resource that may be complete already."""
    if explanation.leftover:
        return Action.DELETE
    if explanation.status == Status.IN_PROGRESS:
        return explanation.action
    return _ACTIONS.get(explanation.next, "")


def _in_order(unfinished: Sequence[Explanation]) -> list[Node]:
    """Return the nodes in topological order; nodes in a cycle are left out."""
    nodes = {explanation.node for explanation in unfinished}
    blocker_counts = {
        explanation.node: sum(other in nodes for other in explanation.after) for explanation in unfinished
    }
    followers: dict[Node, list[Node]] = defaultdict(list)
    for explanation in unfinished:
        for other in explanation.after:
            followers[other].append(explanation.node)
    order = [node for node, count in blocker_counts.items() if count == 0]
    for node in order:
        for other in followers[node]:
            blocker_counts[other] -= 1
            if blocker_counts[other] == 0:
                order.append(other)
    return order


class Basis(StrEnum):
    """Source of an estimate."""

    CRITICAL_PATH = "critical_path"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds until everything is at rest."""

    seconds: float
    by: Basis


def time_left(chain: Chain, left: int, rate: float | None) -> Estimate | None:
    """Return the longer of the two estimates; None if nothing is known.

    Args:
        left: Number of resources not at rest.
        rate: Recent number of resources per second that came to rest.
    """
    estimates = []
    if chain.seconds is not None:
        estimates.append(Estimate(chain.seconds, Basis.CRITICAL_PATH))
    if rate and left:
        estimates.append(Estimate(left / rate, Basis.RATE))
    return max(estimates, key=lambda estimate: estimate.seconds, default=None)
