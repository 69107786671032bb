"""Places of new nodes, and the choice of leaving nodes, by all policies of a cluster together. Pure.

Regions are chosen first, then the zones of nodes in the service's own region: names of zones mean nothing in other
regions. Server groups exist in the own region only, too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from homeostat.clustering.decisions import choices
from homeostat.clustering.decisions.attached import Attached, of_type
from homeostat.clustering.decisions.choices import DeletionRule, NodeFacts, Place
from homeostat.clustering.decisions.definitions import HOME
from homeostat.clustering.decisions.policy_types import AFFINITY, DELETION, REGION_PLACEMENT, ZONE_PLACEMENT

ZONE, REGION, GROUP = "zone", "region", "servergroup"
"""Keys of a placement in the data of a node."""
Placement = dict[str, str]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a cluster's policies about places.

    Attributes:
        regions: The regions to choose from; None without a policy.
        home: The regions among them that are the service's own; the first stands for all.
        zones: The availability zones to choose from; None without a policy.
        zone: The zone of all new nodes if `zones` is None; "" for any.
        grouped: Whether new nodes are created in a server group.
    """

    regions: Sequence[Place] | None = None
    home: Sequence[str] = ()
    zones: Sequence[Place] | None = None
    zone: str = ""
    grouped: bool = False

    def region_of(self, name: str) -> str:
        """Return the canonical name of a region: for the own region its first name in a policy, or ""."""
        if name in self.home or name in ("", HOME):
            return self.home[0] if self.home else ""
        return name

    def is_home(self, region: str) -> bool:
        return self.region_of(region) == self.region_of("")


def rules(policies: Iterable[Attached]) -> Rules:
    """Return the rules of a cluster's enabled policies about places."""
    attached = list(policies)
    regions, zones = of_type(attached, REGION_PLACEMENT.name), of_type(attached, ZONE_PLACEMENT.name)
    affinity = of_type(attached, AFFINITY.name)
    return Rules(
        choices.places(regions.spec) if regions is not None else None,
        tuple(regions.state.get("home", ())) if regions is not None else (),
        choices.places(zones.spec) if zones is not None else None,
        str(affinity.spec.properties["availability_zone"] or "") if affinity is not None else "",
        affinity is not None,
    )


def placements(nodes: Sequence[NodeFacts], places: Rules, count: int) -> list[Placement]:
    """Return the placements of `count` new nodes, balanced with the existing nodes; {} for a node without policies.

    Raises:
        Rejected: BadRequest: the caps leave no room.
    """
    by_region = _by_region(nodes, places)
    if places.regions is None:
        regions = {"": count}
    else:
        current = {region: len(members) for region, members in by_region.items()}
        regions = choices.placed(current, places.regions, count)
    result: list[Placement] = []
    for region, number in regions.items():
        if places.is_home(region):
            chosen = {REGION: HOME} if places.regions is not None else {}
            result += [{**zone_placement, **chosen} for zone_placement in _at_home(nodes, places, number)]
        else:
            result += [{REGION: region}] * number
    return result


def _at_home(nodes: Sequence[NodeFacts], places: Rules, count: int) -> list[Placement]:
    """Return zones and server group of new nodes in the own region; the stack's text has the group's reference."""
    group = {GROUP: ""} if places.grouped else {}
    if places.zones is None:
        return [{**group, **({ZONE: places.zone} if places.zone else {})}] * count
    current = Counter(node.zone for node in nodes if places.is_home(node.region))
    chosen = choices.placed(current, places.zones, count)
    return [{**group, ZONE: zone} for zone, number in chosen.items() for _ in range(number)]


def _by_region(nodes: Iterable[NodeFacts], places: Rules) -> dict[str, list[NodeFacts]]:
    by_region: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        by_region.setdefault(places.region_of(node.region), []).append(node)
    return by_region


def deletion_rule(policies: Iterable[Attached]) -> DeletionRule | None:
    """Return the deletion policy of a cluster; None if missing or disabled."""
    policy = of_type(policies, DELETION.name)
    return choices.deletion_rule(policy.spec) if policy is not None else None


def leaving(nodes: Sequence[NodeFacts], places: Rules, count: int, criteria: str, seed: str) -> list[NodeFacts]:
    """Return the nodes to remove: from the fullest regions, and there from the fullest zones.

    Args:
        nodes: All nodes of the cluster.
        count: Number of nodes to remove.
        criteria: Criteria of the deletion policy.
        seed: Seed of the choice for RANDOM.

    Raises:
        Rejected: BadRequest: there are fewer nodes than `count`.
    """
    if places.regions is None:
        return _by_zone(nodes, places, count, criteria, seed)
    by_region = _by_region(nodes, places)
    current = {region: len(members) for region, members in by_region.items()}
    victims: list[NodeFacts] = []
    for region, number in sorted(choices.removed(current, places.regions, count).items()):
        if places.is_home(region):
            victims += _by_zone(by_region[region], places, number, criteria, seed)
        else:
            victims += choices.victims(by_region[region], number, criteria, seed)
    return victims


def _by_zone(nodes: Sequence[NodeFacts], places: Rules, count: int, criteria: str, seed: str) -> list[NodeFacts]:
    if places.zones is None:
        return choices.victims(nodes, count, criteria, seed)
    counts = choices.removed(Counter(node.zone for node in nodes), places.zones, count)
    return choices.victims_by_place(nodes, counts, criteria, seed, lambda node: node.zone)
