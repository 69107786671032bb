"""Choices among the nodes of a cluster: which ones go, where new ones are placed, which are updated together. Pure."""

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.clustering.decisions.policy_types import has_hooks
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.decisions.states import NodeStatus
from homeostat.model.errors import Rejected


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What choices depend on.

    Attributes:
        created_at: Time at which the node became active; None if it never did.
        profile_created_at: Time at which its profile was made.
        zone, region: Where it is; "" if that is not known.
    """

    id: str
    name: str = ""
    index: int = 0
    status: str = NodeStatus.ACTIVE
    created_at: float | None = None
    profile_created_at: float = 0.0
    tainted: bool = False
    zone: str = ""
    region: str = ""

    @property
    def is_bad(self) -> bool:
        return self.tainted or self.status in (NodeStatus.ERROR, NodeStatus.WARNING)


@dataclass(frozen=True, slots=True)
class DeletionRule:
    """A deletion policy as the engine reads it; without a policy, nodes of a smaller cluster are destroyed at random.

    Attributes:
        destroy: Whether nodes that leave the cluster are destroyed.
        grace_s: Seconds before a deletion begins.
        reduce_desired: Whether the desired capacity goes down with the nodes.
        hooks: `{type, params, timeout}`; None if no one is notified.
    """

    criteria: str = "RANDOM"
    destroy: bool = True
    grace_s: int = 0
    reduce_desired: bool = True
    hooks: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A zone or region to choose.

    Attributes:
        cap: Most nodes in it; -1 for any number.
    """

    name: str
    weight: int = 100
    cap: int = -1


@dataclass(frozen=True, slots=True)
class BatchRule:
    """A batch policy as the engine reads it.

    Attributes:
        batch_max: Most nodes at once; any number if it is not positive.
    """

    min_in_service: int = 1
    batch_max: int = -1
    pause_s: int = 60


def deletion_rule(policy: Spec) -> DeletionRule:
    """Return a checked deletion policy as the engine reads it."""
    properties = policy.properties
    return DeletionRule(
        properties["criteria"],
        properties["destroy_after_deletion"],
        properties["grace_period"],
        properties["reduce_desired_capacity"],
        properties["hooks"] if has_hooks(properties) else None,
    )


def batch_rule(policy: Spec) -> BatchRule:
    """Return a checked batch policy as the engine reads it."""
    properties = policy.properties
    return BatchRule(properties["min_in_service"], properties["max_batch_size"], properties["pause_time"])


def places(policy: Spec) -> tuple[Place, ...]:
    """Return the zones or regions of a checked policy."""
    (entries,) = policy.properties.values()
    return tuple(Place(each["name"], each["weight"], each.get("cap", -1)) for each in entries)


def victims(nodes: Iterable[NodeFacts], count: int, criteria: str, seed: str) -> list[NodeFacts]:
    """Return the nodes that go, in this order: bad ones, those that were never active, then by the criteria.

    Args:
        count: How many; fewer if there are not so many.
        criteria: That of a deletion policy.
        seed: What the choice at RANDOM follows from, such as the id of the action.
    """
    by = _order(criteria, seed)
    return heapq.nsmallest(max(count, 0), nodes, key=lambda node: (*_urgency(node), by(node), node.index, node.id))


def victims_by_place(
    nodes: Iterable[NodeFacts],
    counts: Mapping[str, int],
    criteria: str,
    seed: str,
    place_of: Callable[[NodeFacts], str],
) -> list[NodeFacts]:
    """Return the nodes that go, so many of each zone or region.

    Args:
        counts: Place -> how many.
        place_of: Returns the place of a node.
    """
    found: dict[str, list[NodeFacts]] = {place: [] for place in counts}
    for node in nodes:
        if place_of(node) in found:
            found[place_of(node)].append(node)
    return [node for place in sorted(counts) for node in victims(found[place], counts[place], criteria, seed)]


