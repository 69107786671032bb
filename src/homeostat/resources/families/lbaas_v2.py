"""Retired types of load balancing, version 2 of Neutron LBaaS, implemented by Octavia."""

from dataclasses import replace
from typing import Any

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.families import layer7_policies, octavia
from homeostat.resources.families.layer7_policies import POLICY, RULE
from homeostat.resources.rules import require
from homeostat.resources.schema import Attribute, Property, Schema, custom, one_of, text
from homeostat.resources.support import Support, deprecated, hidden

PROTOCOLS = ("TCP", "HTTP", "HTTPS")


def retired(successor: str) -> Support:
    instead = f"Use OS::Octavia::{successor} instead."
    return hidden("21.0.0", instead, deprecated("16.0.0", instead))


def _old(schema: Schema, *, without: tuple[str, ...] = (), **changed: Property) -> dict[str, Property]:
    """Return a schema of Octavia as in LBaaS: without newer properties, and with the `changed` ones replaced."""
    return {name: changed.get(name, prop) for name, prop in schema.items() if name not in without}


def _link(prop: Property, name: str, **options: Any) -> Property:
    return replace(prop, constraints=(custom(f"neutron.lbaas.{name}"),), **options)


_BALANCER, _LISTENER = octavia.LoadBalancer.properties, octavia.Listener.properties
_POOL, _MEMBER, _MONITOR = octavia.Pool.properties, octavia.PoolMember.properties, octavia.HealthMonitor.properties


class LoadBalancer(octavia.LoadBalancer):
    name = "OS::Neutron::LBaaS::LoadBalancer"
    support = retired("LoadBalancer")
    properties = _old(
        _BALANCER,
        without=("flavor", "availability_zone"),
        provider=text("Who provides it.", constraints=(custom("neutron.lbaas.provider"),)),
    )
    attributes = {name: attribute for name, attribute in octavia.LoadBalancer.attributes.items() if name != "flavor_id"}


class Listener(octavia.Listener):
    name = "OS::Neutron::LBaaS::Listener"
    support = retired("Listener")
    properties = _old(
        _LISTENER,
        without=("allowed_cidrs",),
        protocol=replace(_LISTENER["protocol"], constraints=(one_of(*PROTOCOLS, "TERMINATED_HTTPS"),)),
        loadbalancer=_link(_LISTENER["loadbalancer"], "loadbalancer", required=False),
        default_pool=_link(_LISTENER["default_pool"], "pool"),
    )

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        super().validate(values, path)
        require(
            bool(values.get("loadbalancer")), "loadbalancer is needed: a pool does not stand for one any more", path
        )


class Pool(octavia.Pool):
    name = "OS::Neutron::LBaaS::Pool"
    support = retired("Pool")
    properties = _old(
        _POOL,
        without=("tls_enabled",),
        session_persistence=replace(_POOL["session_persistence"], update=False),
        lb_algorithm=replace(_POOL["lb_algorithm"], constraints=(one_of(*octavia.ALGORITHMS[:3]),)),
        listener=_link(_POOL["listener"], "listener"),
        loadbalancer=_link(_POOL["loadbalancer"], "loadbalancer"),
        protocol=replace(_POOL["protocol"], constraints=(one_of(*PROTOCOLS),)),
    )


class PoolMember(octavia.PoolMember):
    name = "OS::Neutron::LBaaS::PoolMember"
    support = retired("PoolMember")
    properties = _old(
        _MEMBER,
        without=("monitor_address", "monitor_port", "tags"),
        pool=_link(_MEMBER["pool"], "pool"),
        subnet=replace(_MEMBER["subnet"], required=True),
    )
    attributes = {
        "address": Attribute("Address of the server."),
        "pool_id": Attribute("The pool.", field="pool"),
    }


class HealthMonitor(octavia.HealthMonitor):
    name = "OS::Neutron::LBaaS::HealthMonitor"
    support = retired("HealthMonitor")
    properties = _old(
        _MONITOR,
        expected_codes=replace(_MONITOR["expected_codes"], default="200"),
        http_method=replace(_MONITOR["http_method"], default="GET"),
        url_path=replace(_MONITOR["url_path"], default="/"),
        pool=_link(_MONITOR["pool"], "pool"),
        type=replace(_MONITOR["type"], constraints=(one_of("PING", "TCP", "HTTP", "HTTPS"),)),
    )

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """Return the desired object, without HTTP settings for other types of checks, which Octavia refuses."""
        spec = super().spec(values, physical_name)
        by_http = str(values["type"]).startswith("HTTP")
        return {name: value for name, value in spec.items() if by_http or name not in octavia.BY_HTTP}

    def observed_properties(self, thing: Thing) -> dict[str, Any]:
        seen = super().observed_properties(thing)
        by_http = str(thing.properties["type"]).startswith("HTTP")
        return {name: value for name, value in seen.items() if by_http or name not in octavia.BY_HTTP}


class L7Policy(layer7_policies.L7Policy):
    name = "OS::Neutron::LBaaS::L7Policy"
    support = retired("L7Policy")
    properties = _old(
        POLICY,
        redirect_pool=_link(POLICY["redirect_pool"], "pool"),
        listener=_link(POLICY["listener"], "listener"),
    )


class L7Rule(layer7_policies.L7Rule):
    name = "OS::Neutron::LBaaS::L7Rule"
    support = retired("L7Rule")
    properties = _old(RULE, l7policy=replace(RULE["l7policy"], constraints=()))


TYPES: list[type[ResourceType]] = [LoadBalancer, Listener, Pool, PoolMember, HealthMonitor, L7Policy, L7Rule]
