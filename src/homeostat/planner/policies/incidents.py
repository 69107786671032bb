"""Incidents: members that fail together, since they share a host, a zone or a network. Pure (ADR 0081).

One member of an incident is recovered first. The rest follow after its recovery has helped: otherwise the cause is an
image, a network or a zone, and all replacements would fail. If the recovery has not helped, the next member is tried
later.
"""

from collections import defaultdict
from collections.abc import Mapping

from homeostat.model.health_policy import HealthPolicy
from homeostat.model.member_names import is_companion
from homeostat.model.node_health import EVERYWHERE, HOST, Finding, Incident, Place, ShardHealth
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.planner.context import Context

FEW, FEW_OF_A_HOST = 3, 2
"""Minimum number of failed members of an incident, in general and for a host reported down."""
PAUSE_S = 60.0
"""Pause after an unsuccessful recovery before the next member is tried, in addition to its verification time."""


def incident_of(context: Context, row: Resource) -> Incident | None:
    """Return the incident that a member's failure belongs to; None if it failed alone."""
    if context.incidents is None:
        health = context.world.health
        context.incidents = {} if health is None else _incidents(context.world, health, context.current)
    return context.incidents.get(row.key)


def _incidents(world: World, health: ShardHealth, current: Mapping[str, Resource]) -> dict[str, Incident]:
    """Return the narrowest incident of each affected member of a shard, by the key of its row."""
    places: dict[Place, list[Resource]] = defaultdict(list)
    for row in current.values():
        if not is_companion(row.name) and health.policy_of(row.name) is not None:
            for place in (*_places(world, row), (EVERYWHERE, "")):
                places[place].append(row)
    by_key: dict[str, Incident] = {}
    well = {row.name for row in current.values() if _is_well(health, row)}
    # The narrowest incident comes last, and overwrites wider ones.
    for place, rows in sorted(places.items(), key=lambda item: -len(item[1])):
        if not well.isdisjoint(row.name for row in rows):
            continue
        unhealthy = [row for row in rows if _finding(health, row) is Finding.UNHEALTHY]
        if not unhealthy:
            continue
        since = min(health.nodes[row.key].since for row in unhealthy)
        host_down = all(health.nodes[row.key].is_host_down for row in unhealthy) and place[0] == HOST
        tried = _tried(health, since, place[1] if host_down else "")
        # Members leave a host that is down with their recovery.
        departed = tried.keys() - {row.name for row in unhealthy} if host_down else frozenset()
        if len(unhealthy) + len(departed) < (FEW_OF_A_HOST if host_down else FEW):
            continue
        keys, helped = frozenset(row.key for row in unhealthy), not well.isdisjoint(tried)
        incident = Incident(place, since, keys, helped, max(tried.values(), default=None), host_down)
        by_key |= dict.fromkeys(keys, incident)
    return by_key


def _tried(health: ShardHealth, since: float, host: str) -> dict[str, float]:
    """Return the members with a recovery since a time, or from a host, and the start of their first recovery.

    The first start counts, so that a member in repeated recovery does not block the turns of its siblings.
    """
    tried: dict[str, float] = {}
    for recovery in health.begun:
        if recovery.host == host if host else recovery.at >= since:
            tried[recovery.name] = min(recovery.at, tried.get(recovery.name, recovery.at))
    return tried


def _is_well(health: ShardHealth, row: Resource) -> bool:
    """Return whether a member is known to be healthy, and not in progress."""
    return row.status == Status.COMPLETE and _finding(health, row) is Finding.HEALTHY


def _finding(health: ShardHealth, row: Resource) -> Finding | None:
    node = health.nodes.get(row.key)
    return None if node is None else node.finding


def _places(world: World, row: Resource) -> list[Place]:
    seen = world.seen.get(row.key)
    properties = seen.observation.properties if seen is not None else {}
    zone = properties.get("availability_zone") or row.properties.get("availability_zone")
    networks = properties.get("addresses") or {}
    candidates = [(HOST, properties.get("host")), ("zone", zone), ("network", next(iter(networks), None))]
    return [(what, str(name)) for what, name in candidates if name]


def waits_for_first(policy: HealthPolicy, incident: Incident | None, now: float) -> tuple[str, float] | None:
    """Return why a member of an incident is not recovered yet, and until when; None if it may be."""
    if incident is None or not policy.one_first or incident.helped or incident.tried_at is None:
        return None
    due_at = incident.tried_at + policy.verify_s + PAUSE_S
    if now >= due_at:
        return None
    order = "one of them is recovered first, and the others once that has helped"
    return f"one incident: {incident.summary}; {order}", due_at