def _urgency(node: NodeFacts) -> tuple[bool, bool]:
    return (not node.is_bad, node.created_at is not None)


def _order(criteria: str, seed: str) -> Callable[[NodeFacts], Any]:
    if criteria == "OLDEST_FIRST":
        return lambda node: node.created_at or 0.0
    if criteria == "YOUNGEST_FIRST":
        # Of nodes of one age, the one that was made last goes first.
        return lambda node: (-(node.created_at or 0.0), -node.index)
    if criteria == "OLDEST_PROFILE_FIRST":
        return lambda node: node.profile_created_at
    return lambda node: hashlib.sha256(f"{seed}/{node.id}".encode()).digest()


def placed(current: Mapping[str, int], choices: Sequence[Place], count: int) -> dict[str, int]:
    """Return how many of `count` new nodes each place gets, so that all nodes come close to the weights.

    Args:
        current: Place -> nodes that it has.
        choices: The places; those with weight 0 get none.

    Raises:
        Rejected: BadRequest: the caps leave no room.
    """
    result: dict[str, int] = {}
    # The next node goes where a place has the least nodes for its weight once it has it.
    waiting = [
        ((current.get(each.name, 0) + 1) / each.weight, order, current.get(each.name, 0), each)
        for order, each in enumerate(choices)
        if each.weight > 0 and not _full(each, current.get(each.name, 0))
    ]
    heapq.heapify(waiting)
    for _ in range(count):
        if not waiting:
            raise Rejected("BadRequest", "There is no feasible plan to handle all nodes.")
        _, order, has, place = heapq.heappop(waiting)
        result[place.name] = result.get(place.name, 0) + 1
        if not _full(place, has + 1):
            heapq.heappush(waiting, ((has + 2) / place.weight, order, has + 1, place))
    return result


def _full(place: Place, nodes: int) -> bool:
    return 0 <= place.cap <= nodes


def removed(current: Mapping[str, int], choices: Sequence[Place], count: int) -> dict[str, int]:
    """Return how many of `count` nodes that go each place loses, so that the others come close to the weights.

    Places that are no choice any more, or have weight 0, lose theirs first; then those above their caps.

    Args:
        current: Place -> nodes that it has.

    Raises:
        Rejected: BadRequest: there are not so many nodes.
    """
    by_name = {each.name: each for each in choices}

    def crowding(name: str, nodes: int) -> tuple[float, float]:
        """Return how much too full a place is, as a key that is smallest for the fullest."""
        place = by_name.get(name)
        if place is None or place.weight <= 0:
            return (-math.inf, 0.0)
        above = nodes - place.cap if 0 <= place.cap < nodes else 0
        return (-float(above), -nodes / place.weight)

    # Of places that are as full, the last in the policy loses first.
    order = {each.name: -place for place, each in enumerate(choices)}
    waiting = [(crowding(name, has), order.get(name, 0), name, has) for name, has in current.items() if has > 0]
    heapq.heapify(waiting)
    result: dict[str, int] = {}
    for _ in range(count):
        if not waiting:
            raise Rejected("BadRequest", "There is no feasible plan to handle all nodes.")
        _, place, name, has = heapq.heappop(waiting)
        result[name] = result.get(name, 0) + 1
        if has > 1:
            heapq.heappush(waiting, (crowding(name, has - 1), place, name, has - 1))
    return result


def batches(nodes: Sequence[NodeFacts], rule: BatchRule) -> list[list[NodeFacts]]:
    """Return the nodes in the groups in which they are updated; bad ones come first.

    Where fewer nodes exist than have to stay in service, half of them are updated at once.
    """
    total = len(nodes)
    size = total - rule.min_in_service if total > rule.min_in_service else math.ceil(total / 2)
    if rule.batch_max > 0:
        size = min(size, rule.batch_max)
    ordered = sorted(nodes, key=lambda node: (not node.is_bad, node.index, node.id))
    return [ordered[start : start + size] for start in range(0, total, max(size, 1))]
