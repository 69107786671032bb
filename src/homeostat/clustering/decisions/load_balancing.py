"""Load balancing policies: their resources in the stack of a cluster, and the data of their bindings. Pure (ADR 0074).

A policy creates, or uses existing, load balancer, listener, pool and health monitor: resources of the cluster's stack.
Each node has a pool member as companion resource in the stack of the nodes. So the engine adds a node to the pool once
the node is ready, and removes it before the node is deleted, without further actions.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.attached import Attached, PolicyResources, reference, resource, taken
from homeostat.model.group import Companion
from homeostat.model.member_names import companion_name
from homeostat.resources.families.node_groups import NetworkLoadBalancer, NodePlace

PLACE = "lb"
"""Name of the companion resource of a node: its pool member."""
NUMBERS_END = 1_000_000_000
"""More than the number of any node."""
DRAIN_S = 10
"""Seconds between the removal of a node from the pool and its deletion, without a deletion policy."""
LOAD_BALANCER, LISTENER, POOL, MONITOR = "loadbalancer", "listener", "pool", "healthmonitor"
"""The parts, as keys of the data of a binding."""
_TYPES = {
    LOAD_BALANCER: "OS::Octavia::LoadBalancer",
    LISTENER: "OS::Octavia::Listener",
    POOL: "OS::Octavia::Pool",
    MONITOR: "OS::Octavia::HealthMonitor",
}


def place_name(number: int | str) -> str:
    """Return the name of the pool member of a node in the stack of the nodes."""
    return companion_name(str(number), PLACE)


def part_names(policy: Attached) -> dict[str, str]:
    """Return part -> name of its resource in the stack of the cluster; absent parts are left out."""
    properties = policy.spec.properties
    named = {LOAD_BALANCER: True, LISTENER: not properties["pool"]["id"], POOL: True}
    named[MONITOR] = properties["health_monitor"] is not None
    return {part: policy.resource(part) for part, exists in named.items() if exists}


def policy_resources(policy: Attached, grace_s: int = 0) -> PolicyResources:
    """Return the resources that a policy adds to the stack of its cluster.

    Args:
        policy: The policy; the resources of a disabled policy stay.
        grace_s: Grace period of the deletion policy of the cluster; 0 without one.
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
    companion = Companion(PLACE, ((0, end),), "server", place)
    return PolicyResources(resources, (companion,) if end else (), drain_s=grace_s or DRAIN_S)


def _named(policy: Attached, part: str) -> str:
    return f"senlin-{part}-{policy.state.get('name', '')}"


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
        handles: Name of a resource in the stack of the cluster -> its id.
        vip_address: The last observed address; None if unknown.
    """
    names = part_names(policy)
    ids: dict[str, Any] = {part: handles.get(names.get(part, "")) or None for part in _TYPES}
    preexisting = {"preexisting": True} if policy.spec.properties["loadbalancer"] else {}
    return {**ids, "vip_address": vip_address, **preexisting}
