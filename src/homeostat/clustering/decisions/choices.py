"""Choices among the nodes of a cluster: nodes to remove, places of new nodes, batches of updates. Pure."""

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
    """The facts about a node for choices.

    Attributes:
        created_at: Time at which the node became active; None if never.
        profile_created_at: Creation time of the profile.
        zone, region: Place of the node; "" if unknown.
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
        hooks: `{type, params, timeout}`; None without a lifecycle hook.
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
        cap: Maximum of nodes there; -1 for no limit.
    """

    name: str
    weight: int = 100
    cap: int = -1


@dataclass(frozen=True, slots=True)
class BatchRule:
    """A batch policy as the engine reads it.

    Attributes:
        batch_max: Maximum of nodes at once; no limit if not positive.
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
    return tuple(Place(entry["name"], entry["weight"], entry.get("cap", -1)) for entry in entries)


def victims(nodes: Iterable[NodeFacts], count: int, criteria: str, seed: str) -> list[NodeFacts]:
    """Return the nodes to remove: first bad nodes, then nodes that were never active, then by the criteria.

    Args:
        count: Number of nodes; all nodes if there are fewer.
        criteria: Criteria of a deletion policy.
        seed: Seed of the choice for RANDOM, such as the id of the action.
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
    """Return the nodes to remove from each zone or region.

    Args:
        counts: Place -> number of nodes to remove.
        place_of: Returns the place of a node.
    """
    by_place: dict[str, list[NodeFacts]] = {place: [] for place in counts}
    for node in nodes:
        if place_of(node) in by_place:
            by_place[place_of(node)].append(node)
    return [node for place in sorted(counts) for node in victims(by_place[place], counts[place], criteria, seed)]


def _urgency(node: NodeFacts) -> tuple[bool, bool]:
    return (not node.is_bad, node.created_at is not None)


def _order(criteria: str, seed: str) -> Callable[[NodeFacts], Any]:
    if criteria == "OLDEST_FIRST":
        return lambda node: node.created_at or 0.0
    if criteria == "YOUNGEST_FIRST":
        # Among nodes of the same age, the last created is removed first.
        return lambda node: (-(node.created_at or 0.0), -node.index)
    if criteria == "OLDEST_PROFILE_FIRST":
        return lambda node: node.profile_created_at
    return lambda node: hashlib.sha256(f"{seed}/{node.id}".encode()).digest()


def placed(current: Mapping[str, int], choices: Sequence[Place], count: int) -> dict[str, int]:
    """Return how many of `count` new nodes each place gets, so that all nodes come close to the weights.

    Args:
        current: Place -> number of existing nodes.
        choices: The places; a place with weight 0 gets no nodes.

    Raises:
        Rejected: BadRequest: the caps leave no room.
    """
    result: dict[str, int] = {}
    # The next node goes to the place that then has the fewest nodes for its weight.
    waiting = [
        ((current.get(place.name, 0) + 1) / place.weight, order, current.get(place.name, 0), place)
        for order, place in enumerate(choices)
        if place.weight > 0 and not _full(place, current.get(place.name, 0))
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
    """Return how many of `count` nodes each place loses, so that the remaining nodes come close to the weights.

    Places that are no longer in `choices`, or have weight 0, lose nodes first; then places above their caps.

    Args:
        current: Place -> number of existing nodes.

    Raises:
        Rejected: BadRequest: there are fewer nodes than `count`.
    """
    by_name = {place.name: place for place in choices}

    def crowding(name: str, nodes: int) -> tuple[float, float]:
        """Return a sort key: smallest for the fullest place."""
        place = by_name.get(name)
        if place is None or place.weight <= 0:
            return (-math.inf, 0.0)
        above = nodes - place.cap if 0 <= place.cap < nodes else 0
        return (-float(above), -nodes / place.weight)

    # Among equally full places, the last in the policy loses a node first.
    order = {place.name: -position for position, place in enumerate(choices)}
    waiting = [(crowding(name, has), order.get(name, 0), name, has) for name, has in current.items() if has > 0]
    heapq.heapify(waiting)
    result: dict[str, int] = {}
    for _ in range(count):
        if not waiting:
            raise Rejected("BadRequest", "There is no feasible plan to handle all nodes.")
        _, position, name, has = heapq.heappop(waiting)
        result[name] = result.get(name, 0) + 1
        if has > 1:
            heapq.heappush(waiting, (crowding(name, has - 1), position, name, has - 1))
    return result


def batches(nodes: Sequence[NodeFacts], rule: BatchRule) -> list[list[NodeFacts]]:
    """Return the nodes in batches for an update, bad nodes first.

    If the cluster has no more nodes than must stay in service, half of its nodes are updated at once.
    """
    total = len(nodes)
    size = total - rule.min_in_service if total > rule.min_in_service else math.ceil(total / 2)
    if rule.batch_max > 0:
        size = min(size, rule.batch_max)
    ordered = sorted(nodes, key=lambda node: (not node.is_bad, node.index, node.id))
    return [ordered[start : start + size] for start in range(0, total, max(size, 1))]
