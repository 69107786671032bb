"""Load balancing policies: what they put into the stack of a cluster, and what is shown of it. Pure (ADR 0074).

A policy makes, or takes, a load balancer, a listener, a pool and a health monitor: resources of the cluster's stack.
Each node has a place in the pool, which stands beside it in the stack of the nodes: so a node enters the pool once it
is ready, leaves it before it goes, and nothing of that has to be done by an action.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.attached import Attached, PolicyResources, reference, resource, taken
from homeostat.model.member_names import companion_name
from homeostat.resources.families.node_groups import NetworkLoadBalancer, NodePlace

PLACE = "lb"
"""Name of what stands beside a node: its place in the pool."""
NUMBERS_END = 1_000_000_000
"""More than the number of any node."""
DRAIN_S = 10
"""Seconds for which a node stays once it has left the pool, where no deletion policy says how long."""
LOAD_BALANCER, LISTENER, POOL, MONITOR = "loadbalancer", "listener", "pool", "healthmonitor"
"""The parts, by the keys under which a binding shows them."""
_TYPES = {
    LOAD_BALANCER: "OS::Octavia::LoadBalancer",
    LISTENER: "OS::Octavia::Listener",
    POOL: "OS::Octavia::Pool",
    MONITOR: "OS::Octavia::HealthMonitor",
}


def place_name(number: int | str) -> str:
    """Return the name of the place of a node in the stack of the nodes."""
    return companion_name(str(number), PLACE)


def part_names(policy: Attached) -> dict[str, str]:
    """Return the names of the resources in the stack of the cluster, by what they are; those that there are."""
    properties = policy.spec.properties
    named = {LOAD_BALANCER: True, LISTENER: not properties["pool"]["id"], POOL: True}
    named[MONITOR] = properties["health_monitor"] is not None
    return {part: policy.resource(part) for part, there in named.items() if there}


def policy_resources(policy: Attached, grace_s: int = 0) -> PolicyResources:
    """Return what a policy puts into the stack of its cluster.

    Args:
        policy: The policy, also one that is switched off: what it has made stays.
        grace_s: Grace period of the deletion policy of the cluster; 0 where there is none.
    """
    names = part_names(policy)
    resources = {names[LOAD_BALANCER]: _load_balancer(policy), names[POOL]: _pool(policy, names)}
    if LISTENER in names:
        resources[names[LISTENER]] = _listener(policy, names)
    if MONITOR in names:
        resources[names[MONITOR]] = _monitor(policy, names)
    pool = policy.spec.properties["pool"]
    place = resource(
        NodePlace.name,
        pool=reference(names[POOL]),
        protocol_port=pool["protocol_port"],
        subnet=pool["subnet"],
    )
    end = NUMBERS_END if policy.enabled else int(policy.state.get("below", 0))
    entry = {"name": PLACE, "numbers": [[0, end]], "member": "server", "resource_def": place}
    return PolicyResources(resources, (entry,) if end else (), drain_s=grace_s or DRAIN_S)


def _named(policy: Attached, what: str) -> str:
    return f"senlin-{what}-{policy.state.get('name', '')}"


def _load_balancer(policy: Attached) -> dict[str, Any]:
    properties = policy.spec.properties
    if properties["loadbalancer"]:
        return taken(_TYPES[LOAD_BALANCER], properties["loadbalancer"])
    vip = properties["vip"]
    by_network = {"vip_network": vip["network"]} if vip["network"] else {}
    return resource(
        NetworkLoadBalancer.name if by_network else _TYPES[LOAD_BALANCER],
        name=_named(policy, "lb"),
        vip_subnet=vip["subnet"],
        vip_address=vip["address"],
        admin_state_up=vip["admin_state_up"],
        availability_zone=properties["availability_zone"],
        flavor=properties["flavor_id"],
        **by_network,
    )


def _listener(policy: Attached, names: Mapping[str, str]) -> dict[str, Any]:
    vip = policy.spec.properties["vip"] or {}
    return resource(
        _TYPES[LISTENER],
        name=_named(policy, "listener"),
        loadbalancer=reference(names[LOAD_BALANCER]),
        protocol=vip.get("protocol", "HTTP"),
        protocol_port=vip.get("protocol_port", 80),
        connection_limit=vip.get("connection_limit"),
        admin_state_up=vip.get("admin_state_up"),
    )


def _pool(policy: Attached, names: Mapping[str, str]) -> dict[str, Any]:
    pool = policy.spec.properties["pool"]
    if pool["id"]:
        return taken(_TYPES[POOL], pool["id"])
    session = pool["session_persistence"]
    sticky = (
        {name: value for name, value in session.items() if value} if session["type"] not in (None, "NONE") else None
    )
    return resource(
        _TYPES[POOL],
        name=_named(policy, "pool"),
        listener=reference(names[LISTENER]),
        protocol=pool["protocol"],
        lb_algorithm=pool["lb_method"],
        session_persistence=sticky,
        admin_state_up=pool["admin_state_up"],
    )


def _monitor(policy: Attached, names: Mapping[str, str]) -> dict[str, Any]:
    monitor = policy.spec.properties["health_monitor"]
    if monitor["id"]:
        return taken(_TYPES[MONITOR], monitor["id"])
    by_http = ("http_method", "url_path", "expected_codes")
    same = ("type", "delay", "timeout", "max_retries", "admin_state_up")
    values = {name: monitor[name] for name in (*same, *by_http) if monitor[name] is not None}
    return resource(_TYPES[MONITOR], pool=reference(names[POOL]), **values)


def shown(policy: Attached, handles: Mapping[str, str], vip_address: str | None) -> dict[str, Any]:
    """Return the data of the binding.

    Args:
        policy: The policy.
        handles: Ids of its resources by their names in the stack of the cluster.
        vip_address: The address, as it was last seen; None where it is not known yet.
    """
    names = part_names(policy)
    found: dict[str, Any] = {part: handles.get(names.get(part, "")) or None for part in _TYPES}
    preexisting = {"preexisting": True} if policy.spec.properties["loadbalancer"] else {}
    return {**found, "vip_address": vip_address, **preexisting}
