"""Members that fail together, since they share a host, a zone or a network, are one incident. Pure (ADR 0081).

Of an incident one member is recovered first. The others follow once that has helped: they would fail as well where
the cause is an image, a network or a zone, and not the member. Where it has not helped, another one is tried later.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from homeostat.model.health_policy import HealthPolicy
from homeostat.model.member_names import is_companion
from homeostat.model.node_health import Finding, ShardHealth
from homeostat.model.status import Status
from homeostat.model.world import Resource, World

FEW, FEW_OF_A_HOST = 3, 2
"""Members that have to fail together to be an incident; those of a host that is called down are one sooner."""
PAUSE_S = 60.0
"""Time after a recovery that has not helped until another member is tried, besides that of its verification."""
EVERYWHERE, HOST = "the group", "host"
Place = tuple[str, str]
"""What is shared, such as `host`, and its name."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Members that fail together.

    Attributes:
        place: What they share.
        since: When the first of them was found unhealthy.
        keys: Keys of their rows.
        helped: Whether a recovery that began since then has helped.
        tried_at: When the newest of the members was tried of which a recovery has begun since then; None for none.
        host_down: Whether all that was found of them is that their host is down.
    """

    place: Place
    since: float
    keys: frozenset[str]
    helped: bool
    tried_at: float | None
    host_down: bool = False

    @property
    def said(self) -> str:
        what, name = self.place
        if self.host_down:
            return f"{what} {name} is called down"
        where = EVERYWHERE if what == EVERYWHERE else f"{what} {name}"
        return f"{len(self.keys)} members of {where} are unhealthy, and none is healthy"


def incidents(world: World, health: ShardHealth, current: Mapping[str, Resource]) -> dict[str, Incident]:
    """Return the incidents of a shard by the key of each member's row; of several, the narrowest.

    Args:
        world: The shard.
        health: What its policies have found.
        current: Name -> the row that stands for it.
    """
    places: dict[Place, list[Resource]] = defaultdict(list)
    for row in current.values():
        if not is_companion(row.name) and health.policy_of(row.name) is not None:
            for place in (*_places(world, row), (EVERYWHERE, "")):
                places[place].append(row)
    found: dict[str, Incident] = {}
    well = {row.name for row in current.values() if _is_well(health, row)}
    # The narrowest comes last, and counts.
    for place, rows in sorted(places.items(), key=lambda each: -len(each[1])):
        if not well.isdisjoint(row.name for row in rows):
            continue
        unhealthy = [row for row in rows if _finding(health, row) is Finding.UNHEALTHY]
        if not unhealthy:
            continue
        since = min(health.nodes[row.key].since for row in unhealthy)
        host_down = all(health.nodes[row.key].is_host_down for row in unhealthy) and place[0] == HOST
        tried = _tried(health, since, place[1] if host_down else "")
        # Those of a host that is down leave it with their recovery.
        left = tried.keys() - {row.name for row in unhealthy} if host_down else frozenset()
        if len(unhealthy) + len(left) < (FEW_OF_A_HOST if host_down else FEW):
            continue
        keys, helped = frozenset(row.key for row in unhealthy), not well.isdisjoint(tried)
        one = Incident(place, since, keys, helped, max(tried.values(), default=None), host_down)
        found |= dict.fromkeys(keys, one)
    return found


def _tried(health: ShardHealth, since: float, host: str) -> dict[str, float]:
    """Return the members of which a recovery has begun since a time, or from a host, and when it began first.

    One that is tried again and again keeps no other one from its turn.
    """
    tried: dict[str, float] = {}
    for each in health.begun:
        if each.host == host if host else each.at >= since:
            tried[each.name] = min(each.at, tried.get(each.name, each.at))
    return tried


def _is_well(health: ShardHealth, row: Resource) -> bool:
    """Return whether a member is healthy; one that is being made, or could not be looked at, says nothing."""
    return row.status == Status.COMPLETE and _finding(health, row) is Finding.HEALTHY


def _finding(health: ShardHealth, row: Resource) -> Finding | None:
    node = health.nodes.get(row.key)
    return None if node is None else node.finding


def _places(world: World, row: Resource) -> list[Place]:
    seen = world.seen.get(row.key)
    shown = seen.observation.properties if seen is not None else {}
    zone = shown.get("availability_zone") or row.properties.get("availability_zone")
    networks = shown.get("addresses") or {}
    found = [(HOST, shown.get("host")), ("zone", zone), ("network", next(iter(networks), None))]
    return [(what, str(name)) for what, name in found if name]


def waits_for_first(policy: HealthPolicy, incident: Incident | None, now: float) -> tuple[str, float] | None:
    """Return why a member of an incident is not recovered yet, and until when; None where it may be."""
    if incident is None or not policy.one_first or incident.helped or incident.tried_at is None:
        return None
    due_at = incident.tried_at + policy.verify_s + PAUSE_S
    if now >= due_at:
        return None
    return f"one incident: {incident.said}; one of them is recovered first, and the others once that has helped", due_at
