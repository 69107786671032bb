"""Where new nodes of a cluster go, and which nodes leave it, by all of its policies together. Pure.

Regions are chosen first, then the zones of the nodes in the cluster's own region: what a zone is called says nothing in
another one. A server group is in the own region, too.
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
"""Keys of a placement, as the data of a node have it."""
Placement = dict[str, str]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the policies of a cluster say about places.

    Attributes:
        regions: The regions to choose from; None where no policy chooses.
        home: Those of them that are the cluster's own, the first of which stands for all.
        zones: The availability zones to choose from; None where no policy chooses.
        zone: The zone of all new nodes, where none is chosen.
        grouped: Whether new nodes are made in a server group.
    """

    regions: Sequence[Place] | None = None
    home: Sequence[str] = ()
    zones: Sequence[Place] | None = None
    zone: str = ""
    grouped: bool = False

    def region_of(self, name: str) -> str:
        """Return what stands for a region: "" for the own one where no policy names it."""
        if name in self.home or name in ("", HOME):
            return self.home[0] if self.home else ""
        return name

    def is_home(self, region: str) -> bool:
        return self.region_of(region) == self.region_of("")


def rules(policies: Iterable[Attached]) -> Rules:
    """Return what the policies of a cluster that are switched on say about places."""
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


def placements(nodes: Sequence[NodeFacts], wanted: Rules, count: int) -> list[Placement]:
    """Return where `count` new nodes go, beside those that there are; each is empty where no policy says it.

    Raises:
        Rejected: BadRequest: the caps leave no room.
    """
    there = _by_region(nodes, wanted)
    if wanted.regions is None:
        regions = {"": count}
    else:
        current = {region: len(members) for region, members in there.items()}
        regions = choices.placed(current, wanted.regions, count)
    found: list[Placement] = []
    for region, number in regions.items():
        if wanted.is_home(region):
            chosen = {REGION: HOME} if wanted.regions is not None else {}
            found += [{**each, **chosen} for each in _at_home(nodes, wanted, number)]
        else:
            found += [{REGION: region}] * number
    return found


def _at_home(nodes: Sequence[NodeFacts], wanted: Rules, count: int) -> list[Placement]:
    """Return the zones and the server group of new nodes in the own region; which group that is follows later."""
    group = {GROUP: ""} if wanted.grouped else {}
    if wanted.zones is None:
        return [{**group, **({ZONE: wanted.zone} if wanted.zone else {})}] * count
    current = Counter(each.zone for each in nodes if wanted.is_home(each.region))
    chosen = choices.placed(current, wanted.zones, count)
    return [{**group, ZONE: zone} for zone, number in chosen.items() for _ in range(number)]


def _by_region(nodes: Iterable[NodeFacts], wanted: Rules) -> dict[str, list[NodeFacts]]:
    found: dict[str, list[NodeFacts]] = {}
    for each in nodes:
        found.setdefault(wanted.region_of(each.region), []).append(each)
    return found


def deletion_rule(policies: Iterable[Attached]) -> DeletionRule | None:
    """Return the deletion policy of a cluster; None where there is none, or where it is switched off."""
    policy = of_type(policies, DELETION.name)
    return choices.deletion_rule(policy.spec) if policy is not None else None


def leaving(nodes: Sequence[NodeFacts], wanted: Rules, count: int, criteria: str, seed: str) -> list[NodeFacts]:
    """Return the nodes that go: from the fullest regions, and there from the fullest zones.

    Args:
        nodes: All nodes of the cluster.
        wanted: The places.
        count: How many go.
        criteria: That of the deletion policy.
        seed: What the choice at RANDOM follows from.

    Raises:
        Rejected: BadRequest: there are not so many nodes.
    """
    if wanted.regions is None:
        return _by_zone(nodes, wanted, count, criteria, seed)
    there = _by_region(nodes, wanted)
    current = {region: len(members) for region, members in there.items()}
    found: list[NodeFacts] = []
    for region, number in sorted(choices.removed(current, wanted.regions, count).items()):
        if wanted.is_home(region):
            found += _by_zone(there[region], wanted, number, criteria, seed)
        else:
            found += choices.victims(there[region], number, criteria, seed)
    return found


def _by_zone(nodes: Sequence[NodeFacts], wanted: Rules, count: int, criteria: str, seed: str) -> list[NodeFacts]:
    if wanted.zones is None:
        return choices.victims(nodes, count, criteria, seed)
    counts = choices.removed(Counter(each.zone for each in nodes), wanted.zones, count)
    return choices.victims_by_place(nodes, counts, criteria, seed, lambda node: node.zone)
